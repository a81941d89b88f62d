#include <errno.h>
#include <string.h>

#include "core/private.h"
#include "registry/reference.h"

#define TIMEOUT_S 30
#define NO_REGISTRY "none" /* as the operator writes it */

static int keep(const char *text, char **ret_copy, struct err *err)
{
    if (!text || !*text)
        return 0;
    *ret_copy = strdup(text);
    return *ret_copy ? 0 : err_set(err, ENOMEM, "cannot allocate a setting");
}

/* A typing error in the list would lock everyone out, or in the default fail every pull. */
static int check_hosts(const char *list, const char *option, struct err *err)
{
    static const char gaps[] = ", \t";
    for (const char *p = list ? list : ""; *p;) {
        p += strspn(p, gaps);
        size_t n = strcspn(p, gaps);
        if (n > 0 && !host_valid(p, n))
            return err_set(err, EINVAL, "%s: '%.*s' is not a HOST or HOST:PORT", option, (int)n, p);
        p += n;
    }
    return 0;
}

int registries_init(struct registries *r, const struct core_config *config, struct err *err)
{
    (void)pthread_mutex_init(&r->lock, NULL);
    r->timeout_s = config->registry_timeout_s ? config->registry_timeout_s : TIMEOUT_S;
    int x = check_hosts(config->default_registry, "default-registry", err);
    if (x >= 0)
        x = check_hosts(config->registry_allow, "registry-allow", err);
    const char *host = config->default_registry;
    if (x >= 0 && host && strcmp(host, NO_REGISTRY) != 0)
        x = keep(host, &r->default_host, err);
    if (x >= 0)
        x = keep(config->registry_allow, &r->allow, err);
    return x;
}

void registries_done(struct registries *r)
{
    free(r->default_host);
    free(r->allow);
    free(r->proofs);
}
