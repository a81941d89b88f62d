#include "core/network.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/keeper.h"
#include "core/table.h"
#include "net/policy.h"

#define LOG_MODULE "network"
#define SEND_MS 5000

bool network_is_none(const char *network)
{
    return !network || !*network || strcmp(network, "none") == 0;
}

static int read_rules(const char *network, struct policy *ret_policy, struct err *err)
{
    if (network_is_none(network))
        return policy_preset("none", ret_policy, err);
    if (!strchr(network, ' ')) /* a rule has at least two words */
        return policy_preset(network, ret_policy, err);
    return policy_parse(network, strlen(network), ret_policy, err);
}

int network_check(const char *network, struct err *err)
{
    _cleanup_(policy_done) struct policy p = POLICY_INIT;
    int r = read_rules(network, &p, err);
    return r == -ENOENT || r == -E2BIG ? -EINVAL : r;
}

/* ---- to the broker ---- */

/* A broker that does not read is dead or will be: nobody waits for it for long. */
static int send_within(const struct core *core, const void *msg, size_t size, const int *fds,
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

/* Takes fd. */
static int tell(struct core *core, const char *id, enum broker_net_part part, bool cut, int fd)
{
    struct broker_net msg = { .type = BROKER_NET, .part = part, .cut = cut };
    (void)snprintf(msg.sandbox, sizeof(msg.sandbox), "%s", id);
    int r = send_within(core, &msg, sizeof(msg), &fd, 1);
    (void)close(fd);
    return r;
}

static int tell_rules(struct core *core, const char *id, const char *network, bool cut,
                      struct err *err)
{
    _cleanup_(policy_done) struct policy p = POLICY_INIT;
    _cleanup_(buf_done) struct buf text = BUF_INIT(4 * NETWORK_TEXT_MAX);
    int r = read_rules(network, &p, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int fd = memfd_create("rules", MFD_CLOEXEC);
    r = fd < 0 ? -errno : policy_text(&p, &text);
    if (r == 0 && text.len)
        r = fd_write_full(fd, text.data, text.len);
    if (r == 0)
        r = tell(core, id, BROKER_NET_RULES, cut, take_fd(fd));
    return r < 0 ? err_set(err, -r, "cannot give the broker the rules of '%s'", id) : 0;
}

int networks_attach(struct core *core, const char *id, const char *network, struct err *err)
{
    int fds[KEEPER_STEER_FDS];
    if (network_is_none(network) || core->broker_fd < 0)
        return 0;
    int r = tell_rules(core, id, network, true, err);
    if (r == 0)
        r = keeper_ask_steer(core, id, fds, err);
    if (r < 0)
        return r;
    static const enum broker_net_part parts[KEEPER_STEER_FDS] = { BROKER_NET_TCP, BROKER_NET_UDP,
                                                                  BROKER_NET_LINK };
    for (size_t i = 0; i < KEEPER_STEER_FDS; i++) {
        int sent = tell(core, id, parts[i], false, fds[i]);
        r = r < 0 ? r : sent;
    }
    if (r < 0)
        return err_set(err, -r, "cannot give the broker the sockets of '%s'", id);
    networks_point(core, id);
    return 0;
}

void networks_detach(struct core *core, const char *id)
{
    struct broker_net_end msg = { .type = BROKER_NET_END };
    if (core->broker_fd < 0)
        return;
    (void)snprintf(msg.sandbox, sizeof(msg.sandbox), "%s", id);
    int r = send_within(core, &msg, sizeof(msg), NULL, 0);
    if (r < 0)
        log_warn("the broker was not told of an end sandbox=%s err=%s", id, strerror(-r));
}

int networks_change(struct core *core, const char *id, const char *from, const char *to,
                    struct err *err)
{
    if (network_is_none(to)) {
        networks_detach(core, id); /* its sockets are closed: connections are refused */
        return 0;
    }
    if (network_is_none(from))
        return networks_attach(core, id, to, err);
    return tell_rules(core, id, to, true, err);
}

/* ---- from the broker ---- */

struct running {
    char id[ID_SIZE];
    char *network;
};

static void running_free(struct running *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(items[i].network);
    free(items);
}

/* Those that run and have a network. */
static size_t find_running(struct core *core, struct running **ret_items)
{
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    struct running *items = calloc(core->table.n + 1, sizeof(*items));
    for (size_t i = 0; items && i < core->table.n; i++) {
        const struct box *b = core->table.sorted[i];
        if (b->s.state != SANDBOX_RUNNING || network_is_none(b->s.spec.network))
            continue;
        items[n].network = strdup(b->s.spec.network);
        if (!items[n].network)
            continue;
        memcpy(items[n++].id, b->s.id, ID_SIZE);
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
    struct running *items;
    size_t n = find_running(core, &items);
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        if (networks_attach(core, items[i].id, items[i].network, &err) < 0)
            log_warn("a sandbox is without its network sandbox=%s err=\"%s\"", items[i].id,
                     err.msg);
        if (!still_runs(core, items[i].id)) /* its end may have been told before this */
            networks_detach(core, items[i].id);
    }
    if (n)
        log_info("the broker has the networks of what runs count=%zu", n);
    running_free(items, n);
}

static void keep(struct core *core, const struct broker_record *rec)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct box *b = box_find(&core->table, NULL, rec->sandbox);
    if (b)
        netlog_add(&b->netlog, rec);
    (void)pthread_mutex_unlock(&core->table.lock);
}

bool network_told(struct core *core, const void *msg, size_t n)
{
    uint32_t type = 0;
    if (n >= sizeof(type))
        memcpy(&type, msg, sizeof(type));
    if (type == BROKER_HELLO && n == sizeof(struct broker_hello)) {
        tell_all(core);
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
    if (id_valid(rec.sandbox))
        keep(core, &rec);
    return true;
}

int network_log(struct core *core, const char *owner, const char *who, uint64_t after,
                struct network_entry **ret_items, size_t *ret_n, struct err *err)
{
    struct sandbox s = { 0 };
    int r = sandbox_get(core, owner, who, &s, err);
    if (r < 0) {
        sandbox_done(&s);
        return r;
    }
    (void)pthread_mutex_lock(&core->table.lock);
    const struct box *b = box_find(&core->table, NULL, s.id);
    r = b ? netlog_copy(&b->netlog, after, ret_items, ret_n) : -ENOENT;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r < 0)
        r = err_set(err, -r, "cannot read the network log of '%s'", s.id);
    sandbox_done(&s);
    return r;
}
