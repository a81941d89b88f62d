#include "archive/chunk.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "archive/cut.h"
#include "base/fd.h"
#include "wire/chunks.h"

#define LEVEL 3
#define KNOWN_FD 3
#define REPORT_FD 4
#define KNOWN_MAX (4u * 1024 * 1024) /* digests: four terabytes of files */
#define KNOWN_STEP 4096

struct chunk {
    EVP_MD *sha;
    EVP_MD_CTX *whole;
    ZSTD_CCtx *pack;
    ZSTD_DCtx *unpack;
    struct cut cut;
    uint8_t (*known)[CHUNK_DIGEST];
    size_t n_known;
    uint64_t total, pieces;
    unsigned char *raw; /* CHUNK_MAX twice: what was read beyond a cut begins the next piece */
    unsigned char *packed;
};

int chunk_new(struct chunk **ret_c, struct err *err)
{
    struct chunk *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(err, ENOMEM, "out of memory");
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL); /* it is out of reach */
    cut_init(&c->cut);
    c->sha = EVP_MD_fetch(NULL, "SHA256", NULL);
    c->whole = EVP_MD_CTX_new();
    c->pack = ZSTD_createCCtx();
    c->unpack = ZSTD_createDCtx();
    c->raw = malloc((size_t)CHUNK_MAX * 2);
    c->packed = malloc(CHUNK_PACKED_MAX);
    if (!c->sha || !c->whole || !c->pack || !c->unpack || !c->raw || !c->packed ||
        EVP_DigestInit_ex(c->whole, c->sha, NULL) != 1) {
        chunk_free(c);
        return err_set(err, ENOMEM, "out of memory");
    }
    *ret_c = c;
    return 0;
}

void chunk_free(struct chunk *c)
{
    if (!c)
        return;
    EVP_MD_free(c->sha);
    EVP_MD_CTX_free(c->whole);
    (void)ZSTD_freeCCtx(c->pack);
    (void)ZSTD_freeDCtx(c->unpack);
    free(c->known);
    free(c->raw);
    free(c->packed);
    free(c);
}

static int hash(const struct chunk *c, const void *p, size_t n, uint8_t out[CHUNK_DIGEST])
{
    unsigned len = 0;
    unsigned char md[EVP_MAX_MD_SIZE];
    if (EVP_Digest(p, n, md, &len, c->sha, NULL) != 1 || len != CHUNK_DIGEST)
        return -EIO;
    memcpy(out, md, CHUNK_DIGEST);
    return 0;
}

/* Of all that was added; the context is of no use after it. */
static int hash_end(struct chunk *c, uint8_t out[CHUNK_DIGEST])
{
    unsigned len = 0;
    unsigned char md[EVP_MAX_MD_SIZE];
    if (EVP_DigestFinal_ex(c->whole, md, &len) != 1 || len != CHUNK_DIGEST)
        return -EIO;
    memcpy(out, md, CHUNK_DIGEST);
    return 0;
}

/* ---- into pieces ---- */

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, CHUNK_DIGEST);
}

static int read_known(struct chunk *c, struct err *err)
{
    size_t size = 0, cap = 0;
    for (;;) {
        if (cap - size < CHUNK_DIGEST) {
            cap = cap ? cap * 2 : (size_t)KNOWN_STEP * CHUNK_DIGEST;
            void *more = cap / CHUNK_DIGEST > KNOWN_MAX * 2 ? NULL : realloc(c->known, cap);
            if (!more)
                return err_set(err, ENOMEM, "too many pieces are known");
            c->known = more;
        }
        ssize_t n = read(KNOWN_FD, (char *)c->known + size, cap - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, errno, "cannot read which pieces are known");
        if (n == 0)
            break;
        size += (size_t)n;
    }
    c->n_known = size / CHUNK_DIGEST;
    return 0;
}

static int send_piece(struct chunk *c, const unsigned char *p, size_t n, struct err *err)
{
    struct chunk_head head = { .kind = CHUNK_KNOWN, .raw = (uint32_t)n };
    if (hash(c, p, n, head.digest) < 0 || EVP_DigestUpdate(c->whole, p, n) != 1)
        return err_set(err, EIO, "cannot hash");
    c->total += n;
    if (!c->n_known || !bsearch(head.digest, c->known, c->n_known, CHUNK_DIGEST, by_bytes)) {
        size_t packed = ZSTD_compressCCtx(c->pack, c->packed, CHUNK_PACKED_MAX, p, n, LEVEL);
        if (ZSTD_isError(packed))
            return err_set(err, EIO, "cannot pack");
        head.kind = CHUNK_DATA;
        head.packed = (uint32_t)packed;
    }
    int r = fd_write_full(STDOUT_FILENO, &head, sizeof(head));
    if (r == 0)
        r = fd_write_full(STDOUT_FILENO, c->packed, head.packed);
    return r < 0 ? err_set(err, -r, "cannot write") : 0;
}

int chunk_write(struct chunk *c, struct err *err)
{
    size_t have = 0;
    bool end = false;
    int r = read_known(c, err);
    while (r == 0 && (!end || have > 0)) {
        while (!end && have < CHUNK_MAX) {
            ssize_t n = read(STDIN_FILENO, c->raw + have, (size_t)CHUNK_MAX * 2 - have);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                return err_set(err, errno, "cannot read");
            end = n == 0;
            have += (size_t)n;
        }
        if (have == 0)
            break;
        size_t n = cut_find(&c->cut, c->raw, have);
        r = send_piece(c, c->raw, n, err);
        have -= n;
        memmove(c->raw, c->raw + n, have);
    }
    struct chunk_head last = { .kind = CHUNK_END, .total = c->total };
    if (r == 0 && hash_end(c, last.digest) < 0)
        r = err_set(err, EIO, "cannot hash");
    if (r == 0 && fd_write_full(STDOUT_FILENO, &last, sizeof(last)) < 0)
        r = err_set(err, EIO, "cannot write");
    return r;
}

/* ---- and back ---- */

static int wrong(struct err *err)
{
    return err_set(err, EBADMSG, "it is not what was archived");
}

static int take_piece(struct chunk *c, const struct chunk_head *head, struct err *err)
{
    uint8_t digest[CHUNK_DIGEST];
    if (head->raw == 0 || head->raw > CHUNK_MAX || head->packed > CHUNK_PACKED_MAX)
        return wrong(err);
    if (fd_read_full(STDIN_FILENO, c->packed, head->packed) < 0)
        return err_set(err, EPIPE, "it ended early");
    size_t n = ZSTD_decompressDCtx(c->unpack, c->raw, head->raw, c->packed, head->packed);
    if (ZSTD_isError(n) || n != head->raw)
        return wrong(err);
    if (hash(c, c->raw, n, digest) < 0 || EVP_DigestUpdate(c->whole, c->raw, n) != 1)
        return err_set(err, EIO, "cannot hash");
    if (memcmp(digest, head->digest, sizeof(digest)) != 0)
        return wrong(err);
    c->total += n;
    c->pieces++;
    int r = fd_write_full(STDOUT_FILENO, c->raw, n);
    return r < 0 ? err_set(err, -r, "cannot write") : 0;
}

static int join(struct chunk *c, struct err *err)
{
    for (;;) {
        struct chunk_head head;
        uint8_t digest[CHUNK_DIGEST];
        if (fd_read_full(STDIN_FILENO, &head, sizeof(head)) < 0)
            return err_set(err, EPIPE, "it ended early");
        if (head.kind == CHUNK_DATA) {
            int r = take_piece(c, &head, err);
            if (r < 0)
                return r;
            continue;
        }
        if (head.kind != CHUNK_END || head.total != c->total)
            return wrong(err);
        if (hash_end(c, digest) < 0)
            return err_set(err, EIO, "cannot hash");
        return memcmp(digest, head.digest, sizeof(digest)) == 0 ? 0 : wrong(err);
    }
}

int chunk_join(struct chunk *c, struct err *err)
{
    int r = join(c, err);
    const struct chunk_report rep = { .code = r < 0 ? -r : 0, .pieces = c->pieces };
    (void)fd_write_full(REPORT_FD, &rep, sizeof(rep));
    return r;
}
