/* What a sandbox can reach and has reached: the radius of its blast, on one page; and what it did,
 * by itself: programs it ran, files it changed. */
#include <string.h>

#include "core/account.h"
#include "core/network.h"
#include "core/port.h"
#include "core/trace.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "net/binding.h"

#define BLAST_FILES 100

/* ---- whom it reached, and with which secrets ---- */

static void put_reached(struct jout *j, const struct account *a)
{
    jout_open(j, "reached", '[');
    for (uint32_t i = 0; a->hosts && i < a->head.n_hosts; i++) {
        const struct account_host *h = &a->hosts[i];
        if (h->sum.connections == 0)
            continue;
        jout_open(j, NULL, '{');
        jout_str(j, "host", h->host);
        jout_uint(j, "connections", h->sum.connections);
        jout_uint(j, "sent_bytes", h->sum.sent_bytes);
        jout_uint(j, "received_bytes", h->sum.received_bytes);
        jout_time(j, "first_at", h->first_ms);
        jout_time(j, "last_at", h->last_ms);
        jout_close(j, '}');
    }
    jout_close(j, ']');
    jout_open(j, "other", '{');
    jout_uint(j, "connections", a->head.others.connections);
    jout_uint(j, "sent_bytes", a->head.others.sent_bytes);
    jout_uint(j, "received_bytes", a->head.others.received_bytes);
    jout_close(j, '}');
    jout_uint(j, "sent_bytes", a->head.egress.sent_bytes);
    jout_uint(j, "received_bytes", a->head.egress.received_bytes);
    jout_uint(j, "denied", a->head.egress.denied);
}

static void put_use(struct jout *j, const char *secret, const char *host, const char *path,
                    uint64_t used)
{
    jout_open(j, NULL, '{');
    jout_str(j, "secret", secret);
    jout_str(j, "host", host);
    jout_str(j, "path", path);
    jout_uint(j, "used", used);
    jout_close(j, '}');
}

static uint64_t uses_of(const struct binding *b, const struct account_use *uses, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(uses[i].secret, b->secret) == 0 && strcmp(uses[i].host, b->host) == 0)
            return uses[i].count;
    return 0;
}

static bool is_bound(const struct bindings *bs, const struct account_use *use)
{
    for (size_t i = 0; i < bs->n; i++)
        if (bs->items[i].secret && uses_of(&bs->items[i], use, 1))
            return true;
    return false;
}

/* What it may use, and after that what it used and may no longer. */
static void put_secrets(struct jout *j, const struct sandbox_spec *spec, const struct account *a)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    _cleanup_free_ struct account_use *uses = NULL;
    size_t n = 0;
    if (spec->bindings)
        (void)bindings_parse(spec->bindings, strlen(spec->bindings), &bs, NULL);
    (void)account_uses(a, &uses, &n);
    jout_open(j, "secrets", '[');
    for (size_t i = 0; i < bs.n; i++)
        if (bs.items[i].secret)
            put_use(j, bs.items[i].secret, bs.items[i].host, bs.items[i].path,
                    uses_of(&bs.items[i], uses, n));
    for (size_t i = 0; i < n; i++)
        if (!is_bound(&bs, &uses[i]))
            put_use(j, uses[i].secret, uses[i].host, NULL, uses[i].count);
    jout_close(j, ']');
}

/* ---- the page ---- */

static void put_programs(struct jout *j, const struct keeper_program *items, size_t n, bool counted)
{
    jout_bool(j, "programs_counted", counted);
    jout_open(j, "programs", '[');
    for (size_t i = 0; i < n; i++) {
        jout_open(j, NULL, '{');
        jout_str(j, "path", items[i].path);
        jout_uint(j, "count", items[i].count);
        jout_time(j, "first_at", items[i].first_ms);
        jout_time(j, "last_at", items[i].last_ms);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

/* What listens at this moment; one that does not run has none. */
static void put_ports(struct jout *j, const struct request *req, const struct sandbox *s)
{
    _cleanup_(sandbox_done) struct sandbox inside = { 0 };
    _cleanup_free_ struct port *ports = NULL;
    size_t n = 0;
    if (s->state == SANDBOX_RUNNING &&
        sandbox_enter(req->core, req->owner, s->id, &inside, NULL) >= 0) {
        (void)port_list(req->core, &inside, &ports, &n, NULL);
        sandbox_leave(req->core, s->id);
    }
    jout_open(j, "ports", '[');
    for (size_t i = 0; i < n; i++)
        native_put_port(j, req, s->id, &ports[i]);
    jout_close(j, ']');
}

static void put_volumes(struct jout *j, struct core *core, const struct sandbox *s)
{
    char others[TRACE_SHARERS_MAX][ID_SIZE];
    jout_open(j, "volumes", '[');
    for (size_t i = 0; i < s->spec.n_mounts; i++) {
        const struct sandbox_mount *m = &s->spec.mounts[i];
        size_t n = trace_sharers(core, m->volume, s->id, others);
        jout_open(j, NULL, '{');
        jout_str(j, "volume", m->name);
        jout_str(j, "path", m->path);
        jout_bool(j, "read_only", m->read_only);
        jout_open(j, "shared_with", '[');
        for (size_t o = 0; o < n; o++)
            jout_str(j, NULL, others[o]);
        jout_close(j, ']');
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

struct blast {
    struct sandbox s;
    struct trace_changes changes;
    struct keeper_program *programs;
    size_t n_programs;
    bool counted;
};

static void blast_done(struct blast *b)
{
    sandbox_done(&b->s);
    trace_changes_done(&b->changes);
    free(b->programs);
}

static int gather(struct request *req, struct blast *b, struct err *err)
{
    int r = sandbox_get(req->core, req->owner, req->args[0], &b->s, err);
    if (r == 0)
        r = trace_changes(req->core, req->owner, b->s.id, BLAST_FILES, &b->changes, err);
    if (r == 0)
        r = trace_programs(req->core, req->owner, b->s.id, &b->programs, &b->n_programs,
                           &b->counted, err);
    return r;
}

static int put_network(struct request *req, struct jout *j, const struct blast *b, struct err *err)
{
    struct account a = ACCOUNT_INIT;
    int r = network_account(req->core, req->owner, b->s.id, &a, err);
    if (r < 0)
        return r;
    native_put_network(j, &b->s.spec);
    put_reached(j, &a);
    put_secrets(j, &b->s.spec, &a);
    network_account_done(req->core, &a);
    return 0;
}

int native_sandbox_blast(struct request *req, struct err *err)
{
    static const char *const known[] = { NULL };
    _cleanup_(blast_done) struct blast b = { 0 };
    _cleanup_(buf_done) struct buf text = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&text);
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = gather(req, &b, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_str(&j, "sandbox", b.s.id);
    jout_str(&j, "name", b.s.spec.name);
    jout_str(&j, "state", sandbox_state_name(sandbox_shown(&b.s)));
    r = put_network(req, &j, &b, err);
    if (r < 0)
        return r;
    put_ports(&j, req, &b.s);
    put_volumes(&j, req->core, &b.s);
    put_programs(&j, b.programs, b.n_programs, b.counted);
    jout_open(&j, "files", '{');
    native_put_changes(&j, &b.changes);
    jout_close(&j, '}');
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}
