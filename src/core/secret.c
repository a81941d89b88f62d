#include "core/secret.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/event.h"
#include "core/private.h"
#include "core/seal.h"
#include "core/team.h"

#define LOG_MODULE "secret"
#define SECRETS_MAX 1000 /* of one owner */
#define META_NAME_MAX 128
#define META_VALUE_MAX 1024
#define META_BYTES_MAX 8192
#define ABOUT_SIZE (ID_SIZE + 24)
#define SEALED_MAX (2 * SECRET_VALUE_MAX)

struct secret_entry {
    struct secret s;
    char *sealed;
};

void secret_done(struct secret *s)
{
    pairs_done(&s->metadata);
}

static void entry_done(struct secret_entry *e)
{
    secret_done(&e->s);
    free(e->sealed);
}

static int copy(const struct secret *from, struct secret *ret_to)
{
    struct secret to = *from;
    int r = pairs_copy(&from->metadata, &to.metadata);
    if (r >= 0)
        *ret_to = to;
    return r;
}

static int missing(struct err *err, const char *who)
{
    return err_fail(err, FAIL_SECRET_NOT_FOUND,
                    "no secret '%.64s' here; `warren secret ls` shows what there is", who);
}

/* ---- with the lock held ---- */

static struct secret_entry *find(struct core *core, const char *owner, const char *who)
{
    struct secrets *ss = &core->secrets;
    for (size_t i = 0; i < ss->n; i++) {
        struct secret_entry *e = &ss->items[i];
        if (strcmp(e->s.owner, owner) == 0 &&
            (strcmp(e->s.id, who) == 0 || strcasecmp(e->s.name, who) == 0))
            return e;
    }
    return NULL;
}

static void drop(struct secrets *ss, struct secret_entry *e)
{
    size_t at = (size_t)(e - ss->items);
    entry_done(e);
    memmove(e, e + 1, (ss->n - at - 1) * sizeof(*e));
    ss->n--;
}

/* Takes e's contents: in the place of the one of the same id, or behind all others. */
static int put(struct secrets *ss, struct secret_entry *e)
{
    for (size_t i = 0; i < ss->n; i++)
        if (strcmp(ss->items[i].s.id, e->s.id) == 0) {
            entry_done(&ss->items[i]);
            ss->items[i] = *e;
            return 0;
        }
    struct secret_entry *items = reallocarray(ss->items, ss->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    ss->items = items;
    ss->items[ss->n++] = *e;
    return 0;
}

/* ---- at rest ---- */

static void about(const struct secret *s, char out[ABOUT_SIZE])
{
    (void)snprintf(out, ABOUT_SIZE, "%s:%" PRIu64, s->id, s->version);
}

static int seal(struct core *core, const struct secret *s, const char *value, char **ret_sealed,
                struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(SEALED_MAX);
    char what[ABOUT_SIZE];
    about(s, what);
    int r = seal_close(core->secrets.key, what, value, strlen(value), &b);
    if (r >= 0)
        r = buf_append(&b, "", 1);
    if (r < 0)
        return err_set(err, -r, "cannot seal a secret");
    *ret_sealed = buf_steal(&b);
    return *ret_sealed ? 0 : err_set(err, ENOMEM, "cannot allocate a secret");
}

static int save(struct core *core, const struct secret_entry *e, struct err *err)
{
    _cleanup_free_ char *metadata = pairs_text(&e->s.metadata);
    if (!metadata)
        return err_set(err, ENOMEM, "cannot allocate a secret");
    struct store_secret row = { .id = e->s.id,
                                .owner = e->s.owner,
                                .name = e->s.name,
                                .version = (int64_t)e->s.version,
                                .created_ms = e->s.created_ms,
                                .updated_ms = e->s.updated_ms,
                                .metadata = metadata,
                                .value = e->sealed };
    return store_secret_put(core->store, &row, err);
}

static int load_row(void *ctx, const struct store_secret *row)
{
    struct core *core = ctx;
    struct secret_entry e = { .s = { .version = (uint64_t)row->version,
                                     .created_ms = row->created_ms,
                                     .updated_ms = row->updated_ms } };
    if (!id_valid(row->id) || !name_valid(row->name) || !name_valid(row->owner) ||
        pairs_read(row->metadata, &e.s.metadata) < 0) {
        log_error("a secret's record was skipped");
        entry_done(&e);
        return 0;
    }
    memcpy(e.s.id, row->id, ID_SIZE);
    (void)snprintf(e.s.owner, sizeof(e.s.owner), "%s", row->owner);
    (void)snprintf(e.s.name, sizeof(e.s.name), "%s", row->name);
    e.sealed = strdup(row->value);
    int r = e.sealed ? put(&core->secrets, &e) : -ENOMEM;
    if (r < 0)
        entry_done(&e);
    return r;
}

int secrets_load(struct core *core, const char *state_dir, struct err *err)
{
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/secrets.key", state_dir) >= (int)sizeof(path))
        return err_set(err, ENAMETOOLONG, "the path '%s' is too long", state_dir);
    int r = seal_key(path, core->secrets.key, err);
    if (r >= 0)
        r = store_secret_each(core->store, load_row, core, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the secrets") : r;
}

void secrets_done(struct secrets *ss)
{
    for (size_t i = 0; i < ss->n; i++)
        entry_done(&ss->items[i]);
    free(ss->items);
    explicit_bzero(ss->key, sizeof(ss->key));
    ss->items = NULL;
    ss->n = 0;
}

void secrets_drop(struct core *core, const char *owner)
{
    struct secrets *ss = &core->secrets;
    (void)pthread_mutex_lock(&ss->lock);
    for (size_t i = ss->n; i-- > 0;)
        if (strcmp(ss->items[i].s.owner, owner) == 0)
            drop(ss, &ss->items[i]);
    (void)pthread_mutex_unlock(&ss->lock);
}

/* ---- public ---- */

static void tell(struct core *core, const struct secret *s, const char *type)
{
    char data[NAME_MAX_LEN + ID_SIZE + 64];
    int n = snprintf(data, sizeof(data), "{\"id\":\"%s\",\"name\":\"%s\",\"version\":%" PRIu64 "}",
                     s->id, s->name, s->version);
    event_emit(core, s->owner, NULL, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_info("%s secret=%s owner=%s version=%" PRIu64, type, s->id, s->owner, s->version);
}

static int check_value(const char *value, struct err *err)
{
    if (!value[0] || strlen(value) > SECRET_VALUE_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'value' must have 1 to %d bytes",
                        SECRET_VALUE_MAX);
    return 0;
}

static int check_metadata(const struct pairs *p, struct err *err)
{
    size_t total = 0;
    bool good = p->n <= SECRET_METADATA_MAX;
    for (size_t i = 0; i < p->n && good; i++) {
        size_t name = strlen(p->names[i]), value = strlen(p->values[i]);
        good = name > 0 && name <= META_NAME_MAX && value <= META_VALUE_MAX;
        total += name + value;
    }
    if (good && total <= META_BYTES_MAX)
        return 0;
    return err_fail(err, FAIL_INVALID_FIELD,
                    "'metadata' may have %d entries, names of %d bytes, values of %d and %d in all",
                    SECRET_METADATA_MAX, META_NAME_MAX, META_VALUE_MAX, META_BYTES_MAX);
}

static int check_name(const char *name, struct err *err)
{
    if (name_valid(name) && !id_valid(name) && strncasecmp(name, "sec_", 4) != 0)
        return 0;
    return err_fail(err, FAIL_INVALID_FIELD,
                    "'name' must be at most %d letters, digits, '.', '_' or '-', a letter or digit "
                    "first; not begin with 'sec_' or have the shape of an id",
                    NAME_MAX_LEN);
}

static int admit(struct core *core, const struct secret *s, struct err *err)
{
    const struct secrets *ss = &core->secrets;
    unsigned own = 0;
    if (find(core, s->owner, s->name))
        return err_fail(err, FAIL_NAME_TAKEN, "there is a secret '%s' already", s->name);
    for (size_t i = 0; i < ss->n; i++)
        own += strcmp(ss->items[i].s.owner, s->owner) == 0;
    if (own >= SECRETS_MAX)
        return err_fail(err, FAIL_CAPACITY, "a team may have %d secrets", SECRETS_MAX);
    return 0;
}

/* Changes of secrets are few: one at a time, so that what the database and the memory say is the
 * same in the same order. */
static int install(struct core *core, struct secret_entry *e, bool new, struct secret *ret_s,
                   struct err *err)
{
    struct secrets *ss = &core->secrets;
    (void)pthread_mutex_lock(&ss->lock);
    int r = new ? admit(core, &e->s, err) : 0;
    (void)pthread_mutex_unlock(&ss->lock);
    if (r >= 0)
        r = save(core, e, err);
    if (r < 0)
        return r;
    if (copy(&e->s, ret_s) < 0)
        return err_set(err, ENOMEM, "cannot allocate a secret");
    (void)pthread_mutex_lock(&ss->lock);
    r = put(ss, e);
    (void)pthread_mutex_unlock(&ss->lock);
    if (r < 0) {
        secret_done(ret_s);
        return err_set(err, -r, "cannot allocate a secret");
    }
    memset(e, 0, sizeof(*e));
    return 0;
}

int secret_create(struct core *core, const char *owner, const char *name, const char *value,
                  const struct pairs *metadata, struct secret *ret_s, struct err *err)
{
    struct secret_entry e = { .s = { .version = 1 } };
    int r = check_name(name, err);
    if (r >= 0)
        r = check_value(value, err);
    if (r >= 0 && metadata)
        r = check_metadata(metadata, err);
    if (r >= 0 && !team_exists(core, owner))
        r = err_fail(err, FAIL_TEAM_NOT_FOUND, "no team '%s' here", owner);
    if (r < 0)
        return r;
    if (id_random(e.s.id) < 0 || (metadata && pairs_copy(metadata, &e.s.metadata) < 0))
        return err_set(err, ENOMEM, "cannot allocate a secret");
    (void)snprintf(e.s.owner, sizeof(e.s.owner), "%s", owner);
    for (size_t i = 0; name[i]; i++)
        e.s.name[i] = (char)tolower((unsigned char)name[i]);
    e.s.created_ms = e.s.updated_ms = clock_now_ms();
    (void)pthread_mutex_lock(&core->secrets.change);
    r = seal(core, &e.s, value, &e.sealed, err);
    if (r >= 0)
        r = install(core, &e, true, ret_s, err);
    (void)pthread_mutex_unlock(&core->secrets.change);
    entry_done(&e);
    if (r >= 0) /* one of this name may have been removed from under its bindings */
        networks_secret_changed(core, owner, ret_s->name, ret_s->id);
    if (r >= 0)
        tell(core, ret_s, "secret.added");
    return r;
}

/* A copy to be changed, with its sealed value. */
static int take(struct core *core, const char *owner, const char *who, struct secret_entry *ret_e,
                struct err *err)
{
    struct secrets *ss = &core->secrets;
    struct secret_entry e = { 0 };
    (void)pthread_mutex_lock(&ss->lock);
    const struct secret_entry *found = find(core, owner, who);
    int r = found ? copy(&found->s, &e.s) : -ENOENT;
    if (r >= 0 && !(e.sealed = strdup(found->sealed)))
        r = -ENOMEM;
    (void)pthread_mutex_unlock(&ss->lock);
    if (r < 0) {
        entry_done(&e);
        return r == -ENOENT ? missing(err, who) : err_set(err, -r, "cannot allocate a secret");
    }
    *ret_e = e;
    return 0;
}

static int change(struct core *core, struct secret_entry *e, const char *value,
                  const struct pairs *metadata, struct secret *ret_s, struct err *err)
{
    struct pairs fresh = { 0 };
    int r = 0;
    if (metadata) {
        if (pairs_copy(metadata, &fresh) < 0)
            return err_set(err, ENOMEM, "cannot allocate a secret");
        pairs_done(&e->s.metadata);
        e->s.metadata = fresh;
    }
    if (value) {
        char *sealed = NULL;
        e->s.version++;
        r = seal(core, &e->s, value, &sealed, err);
        if (r < 0)
            return r;
        free(e->sealed);
        e->sealed = sealed;
    }
    e->s.updated_ms = clock_now_ms();
    return install(core, e, false, ret_s, err);
}

int secret_update(struct core *core, const char *owner, const char *who, const char *value,
                  const struct pairs *metadata, struct secret *ret_s, struct err *err)
{
    struct secret_entry e = { 0 };
    int r = value ? check_value(value, err) : 0;
    if (r >= 0 && metadata)
        r = check_metadata(metadata, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->secrets.change);
    r = take(core, owner, who, &e, err);
    if (r >= 0)
        r = change(core, &e, value, metadata, ret_s, err);
    (void)pthread_mutex_unlock(&core->secrets.change);
    entry_done(&e);
    if (r >= 0 && value)
        networks_secret_changed(core, owner, ret_s->name, ret_s->id);
    if (r >= 0)
        tell(core, ret_s, "secret.updated");
    return r;
}

int secret_get(struct core *core, const char *owner, const char *who, struct secret *ret_s,
               struct err *err)
{
    (void)pthread_mutex_lock(&core->secrets.lock);
    const struct secret_entry *e = find(core, owner, who);
    int r = e ? copy(&e->s, ret_s) : -ENOENT;
    (void)pthread_mutex_unlock(&core->secrets.lock);
    if (r == -ENOENT)
        return missing(err, who);
    return r < 0 ? err_set(err, -r, "cannot allocate a secret") : 0;
}

void secret_list_free(struct secret *ss, size_t n)
{
    for (size_t i = 0; i < n; i++)
        secret_done(&ss[i]);
    free(ss);
}

int secret_list(struct core *core, const char *owner, struct secret **ret_ss, size_t *ret_n,
                struct err *err)
{
    struct secrets *ss = &core->secrets;
    size_t n = 0;
    int r = 0;
    (void)pthread_mutex_lock(&ss->lock);
    struct secret *list = calloc(ss->n + 1, sizeof(*list));
    for (size_t i = 0; list && i < ss->n && r >= 0; i++)
        if (strcmp(ss->items[i].s.owner, owner) == 0 && (r = copy(&ss->items[i].s, &list[n])) >= 0)
            n++;
    (void)pthread_mutex_unlock(&ss->lock);
    if (!list || r < 0) {
        secret_list_free(list, n);
        return err_set(err, ENOMEM, "cannot allocate the secrets");
    }
    *ret_ss = list;
    *ret_n = n;
    return 0;
}

int secret_remove(struct core *core, const char *owner, const char *who, struct err *err)
{
    struct secret_entry e = { 0 };
    (void)pthread_mutex_lock(&core->secrets.change);
    int r = take(core, owner, who, &e, err);
    if (r >= 0)
        r = store_secret_remove(core->store, e.s.id, err);
    if (r >= 0) {
        (void)pthread_mutex_lock(&core->secrets.lock);
        struct secret_entry *at = find(core, owner, e.s.id);
        if (at)
            drop(&core->secrets, at);
        (void)pthread_mutex_unlock(&core->secrets.lock);
    }
    (void)pthread_mutex_unlock(&core->secrets.change);
    if (r >= 0)
        networks_secret_changed(core, owner, e.s.name, e.s.id);
    if (r >= 0)
        tell(core, &e.s, "secret.removed");
    entry_done(&e);
    return r;
}

int secret_value(struct core *core, const char *owner, const char *who, char **ret_value,
                 size_t *ret_n, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(SEALED_MAX);
    struct secret_entry e = { 0 };
    char what[ABOUT_SIZE];
    int r = take(core, owner, who, &e, err);
    if (r < 0)
        return r;
    about(&e.s, what);
    r = seal_open(core->secrets.key, what, e.sealed, &b);
    entry_done(&e);
    if (r >= 0)
        r = buf_append(&b, "", 1);
    if (r < 0)
        return err_set(err, -r, "cannot open secret '%.64s': its key is another, or it was changed",
                       who);
    *ret_n = b.len - 1;
    *ret_value = buf_steal(&b);
    return 0;
}
