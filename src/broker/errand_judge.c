/* Whether a request to a bound host may go: whom it is for, which bindings fit, what the rules say. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "broker/tap_private.h"

/* The Host, without the port behind it; -EINVAL: not one, or at another port. */
static int read_host(const struct tap *t, struct text said, char out[HOST_SIZE])
{
    const char *colon = said.n ? memchr(said.p, ':', said.n) : NULL;
    size_t n = colon ? (size_t)(colon - said.p) : said.n;
    char port[8];
    unsigned here = t->inner ? TAP_INNER_PORT : t->port;
    (void)snprintf(port, sizeof(port), ":%u", here);
    if (colon && !text_is((struct text){ colon, said.n - n }, port))
        return -EINVAL;
    return host_canon(said.p, n, out);
}

int errand_find_host(struct tap *t, const struct head *h, char ret_name[HOST_SIZE])
{
    char said[HOST_SIZE];
    if (h->host.n == 0 && !t->inner)
        return 0; /* HTTP/1.0 may leave it out */
    if (read_host(t, h->host, said) < 0)
        return t->inner ? TAP_NO_NAME : TAP_MISDIRECTED;
    if (!t->inner)
        return strcmp(said, t->host) == 0 ? 0 : TAP_MISDIRECTED;
    size_t n = strlen(said), zone = sizeof(BINDING_ZONE) - 1;
    if (n <= zone || strcmp(said + n - zone, BINDING_ZONE) != 0)
        return TAP_NO_NAME;
    said[n - zone] = '\0';
    const struct binding *b = bindings_named(&t->bound->bindings, said);
    if (!b)
        return TAP_NO_NAME;
    (void)snprintf(t->host, sizeof(t->host), "%s", b->host);
    t->port = b->port;
    memcpy(ret_name, said, HOST_SIZE);
    return 0;
}

static struct policy_answer judge(struct tap *t)
{
    const char *name = t->host;
    struct policy_limits limits = egress_limits(t->net->egress);
    struct policy_flow f = { .protocol = POLICY_TCP,
                             .to = t->to,
                             .port = t->port,
                             .named = POLICY_NAME_GIVEN,
                             .name = name,
                             .pinned = &name,
                             .n_pinned = 1 };
    if (t->inner)
        return (struct policy_answer){ POLICY_DENY, POLICY_BY_DEFAULT, NULL };
    return policy_judge(&t->net->policy, &limits, &f);
}

bool errand_may_stay(struct tap *t)
{
    if (t->rec.binding[0])
        return bound_has(t->net->bound, t->rec.binding, t->host);
    return judge(t).verdict == POLICY_ALLOW;
}

int errand_match(struct tap *t, const struct head *h, const char *name,
                 const struct binding *fits[BINDINGS_MAX])
{
    struct binding_request q = { .host = t->inner ? NULL : t->host,
                                 .port = t->port,
                                 .name = t->inner ? name : NULL,
                                 .method = h->method.p,
                                 .n_method = h->method.n,
                                 .target = h->target.p,
                                 .n_target = h->target.n };
    return bindings_match(&t->bound->bindings, &q, fits);
}

static void on_who(struct who *w, const char *program)
{
    struct tap *t = container_of(w, struct tap, who);
    (void)snprintf(t->program, sizeof(t->program), "%s", program);
}

int errand_judge(struct tap *t, const struct head *h, const char *name,
                 const struct binding *fits[BINDINGS_MAX])
{
    int n = errand_match(t, h, name, fits);
    t->owed = true;
    t->head_bytes = t->res.passed = 0;
    if (!t->program[0] && !who_waits(&t->who))
        (void)egress_ask_who(t->net, t->sock.fd, &t->who, on_who);
    t->rec = (struct egress_record){ .wall_ms = clock_now_ms(),
                                     .allowed = true,
                                     .protocol = POLICY_TCP,
                                     .why = POLICY_BY_RULE,
                                     .to = t->to,
                                     .port = t->port };
    memcpy(t->rec.name, t->host, sizeof(t->rec.name));
    if (n > 0) {
        (void)snprintf(t->rec.binding, sizeof(t->rec.binding), "%s", bound_label(fits[0]));
        egress_begun(t->net, &t->rec);
        return n;
    }
    struct policy_answer answer = judge(t);
    egress_answered(&t->rec, &answer);
    if (answer.verdict != POLICY_ALLOW)
        return -EACCES;
    egress_begun(t->net, &t->rec);
    return 0;
}
