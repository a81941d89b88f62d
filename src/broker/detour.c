#include "broker/detour.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "broker/egress_private.h"

/* The names that were resolved to that address: the one that was said, or all where none was. */
static size_t names_of(struct network *n, const struct address *to, const char *name,
                       const char *ret_names[PINS_NAMES_MAX])
{
    int64_t now = clock_mono_ms();
    if (!*name)
        return pins_names(n->pins, to, now, ret_names);
    ret_names[0] = name;
    return pins_has(n->pins, name, to, now) ? 1 : 0;
}

/* An address that has an exempt name and another is not exempt: nobody knows which is meant. */
static bool by_site(const struct egress_config *config, const struct address *to,
                    const char *const *names, size_t n)
{
    bool direct = n > 0;
    if (!config->proxy || exempt_has(config->direct, to, ""))
        return false;
    for (size_t i = 0; i < n; i++)
        direct = direct && exempt_has(config->direct, to, names[i]);
    return !direct;
}

bool detour_needed(struct network *n, const struct address *to)
{
    const char *names[PINS_NAMES_MAX];
    return n->proxy || by_site(&n->egress->config, to, names, names_of(n, to, "", names));
}

int detour_new(struct network *n, const struct address *to, uint16_t port, const char *name,
               struct detour **ret_detour)
{
    const struct egress_config *config = &n->egress->config;
    const char *names[PINS_NAMES_MAX];
    size_t n_names = names_of(n, to, name, names);
    bool site = by_site(config, to, names, n_names);
    if (!site && !n->proxy)
        return 0;
    struct detour *d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    d->to = *to;
    d->port = port;
    if (n_names == 1)
        (void)snprintf(d->name, sizeof(d->name), "%s", names[0]);
    if (site)
        d->legs[d->n_legs++] = *config->proxy;
    if (n->proxy) {
        d->own[d->n_legs] = true;
        d->legs[d->n_legs++] = *n->proxy;
    }
    *ret_detour = d;
    return 1;
}

void detour_free(struct detour *d)
{
    if (!d)
        return;
    lookup_cancel(&d->lookup);
    if (d->talking)
        hop_done(&d->hop);
    explicit_bzero(d->legs, sizeof(d->legs));
    free(d);
}

bool detour_find(struct detour *d, size_t leg)
{
    static const uint8_t loopback[4] = { 127, 0, 0, 1 };
    const struct proxy *up = &d->legs[leg];
    if (up->address.bits)
        d->at[leg] = up->address;
    else if (strcmp(up->host, "localhost") == 0) /* which resolvers do not all know */
        d->at[leg] = address_v4(loopback);
    return d->at[leg].bits != 0;
}

bool detour_allowed(struct network *n, const struct detour *d, size_t leg)
{
    struct policy_limits limits = egress_limits(n->egress);
    return !d->own[leg] || policy_place_open(&limits, &d->at[leg]);
}

int detour_talk(struct detour *d)
{
    const struct proxy *up = &d->legs[d->leg];
    size_t next = d->leg + 1;
    if (d->talking)
        hop_done(&d->hop);
    d->talking = false;
    int r = next < d->n_legs ? hop_init(&d->hop, up, &d->at[next], d->legs[next].port, "")
                             : hop_init(&d->hop, up, &d->to, d->port, up->by_name ? d->name : "");
    d->talking = r == 0;
    return r;
}
