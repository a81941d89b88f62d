/* What sources are worth: a hash of all that a copy of them would make, for the cache. */
#include <errno.h>
#include <string.h>

#include "core/build_private.h"

#define ENTRIES_MAX 2000000
#define DIGEST_BYTES (DIGEST_SIZE - 1)

static int no_memory(struct err *err)
{
    return err_set(err, ENOMEM, "cannot allocate what is copied");
}

struct hashing {
    struct digest *present; /* of the entry at hand */
    bool owners;
    char (*all)[DIGEST_SIZE]; /* one an entry */
    size_t n, cap;
};

static int hash_end(struct hashing *h, struct err *err)
{
    if (!h->present)
        return 0;
    if (h->n == h->cap) {
        size_t cap = h->cap ? h->cap * 2 : 64;
        char(*all)[DIGEST_SIZE] = reallocarray(h->all, cap, sizeof(*all));
        if (!all)
            return no_memory(err);
        h->all = all;
        h->cap = cap;
    }
    int r = digest_end(take_ptr(h->present), h->all[h->n]);
    h->n++;
    return r < 0 ? err_set(err, -r, "cannot hash a file") : 0;
}

static int hash_one(void *ctx, const struct file_entry *e, const char *p, size_t n, struct err *err)
{
    struct hashing *h = ctx;
    if (!e)
        return digest_add(h->present, p, n) < 0 ? no_memory(err) : 0;
    int r = hash_end(h, err);
    if (r < 0)
        return r;
    if (h->n == ENTRIES_MAX)
        return err_fail_as(err, E2BIG, FAIL_BUILD_FAILED, "over %d files are copied", ENTRIES_MAX);
    h->present = digest_begin();
    if (!h->present)
        return no_memory(err);
    uint64_t numbers[] = { e->type,
                           e->type == WIRE_SYMLINK ? 0 : e->mode,
                           e->size,
                           h->owners ? e->uid : 0,
                           h->owners ? e->gid : 0,
                           e->rdev };
    const char *const texts[] = { e->path, e->link ? e->link : "" };
    r = digest_add(h->present, numbers, sizeof(numbers));
    for (size_t i = 0; i < ARRAY_LEN(texts) && r >= 0; i++)
        r = digest_add(h->present, texts[i], strlen(texts[i]) + 1);
    for (size_t i = 0; i < e->n_xattrs && r >= 0; i++) {
        r = digest_add(h->present, e->xattrs[i].name, strlen(e->xattrs[i].name) + 1);
        if (r >= 0)
            r = digest_add(h->present, e->xattrs[i].value, e->xattrs[i].len);
    }
    return r < 0 ? no_memory(err) : 0;
}

static int by_text(const void *a, const void *b)
{
    return memcmp(a, b, DIGEST_BYTES);
}

int build_source_hash(struct build *b, const struct build_source *src, bool owners,
                      struct build_key *key, struct err *err)
{
    struct hashing h = { .owners = owners };
    int r = build_source_each(b, src, hash_one, &h, err);
    if (r >= 0)
        r = hash_end(&h, err);
    if (h.n)
        qsort(h.all, h.n, sizeof(*h.all), by_text);
    build_key_number(key, src->is_dir);
    build_key_text(key, src->name);
    build_key_number(key, h.n);
    for (size_t i = 0; i < h.n && r >= 0; i++)
        build_key_bytes(key, h.all[i], DIGEST_BYTES);
    digest_free(h.present);
    free(h.all);
    return r;
}
