#include "core/portwatch.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "core/event.h"
#include "core/inside.h"
#include "core/port.h"
#include "core/table.h"
#include "core/wait.h"

#define ROUND_MS 1000
#define ROUND_MAX 64 /* sandboxes looked at in one round; the others have their turn in the next */
#define EVENT_MAX 1024

static void tell(struct core *core, const char *owner, const char *id, const char *type,
                 const struct port *p)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(EVENT_MAX);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '{');
    jout_uint(&j, "port", p->port);
    if (p->address[0]) {
        jout_str(&j, "address", p->address);
        jout_str(&j, "program", p->program[0] ? p->program : NULL);
    }
    jout_close(&j, '}');
    if (jout_done(&j) >= 0)
        event_emit(core, owner, id, type, b.data);
}

static bool has(const uint16_t *set, size_t n, unsigned port)
{
    for (size_t i = 0; i < n; i++)
        if (set[i] == port)
            return true;
    return false;
}

/* The ports once each. */
static uint16_t *set_of(const struct port *ports, size_t n, size_t *ret_n)
{
    uint16_t *set = calloc(n + 1, sizeof(*set));
    *ret_n = 0;
    for (size_t i = 0; set && i < n; i++)
        if (!has(set, *ret_n, ports[i].port))
            set[(*ret_n)++] = (uint16_t)ports[i].port;
    return set;
}

void port_seen(struct core *core, const char *id, const struct port *ports, size_t n)
{
    struct table *t = &core->table;
    char owner[OWNER_MAX] = "";
    size_t n_new = 0, n_old = 0;
    uint16_t *new = set_of(ports, n, &n_new), *old = NULL;
    if (!new)
        return;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, NULL, id);
    if (b) {
        memcpy(owner, b->s.owner, sizeof(owner));
        bool same_life = b->ports_life == b->life;
        old = b->ports;
        n_old = same_life ? b->n_ports : 0; /* its end was told: they went with it */
        b->ports = new;
        b->n_ports = n_new;
        b->ports_life = b->life;
    }
    (void)pthread_mutex_unlock(&t->lock);
    for (size_t i = 0; b && i < n; i++)
        if (!has(old, n_old, ports[i].port) && (i == 0 || ports[i - 1].port != ports[i].port))
            tell(core, owner, id, "port.opened", &ports[i]);
    for (size_t i = 0; b && i < n_old; i++)
        if (!has(new, n_new, old[i])) {
            struct port closed = { .port = old[i] };
            tell(core, owner, id, "port.closed", &closed);
        }
    free(b ? old : new);
}

/* ---- looking ---- */

/* Without the programs, which cost more: it is as it was. */
static bool is_as_known(struct core *core, const char *id)
{
    struct inside_listener *list = calloc(PORT_LIST_MAX, sizeof(*list));
    struct table *t = &core->table;
    size_t n = 0, known = 0;
    if (!list || inside_listeners(core, id, list, PORT_LIST_MAX, &n) < 0) {
        free(list);
        return true; /* it is not there to be asked */
    }
    (void)pthread_mutex_lock(&t->lock);
    const struct box *b = box_find(t, NULL, id);
    bool same = b && b->ports_life == b->life;
    uint16_t seen[PORT_LIST_MAX];
    for (size_t i = 0; same && i < n; i++) {
        if (list[i].port == PORT_STEER || has(seen, known, list[i].port))
            continue;
        seen[known++] = (uint16_t)list[i].port;
        same = has(b->ports, b->n_ports, list[i].port);
    }
    same = same && known == b->n_ports;
    bool nothing = b && !same && n == 0 && b->ports_life != b->life;
    (void)pthread_mutex_unlock(&t->lock);
    free(list);
    return same || nothing;
}

static void look_at(struct core *core, const char *id)
{
    struct sandbox s = { .root = NULL };
    struct port *ports = NULL;
    size_t n = 0;
    if (is_as_known(core, id))
        return;
    memcpy(s.id, id, ID_SIZE);
    if (port_list(core, &s, &ports, &n, NULL) >= 0)
        port_seen(core, id, ports, n);
    free(ports);
}

/* Those that run, from behind the one that was last; how many. */
static size_t choose(struct core *core, int64_t *after_ms, char after[ID_SIZE],
                     char ids[ROUND_MAX][ID_SIZE])
{
    struct table *t = &core->table;
    size_t n = 0;
    (void)pthread_mutex_lock(&t->lock);
    size_t from = box_after(t, *after_ms, after);
    for (size_t i = from; i < t->n && n < ROUND_MAX; i++) {
        const struct box *b = t->sorted[i];
        *after_ms = b->s.created_ms;
        memcpy(after, b->s.id, ID_SIZE);
        if (b->s.state == SANDBOX_RUNNING)
            memcpy(ids[n++], b->s.id, ID_SIZE);
    }
    bool wrapped = from >= t->n || n < ROUND_MAX;
    (void)pthread_mutex_unlock(&t->lock);
    if (wrapped) {
        *after_ms = 0;
        after[0] = '\0';
    }
    return n;
}

static bool is_followed(struct core *core)
{
    (void)pthread_mutex_lock(&core->feed.lock);
    bool followed = core->feed.waiting > 0;
    (void)pthread_mutex_unlock(&core->feed.lock);
    return followed;
}

static bool is_stopped(struct core *core)
{
    struct portwatch *w = &core->portwatch;
    int64_t until = clock_mono_ms() + ROUND_MS;
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop && clock_mono_ms() < until)
        (void)wait_until(&w->wake, &w->lock, until);
    bool stop = w->stop;
    (void)pthread_mutex_unlock(&w->lock);
    return stop;
}

static void *run(void *arg)
{
    struct core *core = arg;
    char ids[ROUND_MAX][ID_SIZE];
    char after[ID_SIZE] = "";
    int64_t after_ms = 0;
    while (!is_stopped(core)) {
        size_t n = is_followed(core) ? choose(core, &after_ms, after, ids) : 0;
        for (size_t i = 0; i < n && !atomic_load(&core->stopping); i++)
            look_at(core, ids[i]);
    }
    return NULL;
}

int portwatch_start(struct core *core, struct err *err)
{
    struct portwatch *w = &core->portwatch;
    int r = thread_start(&w->thread, run, core, err);
    w->started = r >= 0;
    return r;
}

void portwatch_stop(struct core *core)
{
    struct portwatch *w = &core->portwatch;
    if (!w->started)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->wake);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    w->started = false;
}
