#include "core/key.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "core/event.h"
#include "core/private.h"
#include "core/team.h"

#define LOG_MODULE "key"
#define KEY_PREFIX "warren_"
#define KEY_BYTES 20      /* 40 hex digits */
#define SECRET_LEN_MIN 16 /* less behind the last '_' is no secret: then the whole text counts */
#define USED_SAVE_MS 60000

struct key_entry {
    struct key key;
    unsigned char hash[SHA256_DIGEST_LENGTH];
    int64_t saved_ms; /* the last_used_ms that the database has */
};

static const char *const role_names[] = { [KEY_MEMBER] = "member", [KEY_ADMIN] = "admin" };

const char *key_role_name(enum key_role role)
{
    return role_names[role];
}

static void hash_of(const char *text, unsigned char out[SHA256_DIGEST_LENGTH])
{
    const char *mark = strrchr(text, '_');
    const char *secret = mark && strlen(mark + 1) >= SECRET_LEN_MIN ? mark + 1 : text;
    (void)SHA256((const unsigned char *)secret, strlen(secret), out);
}

/* ---- the ring, with its lock held ---- */

static int ring_add(struct keyring *k, const struct key_entry *entry)
{
    struct key_entry *items = reallocarray(k->items, k->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    k->items = items;
    k->items[k->n++] = *entry;
    if (entry->key.created_ms > k->newest_ms)
        k->newest_ms = entry->key.created_ms;
    return 0;
}

/* Compares with all of them, each in constant time: the time tells nothing but their number. */
static struct key_entry *ring_find(struct keyring *k, const unsigned char *hash)
{
    struct key_entry *found = NULL;
    for (size_t i = 0; i < k->n; i++)
        if (CRYPTO_memcmp(k->items[i].hash, hash, SHA256_DIGEST_LENGTH) == 0)
            found = &k->items[i];
    return found;
}

/* Now, or just after the newest there is: takes the lock itself. */
static int64_t next_moment(struct keyring *k)
{
    int64_t now = clock_now_ms();
    (void)pthread_mutex_lock(&k->lock);
    k->newest_ms = now > k->newest_ms ? now : k->newest_ms + 1;
    now = k->newest_ms;
    (void)pthread_mutex_unlock(&k->lock);
    return now;
}

/* ---- loading ---- */

static int load_row(void *ctx, const struct store_key *row)
{
    struct keyring *k = ctx;
    struct key_entry e = { .saved_ms = row->last_used_ms };
    if (!id_valid(row->id) || hex_decode(row->hash, e.hash, sizeof(e.hash)) < 0)
        return 0;
    memcpy(e.key.id, row->id, ID_SIZE);
    (void)snprintf(e.key.name, sizeof(e.key.name), "%s", row->name);
    (void)snprintf(e.key.owner, sizeof(e.key.owner), "%s", row->owner);
    e.key.role = strcmp(row->role, role_names[KEY_ADMIN]) == 0 ? KEY_ADMIN : KEY_MEMBER;
    e.key.created_ms = row->created_ms;
    e.key.last_used_ms = row->last_used_ms;
    return ring_add(k, &e);
}

static int add(struct core *core, const char *owner, const char *name, enum key_role role,
               const char *text, struct key *ret_key, struct err *err)
{
    struct key_entry e = { .key = { .created_ms = next_moment(&core->keyring), .role = role } };
    int r = id_random(e.key.id);
    if (r < 0)
        return err_set(err, -r, "cannot make an id");
    (void)snprintf(e.key.name, sizeof(e.key.name), "%s", name);
    (void)snprintf(e.key.owner, sizeof(e.key.owner), "%s", owner);
    hash_of(text, e.hash);
    char hex[2 * SHA256_DIGEST_LENGTH + 1];
    hex_encode(e.hash, sizeof(e.hash), hex);
    struct store_key row = { .id = e.key.id,
                             .owner = e.key.owner,
                             .name = e.key.name,
                             .role = role_names[role],
                             .hash = hex,
                             .created_ms = e.key.created_ms };
    r = store_key_add(core->store, &row, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->keyring.lock);
    r = ring_add(&core->keyring, &e);
    (void)pthread_mutex_unlock(&core->keyring.lock);
    if (r < 0) {
        (void)store_key_remove(core->store, e.key.id, NULL);
        return err_set(err, -r, "cannot allocate a key");
    }
    if (ret_key)
        *ret_key = e.key;
    return 0;
}

int keyring_load(struct core *core, const char *first_key, struct err *err)
{
    int r = store_key_each(core->store, load_row, &core->keyring, err);
    if (r < 0 || !first_key)
        return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the keys") : r;
    size_t n = strlen(first_key);
    if (n < KEY_MIN_LEN || n >= KEY_TEXT_MAX)
        return err_set(err, EINVAL,
                       "the first key (WARREN_API_KEY) has %zu characters; it must have %d to %d",
                       n, KEY_MIN_LEN, KEY_TEXT_MAX - 1);
    unsigned char hash[SHA256_DIGEST_LENGTH];
    hash_of(first_key, hash);
    struct key_entry *known = ring_find(&core->keyring, hash);
    if (!known)
        return add(core, OWNER_DEFAULT, "first", KEY_ADMIN, first_key, NULL, err);
    if (known->key.role == KEY_ADMIN)
        return 0;
    known->key.role = KEY_ADMIN; /* whoever starts the daemon is the operator */
    return store_key_role(core->store, known->key.id, role_names[KEY_ADMIN], err);
}

void keyring_done(struct keyring *k)
{
    free(k->items);
    k->items = NULL;
    k->n = 0;
}

/* ---- public ---- */

int key_check(struct core *core, const char *text, struct key *ret_key)
{
    struct keyring *k = &core->keyring;
    unsigned char hash[SHA256_DIGEST_LENGTH];
    char id[ID_SIZE] = "";
    int64_t now = clock_now_ms();
    if (strnlen(text, KEY_TEXT_MAX) == KEY_TEXT_MAX)
        return -EACCES;
    hash_of(text, hash);
    (void)pthread_mutex_lock(&k->lock);
    struct key_entry *e = ring_find(k, hash);
    if (e) {
        e->key.last_used_ms = now;
        *ret_key = e->key;
        if (now - e->saved_ms >= USED_SAVE_MS) {
            e->saved_ms = now;
            memcpy(id, e->key.id, ID_SIZE);
        }
    }
    (void)pthread_mutex_unlock(&k->lock);
    if (id[0])
        (void)store_key_used(core->store, id, now, NULL);
    return e ? 0 : -EACCES;
}

static void tell(struct core *core, const char *owner, const char *type, const char *id)
{
    char data[64];
    int n = snprintf(data, sizeof(data), "{\"id\":\"%s\"}", id);
    event_emit(core, owner, NULL, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
}

int key_create(struct core *core, const char *owner, const char *name, enum key_role role,
               struct key *ret_key, char ret_text[KEY_TEXT_MAX], struct err *err)
{
    if (name && name[0] && !name_valid(name))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'name' must be at most %d letters, digits, '.', '_' or '-', a letter or "
                        "digit first",
                        NAME_MAX_LEN);
    unsigned char raw[KEY_BYTES];
    int r = random_bytes(raw, sizeof(raw));
    if (r < 0)
        return err_set(err, -r, "cannot make a key");
    char text[sizeof(KEY_PREFIX) + 2 * KEY_BYTES] = KEY_PREFIX;
    hex_encode(raw, sizeof(raw), text + sizeof(KEY_PREFIX) - 1);
    struct key key;
    r = add(core, owner, name ? name : "", role, text, &key, err);
    if (r < 0)
        return r;
    /* Its team may have gone while it was made: then so must the key. */
    if (!team_exists(core, owner)) {
        (void)key_revoke(core, owner, key.id, true, NULL);
        return err_fail(err, FAIL_TEAM_NOT_FOUND, "no team '%s' here", owner);
    }
    *ret_key = key;
    memcpy(ret_text, text, sizeof(text));
    tell(core, owner, "key.added", key.id);
    log_info("key added key=%s", key.id);
    return 0;
}

static int compare(const void *pa, const void *pb)
{
    const struct key *a = pa, *b = pb;
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms ? -1 : 1;
    return strcmp(a->id, b->id);
}

int key_list(struct core *core, const char *owner, struct key **ret_keys, size_t *ret_n,
             struct err *err)
{
    struct keyring *k = &core->keyring;
    size_t n = 0;
    (void)pthread_mutex_lock(&k->lock);
    struct key *keys = calloc(k->n + 1, sizeof(*keys));
    for (size_t i = 0; keys && i < k->n; i++)
        if (!owner || strcmp(k->items[i].key.owner, owner) == 0)
            keys[n++] = k->items[i].key;
    (void)pthread_mutex_unlock(&k->lock);
    if (!keys)
        return err_set(err, ENOMEM, "cannot allocate the keys");
    qsort(keys, n, sizeof(*keys), compare);
    *ret_keys = keys;
    *ret_n = n;
    return 0;
}

static struct key_entry *find_id(struct keyring *k, const char *owner, const char *id)
{
    for (size_t i = 0; i < k->n; i++)
        if (strcmp(k->items[i].key.id, id) == 0 &&
            (!owner || strcmp(k->items[i].key.owner, owner) == 0))
            return &k->items[i];
    return NULL;
}

int key_revoke(struct core *core, const char *owner, const char *id, bool by_admin, struct err *err)
{
    struct keyring *k = &core->keyring;
    struct key key = { .id = "" };
    (void)pthread_mutex_lock(&k->lock);
    const struct key_entry *known = find_id(k, owner, id);
    if (known)
        key = known->key;
    (void)pthread_mutex_unlock(&k->lock);
    if (!key.id[0])
        return err_fail(err, FAIL_KEY_NOT_FOUND, "no key '%.64s' here", id);
    if (key.role == KEY_ADMIN && !by_admin)
        return err_fail(err, FAIL_FORBIDDEN, "key '%s' is an operator's", id);
    /* The database first: a key that is refused now must not work again after a restart. */
    int r = store_key_remove(core->store, id, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&k->lock);
    struct key_entry *e = find_id(k, owner, id);
    if (e)
        *e = k->items[--k->n];
    (void)pthread_mutex_unlock(&k->lock);
    tell(core, key.owner, "key.removed", id);
    log_info("key removed key=%s", id);
    return 0;
}

void keyring_drop(struct core *core, const char *owner)
{
    struct keyring *k = &core->keyring;
    (void)pthread_mutex_lock(&k->lock);
    for (size_t i = k->n; i-- > 0;)
        if (strcmp(k->items[i].key.owner, owner) == 0)
            k->items[i] = k->items[--k->n];
    (void)pthread_mutex_unlock(&k->lock);
}
