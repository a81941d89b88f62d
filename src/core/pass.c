#include "core/pass.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/log.h"
#include "core/event.h"
#include "core/private.h"

#define LOG_MODULE "preview"
#define PASS_PREFIX "preview_"
#define PASS_BYTES 20 /* 40 hex digits: a key's shape, so that nothing passes it on by mistake */
#define HASH_TEXT (2 * SHA256_DIGEST_LENGTH + 1)

struct pass_entry {
    struct pass p;
    unsigned char hash[SHA256_DIGEST_LENGTH];
    struct pass_entry *next;
};

void pass_done(struct pass *p)
{
    free(p->data);
    p->data = NULL;
}

static void entry_free(struct pass_entry *e)
{
    if (!e)
        return;
    pass_done(&e->p);
    free(e);
}

static int copy(const struct pass *from, struct pass *ret_to)
{
    struct pass to = *from;
    to.data = from->data ? strdup(from->data) : NULL;
    if (from->data && !to.data)
        return -ENOMEM;
    *ret_to = to;
    return 0;
}

static void hash_of(const char *text, unsigned char out[SHA256_DIGEST_LENGTH])
{
    const char *mark = strrchr(text, '_');
    const char *secret = mark ? mark + 1 : text;
    (void)SHA256((const unsigned char *)secret, strlen(secret), out);
}

/* ---- with the lock held ---- */

static struct pass_entry **bucket(struct passes *ps, const char *sandbox)
{
    return &ps->buckets[hash_text(sandbox) % PASS_BUCKETS];
}

static bool is_of(const struct pass_entry *e, const char *sandbox)
{
    return strcmp(e->p.sandbox, sandbox) == 0;
}

static struct pass_entry *unlink_if(struct pass_entry **at, const char *sandbox, const char *id,
                                    int64_t over_ms)
{
    while (*at) {
        struct pass_entry *e = *at;
        if (is_of(e, sandbox) && (!id || strcmp(e->p.id, id) == 0) && e->p.expires_ms <= over_ms) {
            *at = e->next;
            return e;
        }
        at = &e->next;
    }
    return NULL;
}

static void put(struct passes *ps, struct pass_entry *e)
{
    struct pass_entry **at = bucket(ps, e->p.sandbox);
    while (*at) /* behind the others: a list is in order of creation */
        at = &(*at)->next;
    *at = e;
}

/* ---- at rest ---- */

static int load_row(void *ctx, const struct store_pass *row)
{
    struct core *core = ctx;
    struct pass_entry *e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    if (!id_valid(row->id) || !id_valid(row->sandbox) ||
        hex_decode(row->hash, e->hash, sizeof(e->hash)) < 0) {
        log_error("the record of a preview token was skipped");
        entry_free(e);
        return 0;
    }
    memcpy(e->p.id, row->id, ID_SIZE);
    memcpy(e->p.sandbox, row->sandbox, ID_SIZE);
    e->p.port = (unsigned)row->port;
    e->p.created_ms = row->created_ms;
    e->p.expires_ms = row->expires_ms;
    e->p.data = row->data ? strdup(row->data) : NULL;
    put(&core->passes, e);
    return 0;
}

int passes_load(struct core *core, struct err *err)
{
    int r = store_pass_prune(core->store, clock_now_ms(), err);
    if (r >= 0)
        r = store_pass_each(core->store, load_row, core, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the preview tokens") : r;
}

void passes_done(struct passes *ps)
{
    for (size_t i = 0; i < PASS_BUCKETS; i++)
        while (ps->buckets[i]) {
            struct pass_entry *e = ps->buckets[i];
            ps->buckets[i] = e->next;
            entry_free(e);
        }
}

static void forget(struct core *core, const char *sandbox, int64_t over_ms)
{
    struct passes *ps = &core->passes;
    for (;;) {
        (void)pthread_mutex_lock(&ps->lock);
        struct pass_entry *e = unlink_if(bucket(ps, sandbox), sandbox, NULL, over_ms);
        (void)pthread_mutex_unlock(&ps->lock);
        if (!e)
            return;
        (void)store_pass_remove(core->store, e->p.id, NULL);
        entry_free(e);
    }
}

void passes_drop(struct core *core, const char *sandbox)
{
    forget(core, sandbox, INT64_MAX);
}

/* ---- public ---- */

static void tell(struct core *core, const char *owner, const struct pass *p, const char *type)
{
    char data[96];
    int n = snprintf(data, sizeof(data), "{\"id\":\"%s\",\"port\":%u}", p->id, p->port);
    event_emit(core, owner, p->sandbox, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
}

static int save(struct core *core, const char *owner, const struct pass_entry *e, struct err *err)
{
    char hex[HASH_TEXT];
    hex_encode(e->hash, sizeof(e->hash), hex);
    struct store_pass row = { .id = e->p.id,
                              .sandbox = e->p.sandbox,
                              .owner = owner,
                              .hash = hex,
                              .data = e->p.data,
                              .port = e->p.port,
                              .created_ms = e->p.created_ms,
                              .expires_ms = e->p.expires_ms };
    return store_pass_put(core->store, &row, err);
}

static int make(const struct sandbox *s, unsigned port, int64_t life_ms, const char *data,
                char text[PASS_TEXT_SIZE], struct pass_entry **ret_e, struct err *err)
{
    unsigned char raw[PASS_BYTES];
    struct pass_entry *e = calloc(1, sizeof(*e));
    if (!e || random_bytes(raw, sizeof(raw)) < 0 || id_random(e->p.id) < 0 ||
        (data && !(e->p.data = strdup(data)))) {
        entry_free(e);
        return err_set(err, ENOMEM, "cannot make a token");
    }
    memcpy(text, PASS_PREFIX, sizeof(PASS_PREFIX));
    hex_encode(raw, sizeof(raw), text + sizeof(PASS_PREFIX) - 1);
    hash_of(text, e->hash);
    memcpy(e->p.sandbox, s->id, ID_SIZE);
    e->p.port = port;
    e->p.created_ms = clock_now_ms();
    e->p.expires_ms = e->p.created_ms + life_ms;
    *ret_e = e;
    return 0;
}

static size_t count(struct passes *ps, const char *sandbox)
{
    size_t n = 0;
    (void)pthread_mutex_lock(&ps->lock);
    for (const struct pass_entry *e = *bucket(ps, sandbox); e; e = e->next)
        n += is_of(e, sandbox);
    (void)pthread_mutex_unlock(&ps->lock);
    return n;
}

/* The sandbox's id, if it is there and the owner's. */
static int find(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                struct err *err)
{
    int r = sandbox_get(core, owner, who, ret_s, err);
    if (r >= 0 && ret_s->state == SANDBOX_DELETING)
        r = err_fail(err, FAIL_SANDBOX_BUSY, "sandbox '%s' is being deleted", ret_s->id);
    return r;
}

int pass_create(struct core *core, const char *owner, const char *who, unsigned port,
                int64_t life_ms, const char *data, struct pass *ret_pass,
                char ret_text[PASS_TEXT_SIZE], struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct passes *ps = &core->passes;
    struct pass_entry *e = NULL;
    *ret_pass = (struct pass){ .data = NULL };
    int r = find(core, owner, who, &s, err);
    if (r < 0)
        return r;
    forget(core, s.id, clock_now_ms());
    if (count(ps, s.id) >= PASSES_OF_ONE)
        return err_fail(err, FAIL_CAPACITY, "a sandbox may have %d tokens at a time; revoke some",
                        PASSES_OF_ONE);
    r = make(&s, port, life_ms, data, ret_text, &e, err);
    if (r < 0)
        return r;
    r = copy(&e->p, ret_pass);
    if (r < 0)
        r = err_set(err, -r, "cannot make a token");
    else
        r = save(core, s.owner, e, err);
    if (r < 0) {
        pass_done(ret_pass);
        entry_free(e);
        return r;
    }
    (void)pthread_mutex_lock(&ps->lock);
    put(ps, e);
    (void)pthread_mutex_unlock(&ps->lock);
    /* It may have ended meanwhile, and its tokens with it. */
    _cleanup_(sandbox_done) struct sandbox after = { 0 };
    if (sandbox_get(core, owner, s.id, &after, NULL) < 0)
        passes_drop(core, s.id);
    tell(core, s.owner, ret_pass, "token.added");
    return 0;
}

static int compare(const void *pa, const void *pb)
{
    const struct pass *a = pa, *b = pb;
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms ? -1 : 1;
    return strcmp(a->id, b->id);
}

int pass_list(struct core *core, const char *owner, const char *who, struct pass **ret_list,
              size_t *ret_n, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct passes *ps = &core->passes;
    size_t n = 0;
    int r = sandbox_get(core, owner, who, &s, err);
    if (r < 0)
        return r;
    forget(core, s.id, clock_now_ms());
    struct pass *list = calloc(PASSES_OF_ONE, sizeof(*list));
    if (!list)
        return err_set(err, ENOMEM, "cannot allocate the tokens");
    (void)pthread_mutex_lock(&ps->lock);
    for (const struct pass_entry *e = *bucket(ps, s.id); e && n < PASSES_OF_ONE && r >= 0;
         e = e->next)
        if (is_of(e, s.id) && (r = copy(&e->p, &list[n])) >= 0)
            n++;
    (void)pthread_mutex_unlock(&ps->lock);
    if (r < 0) {
        pass_list_free(list, n);
        return err_set(err, -r, "cannot allocate the tokens");
    }
    qsort(list, n, sizeof(*list), compare);
    *ret_list = list;
    *ret_n = n;
    return 0;
}

void pass_list_free(struct pass *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pass_done(&list[i]);
    free(list);
}

int pass_revoke(struct core *core, const char *owner, const char *who, const char *id,
                struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct passes *ps = &core->passes;
    int r = sandbox_get(core, owner, who, &s, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&ps->lock);
    struct pass_entry *e = unlink_if(bucket(ps, s.id), s.id, id, INT64_MAX);
    (void)pthread_mutex_unlock(&ps->lock);
    if (!e)
        return err_fail(err, FAIL_TOKEN_NOT_FOUND, "sandbox '%s' has no token '%.64s'", s.id, id);
    r = store_pass_remove(core->store, id, err);
    if (r < 0) { /* or it would be right again after a restart */
        (void)pthread_mutex_lock(&ps->lock);
        put(ps, e);
        (void)pthread_mutex_unlock(&ps->lock);
        return r;
    }
    tell(core, s.owner, &e->p, "token.removed");
    entry_free(e);
    return 0;
}

int pass_check(struct core *core, const char *sandbox, unsigned port, const char *text,
               struct pass *ret_pass)
{
    struct passes *ps = &core->passes;
    unsigned char hash[SHA256_DIGEST_LENGTH];
    int64_t now = clock_now_ms();
    int r = -EACCES;
    if (strnlen(text, PASS_TEXT_SIZE) != PASS_TEXT_SIZE - 1)
        return -EACCES;
    hash_of(text, hash);
    (void)pthread_mutex_lock(&ps->lock);
    for (const struct pass_entry *e = *bucket(ps, sandbox); e; e = e->next)
        if (CRYPTO_memcmp(e->hash, hash, sizeof(hash)) == 0 && is_of(e, sandbox) &&
            e->p.expires_ms > now && (e->p.port == 0 || e->p.port == port)) {
            r = copy(&e->p, ret_pass);
            break;
        }
    (void)pthread_mutex_unlock(&ps->lock);
    return r;
}
