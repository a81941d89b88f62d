#include "core/network.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/alias.h"
#include "core/authority.h"
#include "core/grant.h"
#include "core/certs.h"
#include "core/keeper.h"
#include "core/ledger.h"
#include "core/table.h"
#include "core/trust.h"
#include "core/who.h"
#include "net/policy.h"

#define LOG_MODULE "network"
#define SEND_MS 5000

/* ---- to the broker ---- */

/* A broker that does not read is dead or will be: nobody waits for it for long. */
int networks_send(const struct core *core, const void *msg, size_t size, const int *fds,
                  size_t nfds)
{
    int64_t until = clock_mono_ms() + SEND_MS;
    for (;;) {
        int r = fd_try_send_msg(core->broker_fd, msg, size, fds, nfds);
        int64_t left = until - clock_mono_ms();
        if (r != -EAGAIN)
            return r;
        if (left <= 0)
            return -ETIMEDOUT;
        r = fd_wait(core->broker_fd, POLLOUT, (int)left);
        if (r < 0)
            return r;
    }
}

int networks_tell(struct core *core, const void *msg, size_t size)
{
    return core->broker_fd < 0 ? 0 : networks_send(core, msg, size, NULL, 0);
}

/* Takes fd. */
static int tell(struct core *core, const char *id, enum broker_net_part part, bool cut, int fd)
{
    struct broker_net msg = { .type = BROKER_NET, .part = part, .cut = cut };
    (void)snprintf(msg.sandbox, sizeof(msg.sandbox), "%s", id);
    int r = networks_send(core, &msg, sizeof(msg), &fd, 1);
    (void)close(fd);
    return r;
}

static int tell_rules(struct core *core, const char *id, const char *network, bool cut,
                      struct err *err)
{
    _cleanup_(policy_done) struct policy p = POLICY_INIT;
    _cleanup_(buf_done) struct buf text = BUF_INIT(4 * NETWORK_TEXT_MAX);
    int r = network_rules(network, &p, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd = memfd_create("rules", MFD_CLOEXEC);
    r = fd < 0 ? -errno : policy_text(&p, &text);
    size_t n;
    const char *proxy = network_proxy(network, &n);
    if (r == 0 && proxy)
        r = buf_printf(&text, "proxy %s", proxy);
    if (r == 0 && text.len)
        r = fd_write_full(fd, text.data, text.len);
    if (r == 0)
        r = tell(core, id, BROKER_NET_RULES, cut, take_fd(fd));
    return r < 0 ? err_set(err, -r, "cannot give the broker the rules of '%s'", id) : 0;
}

/* ---- who the broker knows ---- */

/* From here on its bindings are told anew when they change; false: there is no such sandbox. */
static bool mark(struct core *core, const char *id, bool told, bool *ret_was)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct box *b = box_find(&core->table, NULL, id);
    *ret_was = b && b->at_broker;
    if (b)
        b->at_broker = told;
    (void)pthread_mutex_unlock(&core->table.lock);
    return b != NULL;
}

/* It as it is now, whatever a caller was told earlier; -ENOENT: the broker is not to know. */
static int copy_told(struct core *core, const char *id, struct sandbox *ret_s)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct box *b = box_find(&core->table, NULL, id);
    int r = b && b->at_broker ? sandbox_copy(&b->s, ret_s) : -ENOENT;
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

static int tell_authority(struct core *core, const char *id, struct err *err)
{
    _cleanup_(authority_done) struct authority a = { 0 };
    int r = authority_make(core->secrets.key, id, &a, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd = memfd_create("authority", MFD_CLOEXEC);
    r = fd < 0 ? -errno : fd_write_full(fd, a.cert, strlen(a.cert));
    if (r == 0)
        r = fd_write_full(fd, a.key, strlen(a.key));
    return r < 0 ? r : tell(core, id, BROKER_NET_CA, false, take_fd(fd));
}

static int tell_bindings(struct core *core, const char *id, const char *owner, const char *text,
                         bool authority, struct err *err)
{
    int r = authority && grant_intercepts(text) ? tell_authority(core, id, err) : 0;
    int fd = r < 0 ? r : grant_pack(core, owner, text, err);
    r = fd < 0 ? fd : tell(core, id, BROKER_NET_BINDINGS, false, fd);
    return r < 0 ? err_set(err, -r, "cannot give the broker the bindings of '%s'", id) : 0;
}

/* With `told` held while it is read and said: what the broker has in the end is what is so. */
static int retell_held(struct core *core, const char *id, unsigned changes, bool authority,
                       struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = copy_told(core, id, &s);
    if (r < 0)
        return r == -ENOENT ? 0 : err_set(err, -r, "cannot copy what '%s' may reach", id);
    if (changes & CHANGE_NETWORK)
        r = tell_rules(core, id, s.spec.network,
                       (changes & CHANGE_CUT) || network_is_none(s.spec.network), err);
    if (r == 0 && (changes & CHANGE_BINDINGS))
        r = tell_bindings(core, id, s.owner, s.spec.bindings, authority, err);
    return r == 0 && (changes & CHANGE_NETWORK_LIMITS) ? networks_limit(core, &s, err) : r;
}

static int retell(struct core *core, const char *id, unsigned changes, bool authority,
                  struct err *err)
{
    (void)pthread_mutex_lock(&core->told);
    int r = retell_held(core, id, changes, authority, err);
    (void)pthread_mutex_unlock(&core->told);
    return r;
}

bool networks_has(const struct sandbox_spec *spec)
{
    return !network_is_none(spec->network) || !grant_is_none(spec->bindings);
}

/* Takes fds. */
static int tell_sockets(struct core *core, const char *id, const int fds[KEEPER_STEER_FDS],
                        struct err *err)
{
    static const enum broker_net_part parts[KEEPER_STEER_FDS] = {
        BROKER_NET_TCP,  BROKER_NET_UDP,    BROKER_NET_REST,   BROKER_NET_LINK,
        BROKER_NET_DIAG, BROKER_NET_RAW_V4, BROKER_NET_RAW_V6,
    };
    int r = 0;
    for (size_t i = 0; i < KEEPER_STEER_FDS; i++) {
        int sent = tell(core, id, parts[i], false, fds[i]);
        r = r < 0 ? r : sent;
    }
    return r < 0 ? err_set(err, -r, "cannot give the broker the sockets of '%s'", id) : 0;
}

static int say_all(struct core *core, const struct sandbox *s, struct err *err)
{
    bool was;
    int r;
    (void)pthread_mutex_lock(&core->told);
    if (mark(core, s->id, true, &was)) {
        unsigned all = CHANGE_NETWORK | CHANGE_CUT | CHANGE_BINDINGS | CHANGE_NETWORK_LIMITS;
        r = retell_held(core, s->id, all, true, err);
    } else { /* one that is still being made for nobody is in no table */
        r = tell_rules(core, s->id, s->spec.network, true, err);
        if (r == 0)
            r = tell_bindings(core, s->id, s->owner, s->spec.bindings, true, err);
        if (r == 0)
            r = networks_limit(core, s, err);
    }
    (void)pthread_mutex_unlock(&core->told);
    return r;
}

/* What is said of it comes before its sockets: a connection never meets half of that. Takes fds; NULL:
 * they are to be made. */
static int give(struct core *core, const struct sandbox *s, const int *fds, struct err *err)
{
    int made[KEEPER_STEER_FDS];
    int r = fds ? 0 : keeper_ask_steer(core, s->id, made, err);
    if (r < 0)
        return r;
    fds = fds ? fds : made;
    r = say_all(core, s, err);
    if (r < 0) {
        for (size_t i = 0; i < KEEPER_STEER_FDS; i++)
            (void)close(fds[i]);
        return r;
    }
    return tell_sockets(core, s->id, fds, err);
}

int networks_attach(struct core *core, const struct sandbox *s, struct err *err)
{
    if (!networks_has(&s->spec) || core->broker_fd < 0)
        return 0;
    int r = networks_attach_made(core, s, NULL, err);
    if (r >= 0)
        networks_point(core, s->id);
    return r;
}

int networks_attach_made(struct core *core, const struct sandbox *s, const int *fds,
                         struct err *err)
{
    int r = give(core, s, fds, err);
    if (r >= 0 && grant_intercepts(s->spec.bindings))
        trust_install(core, s->id);
    return r;
}

void networks_detach(struct core *core, const char *id)
{
    struct broker_net_end msg = { .type = BROKER_NET_END };
    bool was = false;
    int r = 0;
    (void)snprintf(msg.sandbox, sizeof(msg.sandbox), "%s", id);
    (void)pthread_mutex_lock(&core->told);
    bool known = mark(core, id, false, &was);
    if (core->broker_fd >= 0 && (was || !known))
        r = networks_send(core, &msg, sizeof(msg), NULL, 0);
    (void)pthread_mutex_unlock(&core->told);
    if (r < 0)
        log_warn("the broker was not told of an end sandbox=%s err=%s", id, strerror(-r));
}

int networks_change(struct core *core, const struct sandbox *s, const struct sandbox_spec *old,
                    unsigned changes, struct err *err)
{
    if (!networks_has(&s->spec)) {
        networks_detach(core, s->id); /* its sockets are closed: connections are refused */
        return 0;
    }
    if (!networks_has(old))
        return networks_attach(core, s, err);
    if (core->broker_fd < 0)
        return 0;
    int r = retell(core, s->id, changes, true, err);
    if (r == 0 && (changes & CHANGE_BINDINGS) && grant_intercepts(s->spec.bindings))
        trust_install(core, s->id);
    return r;
}

/* Those whose bindings name the secret; free(*ret_ids). */
static size_t find_bound(struct core *core, const char *owner, const char *name, const char *secret,
                         char (**ret_ids)[ID_SIZE])
{
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    char(*ids)[ID_SIZE] = calloc(core->table.n + 1, sizeof(*ids));
    for (size_t i = 0; ids && i < core->table.n; i++) {
        const struct box *b = core->table.sorted[i];
        if (b->at_broker && strcmp(b->s.owner, owner) == 0 &&
            grant_names(b->s.spec.bindings, name, secret))
            memcpy(ids[n++], b->s.id, ID_SIZE);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    *ret_ids = ids;
    return n;
}

void networks_secret_changed(struct core *core, const char *owner, const char *name,
                             const char *secret)
{
    char(*ids)[ID_SIZE] = NULL;
    size_t n = core->broker_fd < 0 ? 0 : find_bound(core, owner, name, secret, &ids);
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        if (retell(core, ids[i], CHANGE_BINDINGS, false, &err) < 0)
            log_warn("a secret's change did not reach a sandbox sandbox=%s err=\"%s\"", ids[i],
                     err.msg);
    }
    free(ids);
}

/* ---- from the broker ---- */

static void running_free(struct sandbox *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sandbox_done(&items[i]);
    free(items);
}

/* Those that run and have a network. */
static size_t find_running(struct core *core, struct sandbox **ret_items)
{
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    struct sandbox *items = calloc(core->table.n + 1, sizeof(*items));
    for (size_t i = 0; items && i < core->table.n; i++) {
        const struct box *b = core->table.sorted[i];
        if (b->s.state == SANDBOX_RUNNING && networks_has(&b->s.spec) &&
            sandbox_copy(&b->s, &items[n]) >= 0)
            n++;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    *ret_items = items;
    return n;
}

static bool still_runs(struct core *core, const char *id)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct box *b = box_find(&core->table, NULL, id);
    bool runs = b && b->s.state == SANDBOX_RUNNING;
    (void)pthread_mutex_unlock(&core->table.lock);
    return runs;
}

/* A new broker knows nobody. */
static void tell_all(struct core *core)
{
    struct sandbox *items;
    size_t n = find_running(core, &items);
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        if (give(core, &items[i], NULL, &err) < 0)
            log_warn("a sandbox is without its network sandbox=%s err=\"%s\"", items[i].id,
                     err.msg);
        if (!still_runs(core, items[i].id)) /* its end may have been told before this */
            networks_detach(core, items[i].id);
    }
    if (n)
        log_info("the broker has the networks of what runs count=%zu", n);
    running_free(items, n);
}

bool network_told(struct core *core, const void *msg, size_t n)
{
    uint32_t type = 0;
    if (n >= sizeof(type))
        memcpy(&type, msg, sizeof(type));
    if (type == BROKER_HELLO && n == sizeof(struct broker_hello)) {
        aliases_tell(core);
        ledger_new_broker(core);
        certs_tell(core);
        tell_all(core);
        return true;
    }
    struct broker_who who;
    if (type == BROKER_WHO && n == sizeof(who)) {
        memcpy(&who, msg, sizeof(who));
        who_asked(core, &who);
        return true;
    }
    struct broker_tally tally;
    if (type == BROKER_TALLY && n == sizeof(tally)) {
        memcpy(&tally, msg, sizeof(tally));
        tally.sandbox[ID_LEN] = tally.host[sizeof(tally.host) - 1] = '\0';
        tally.binding[sizeof(tally.binding) - 1] = '\0';
        if (id_valid(tally.sandbox)) {
            ledger_tally(core, &tally);
            uses_told(core, &tally);
        }
        return true;
    }
    struct broker_record rec;
    if (type != BROKER_RECORD || n != sizeof(rec))
        return false;
    memcpy(&rec, msg, sizeof(rec));
    rec.sandbox[ID_LEN] = '\0';
    rec.name[sizeof(rec.name) - 1] = '\0';
    rec.rule[sizeof(rec.rule) - 1] = '\0';
    rec.address[sizeof(rec.address) - 1] = '\0';
    rec.program[sizeof(rec.program) - 1] = '\0';
    rec.binding[sizeof(rec.binding) - 1] = '\0';
    if (id_valid(rec.sandbox))
        ledger_record(core, &rec);
    return true;
}
