#include "core/alias.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "core/event.h"
#include "core/network.h"
#include "core/private.h"
#include "core/team.h"
#include "wire/broker.h"

#define LOG_MODULE "preview"

struct alias_entry {
    struct alias a;
    struct alias_entry *next;
};

static int missing(struct err *err, const char *name)
{
    return err_fail(err, FAIL_NAME_NOT_FOUND,
                    "no name '%.253s' here; `warren name ls` shows what there is", name);
}

/* ---- with the lock held ---- */

static struct alias_entry **place(struct aliases *as, const char *name)
{
    struct alias_entry **at = &as->buckets[hash_text(name) % ALIAS_BUCKETS];
    while (*at && strcmp((*at)->a.name, name) != 0)
        at = &(*at)->next;
    return at;
}

/* Takes e: in the place of the one of that name, if there is one. */
static void put(struct aliases *as, struct alias_entry *e)
{
    struct alias_entry **at = place(as, e->a.name), *old = *at;
    e->next = old ? old->next : NULL;
    *at = e;
    as->n += old ? 0 : 1;
    free(old);
}

static bool drop(struct aliases *as, const char *name)
{
    struct alias_entry **at = place(as, name), *e = *at;
    if (!e)
        return false;
    *at = e->next;
    as->n--;
    free(e);
    return true;
}

/* ---- whose it is ---- */

/* A name by which clients reach the API: who had it would get their requests, with the secrets in them. */
static bool is_api(const struct core *core, const char *name)
{
    char own[HOST_SIZE], machine[HOST_SIZE] = "";
    (void)gethostname(machine, sizeof(machine) - 1);
    if (strcasecmp(machine, name) == 0)
        return true;
    for (const char *p = core->api_names; *p;) {
        p += strspn(p, ", \t");
        size_t n = strcspn(p, ", \t");
        if (host_canon(p, n, own) >= 0 && strcmp(own, name) == 0)
            return true;
        p += n;
    }
    return false;
}

/* ---- the broker ---- */

static void tell_broker(struct core *core, const struct alias *a, bool gone)
{
    struct broker_name msg = { .type = BROKER_NAME, .port = gone ? 0 : a->port };
    (void)snprintf(msg.name, sizeof(msg.name), "%s", a->name);
    (void)snprintf(msg.sandbox, sizeof(msg.sandbox), "%s", a->sandbox);
    int r = networks_tell(core, &msg, sizeof(msg));
    if (r < 0)
        log_warn("the broker was not told of a name name=%s err=%d", a->name, -r);
}

void aliases_tell(struct core *core)
{
    struct alias *list = NULL;
    size_t n = 0;
    struct err err = ERR_INIT;
    (void)pthread_mutex_lock(&core->aliases.change); /* nothing changes on the way */
    if (alias_list(core, NULL, &list, &n, &err) < 0)
        log_warn("the broker has no names err=\"%s\"", err.msg);
    for (size_t i = 0; i < n; i++)
        tell_broker(core, &list[i], false);
    (void)pthread_mutex_unlock(&core->aliases.change);
    free(list);
}

/* ---- at rest ---- */

static int load_row(void *ctx, const struct store_alias *row)
{
    struct core *core = ctx;
    struct alias_entry *e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    if (host_canon(row->name, strlen(row->name), e->a.name) < 0 || !id_valid(row->sandbox) ||
        strlen(row->owner) >= OWNER_MAX || row->port < 1 || row->port > UINT16_MAX) {
        log_error("the record of a name was skipped");
        free(e);
        return 0;
    }
    if (is_api(core, e->a.name)) {
        log_warn("a name leads nowhere: it is the API's name=%s", e->a.name);
        free(e);
        return 0;
    }
    (void)snprintf(e->a.owner, sizeof(e->a.owner), "%s", row->owner);
    memcpy(e->a.sandbox, row->sandbox, ID_SIZE);
    e->a.port = (unsigned)row->port;
    e->a.created_ms = row->created_ms;
    put(&core->aliases, e);
    return 0;
}

int aliases_load(struct core *core, struct err *err)
{
    int r = store_alias_each(core->store, load_row, core, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the names") : r;
}

void aliases_done(struct aliases *as)
{
    for (size_t i = 0; i < ALIAS_BUCKETS; i++)
        while (as->buckets[i]) {
            struct alias_entry *e = as->buckets[i];
            as->buckets[i] = e->next;
            free(e);
        }
}

/* ---- public ---- */

static void tell(struct core *core, const struct alias *a, const char *type)
{
    char data[HOST_SIZE + 64];
    int n = snprintf(data, sizeof(data), "{\"name\":\"%s\",\"port\":%u}", a->name, a->port);
    event_emit(core, a->owner, a->sandbox, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_info("%s name=%s sandbox=%s port=%u", type, a->name, a->sandbox, a->port);
}

static bool is_below(const char *name, const char *domain)
{
    size_t n = strlen(name), d = strlen(domain);
    return n >= d && strcasecmp(name + n - d, domain) == 0 && (n == d || name[n - d - 1] == '.');
}

static int check_name(const struct core *core, const char *domain, const char *name,
                      char out[HOST_SIZE], struct err *err)
{
    if (host_canon(name, strlen(name), out) < 0 || !strchr(out, '.'))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'name' must be a host name with a dot, such as app.example.com");
    if (is_below(out, domain) || is_below(out, "localhost"))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'%s' is below '%s', where every port of a sandbox has its name already",
                        out, is_below(out, domain) ? domain : "localhost");
    if (is_api(core, out))
        return err_fail(err, FAIL_NAME_TAKEN, "the name '%s' is the API's own", out);
    return 0;
}

/* With the lock held: it may become the owner's. */
static int admit(struct aliases *as, const struct alias *a, struct err *err)
{
    const struct alias_entry *e = *place(as, a->name);
    size_t own = 0;
    if (e && strcmp(e->a.owner, a->owner) != 0)
        return err_fail(err, FAIL_NAME_TAKEN, "the name '%s' is another team's", a->name);
    for (size_t i = 0; !e && i < ALIAS_BUCKETS; i++)
        for (const struct alias_entry *o = as->buckets[i]; o; o = o->next)
            own += strcmp(o->a.owner, a->owner) == 0;
    if (own >= ALIASES_OF_ONE)
        return err_fail(err, FAIL_CAPACITY, "a team may have %d names", ALIASES_OF_ONE);
    return 0;
}

static int install(struct core *core, const struct alias *a, struct err *err)
{
    struct aliases *as = &core->aliases;
    (void)pthread_mutex_lock(&as->lock);
    int r = admit(as, a, err);
    (void)pthread_mutex_unlock(&as->lock);
    if (r < 0)
        return r;
    struct store_alias row = { a->name, a->owner, a->sandbox, a->port, a->created_ms };
    struct alias_entry *e = malloc(sizeof(*e));
    r = e ? store_alias_put(core->store, &row, err)
          : err_set(err, ENOMEM, "cannot allocate a name");
    if (r < 0) {
        free(e);
        return r;
    }
    *e = (struct alias_entry){ .a = *a };
    (void)pthread_mutex_lock(&as->lock);
    put(as, e);
    (void)pthread_mutex_unlock(&as->lock);
    tell_broker(core, a, false);
    return 0;
}

int alias_put(struct core *core, const char *owner, const char *domain, const char *name,
              const char *who, unsigned port, struct alias *ret_alias, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct alias a = { .port = port, .created_ms = clock_now_ms() };
    int r = check_name(core, domain, name, a.name, err);
    if (r >= 0)
        r = sandbox_get(core, owner, who, &s, err);
    if (r < 0)
        return r;
    (void)snprintf(a.owner, sizeof(a.owner), "%s", s.owner);
    memcpy(a.sandbox, s.id, ID_SIZE);
    (void)pthread_mutex_lock(&core->aliases.change);
    r = install(core, &a, err);
    (void)pthread_mutex_unlock(&core->aliases.change);
    if (r < 0)
        return r;
    tell(core, &a, "name.added");
    *ret_alias = a;
    return 0;
}

int alias_get(struct core *core, const char *owner, const char *name, struct alias *ret_alias,
              struct err *err)
{
    char canon[HOST_SIZE];
    if (host_canon(name, strlen(name), canon) < 0)
        return missing(err, name);
    (void)pthread_mutex_lock(&core->aliases.lock);
    const struct alias_entry *e = *place(&core->aliases, canon);
    bool found = e && strcmp(e->a.owner, owner) == 0;
    if (found)
        *ret_alias = e->a;
    (void)pthread_mutex_unlock(&core->aliases.lock);
    return found ? 0 : missing(err, name);
}

static int take_away(struct core *core, const struct alias *a, struct err *err)
{
    int r = store_alias_remove(core->store, a->name, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->aliases.lock);
    bool was = drop(&core->aliases, a->name);
    (void)pthread_mutex_unlock(&core->aliases.lock);
    tell_broker(core, a, true);
    if (was)
        tell(core, a, "name.removed");
    return 0;
}

int alias_remove(struct core *core, const char *owner, const char *name, struct err *err)
{
    struct alias a;
    (void)pthread_mutex_lock(&core->aliases.change);
    int r = alias_get(core, owner, name, &a, err);
    if (r >= 0)
        r = take_away(core, &a, err);
    (void)pthread_mutex_unlock(&core->aliases.change);
    return r;
}

void aliases_drop(struct core *core, const char *owner)
{
    struct alias *list = NULL;
    size_t n = 0;
    (void)pthread_mutex_lock(&core->aliases.change);
    if (alias_list(core, owner, &list, &n, NULL) >= 0)
        for (size_t i = 0; i < n; i++)
            (void)take_away(core, &list[i], NULL);
    (void)pthread_mutex_unlock(&core->aliases.change);
    free(list);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct alias *)a)->name, ((const struct alias *)b)->name);
}

int alias_list(struct core *core, const char *owner, struct alias **ret_list, size_t *ret_n,
               struct err *err)
{
    struct aliases *as = &core->aliases;
    size_t n = 0;
    (void)pthread_mutex_lock(&as->lock);
    struct alias *list = calloc(as->n + 1, sizeof(*list));
    for (size_t i = 0; list && i < ALIAS_BUCKETS; i++)
        for (const struct alias_entry *e = as->buckets[i]; e; e = e->next)
            if (!owner || strcmp(e->a.owner, owner) == 0)
                list[n++] = e->a;
    (void)pthread_mutex_unlock(&as->lock);
    if (!list)
        return err_set(err, ENOMEM, "cannot allocate the names");
    qsort(list, n, sizeof(*list), compare);
    *ret_list = list;
    *ret_n = n;
    return 0;
}

bool alias_find(struct core *core, const char *host, size_t n, struct alias *ret_alias)
{
    char canon[HOST_SIZE];
    const char *colon = memchr(host, ':', n);
    if (host_canon(host, colon ? (size_t)(colon - host) : n, canon) < 0)
        return false;
    (void)pthread_mutex_lock(&core->aliases.lock);
    const struct alias_entry *e = *place(&core->aliases, canon);
    if (e)
        *ret_alias = e->a;
    (void)pthread_mutex_unlock(&core->aliases.lock);
    return e != NULL;
}
