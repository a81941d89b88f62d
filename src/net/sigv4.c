#include "net/sigv4.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/hex.h"

#define HASH_BYTES 32
#define CANON_MAX (256 * 1024) /* a head, each byte of it written as three, twice */
#define PAIRS_MAX 512

static const char digits[] = "0123456789ABCDEF";

bool sigv4_is_s3(const char *service)
{
    static const char *const known[] = { "s3", "s3express", "s3-outposts", "s3-object-lambda" };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(service, known[i]) == 0)
            return true;
    return false;
}

void sigv4_date(int64_t unix_s, char out[SIGV4_DATE_SIZE])
{
    time_t t = (time_t)unix_s;
    struct tm tm;
    (void)gmtime_r(&t, &tm);
    (void)strftime(out, SIGV4_DATE_SIZE, "%Y%m%dT%H%M%SZ", &tm);
}

void sigv4_hash(const void *p, size_t n, char out[SIGV4_HASH_SIZE])
{
    unsigned char hash[HASH_BYTES] = { 0 };
    (void)EVP_Digest(p, n, hash, NULL, EVP_sha256(), NULL);
    hex_encode(hash, HASH_BYTES, out);
}

/* ---- the request in one spelling ---- */

static int put_encoded(struct buf *out, unsigned char c, bool slash)
{
    bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                 c == '-' || c == '.' || c == '_' || c == '~' || (slash && c == '/');
    char text[3] = { '%', digits[c >> 4], digits[c & 15] };
    if (plain)
        text[0] = (char)c;
    return buf_append(out, text, plain ? 1 : 3);
}

/* However it was encoded, once and in one way. */
static int put_again(struct buf *out, struct text t, bool slash)
{
    int r = 0;
    for (size_t i = 0; i < t.n && r >= 0; i++) {
        unsigned char c = (unsigned char)t.p[i];
        int coded = hex_percent(t.p + i, t.n - i);
        if (coded >= 0) {
            c = (unsigned char)coded;
            i += 2;
        }
        r = put_encoded(out, c, slash);
    }
    return r;
}

/* S3 takes a path as it is meant; the others what is on the wire as if it were no encoding yet. */
static int put_path(struct buf *out, struct text path, const char *service)
{
    int r = 0;
    if (sigv4_is_s3(service))
        return put_again(out, path, true);
    for (size_t i = 0; i < path.n && r >= 0; i++)
        if (path.p[i] != '/' || i == 0 || path.p[i - 1] != '/')
            r = put_encoded(out, (unsigned char)path.p[i], true);
    return r;
}

struct pair {
    size_t from, name_end, end; /* in `text` */
    const char *text;
};

static int compare(const char *a, size_t n, const char *b, size_t m)
{
    int r = memcmp(a, b, n < m ? n : m);
    return r ? r : n < m ? -1 : n > m;
}

static int compare_pairs(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    int r =
        compare(a->text + a->from, a->name_end - a->from, b->text + b->from, b->name_end - b->from);
    return r ? r
             : compare(a->text + a->name_end, a->end - a->name_end, b->text + b->name_end,
                       b->end - b->name_end);
}

/* "name=value" of each, encoded anew, in `all`. */
static int read_pairs(struct text query, struct buf *all, struct pair *pairs, size_t *ret_n)
{
    size_t n = 0;
    int r = 0;
    while (query.n && r >= 0) {
        const char *amp = memchr(query.p, '&', query.n);
        struct text one = { query.p, amp ? (size_t)(amp - query.p) : query.n };
        const char *is = memchr(one.p, '=', one.n);
        struct text name = { one.p, is ? (size_t)(is - one.p) : one.n };
        struct text value = { is ? is + 1 : one.p, is ? one.n - name.n - 1 : 0 };
        query.p += one.n + (amp != NULL);
        query.n -= one.n + (amp != NULL);
        if (one.n == 0)
            continue;
        if (n == PAIRS_MAX)
            return -E2BIG;
        pairs[n].from = all->len;
        r = put_again(all, name, false);
        pairs[n].name_end = all->len;
        if (r >= 0)
            r = buf_append(all, "=", 1);
        if (r >= 0)
            r = put_again(all, value, false);
        pairs[n++].end = all->len;
    }
    *ret_n = n;
    return r;
}

static int put_query(struct buf *out, struct text query)
{
    _cleanup_(buf_done) struct buf all = BUF_INIT(CANON_MAX);
    struct pair *pairs = calloc(PAIRS_MAX, sizeof(*pairs));
    size_t n = 0;
    int r = pairs ? read_pairs(query, &all, pairs, &n) : -ENOMEM;
    for (size_t i = 0; i < n; i++)
        pairs[i].text = all.data;
    if (r >= 0 && n)
        qsort(pairs, n, sizeof(*pairs), compare_pairs);
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = i ? buf_append(out, "&", 1) : 0;
        if (r >= 0)
            r = buf_append(out, all.data + pairs[i].from, pairs[i].end - pairs[i].from);
    }
    free(pairs);
    return r;
}

static int compare_fields(const void *left, const void *right)
{
    const struct head_field *a = left, *b = right;
    int r = strncasecmp(a->name.p, b->name.p, a->name.n < b->name.n ? a->name.n : b->name.n);
    return r ? r : a->name.n < b->name.n ? -1 : a->name.n > b->name.n;
}

static int put_lower(struct buf *out, struct text t)
{
    int r = 0;
    for (size_t i = 0; i < t.n && r >= 0; i++) {
        char c = (char)(t.p[i] >= 'A' && t.p[i] <= 'Z' ? t.p[i] | 0x20 : t.p[i]);
        r = buf_append(out, &c, 1);
    }
    return r;
}

/* Blanks in a row are one. */
static int put_value(struct buf *out, struct text t)
{
    int r = 0;
    for (size_t i = 0; i < t.n && r >= 0; i++)
        if (t.p[i] != ' ' || i == 0 || t.p[i - 1] != ' ')
            r = buf_append(out, t.p + i, 1);
    return r < 0 ? r : buf_append(out, "\n", 1);
}

static int put_names(struct buf *out, const struct head_field *fields, size_t n)
{
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = i ? buf_append(out, ";", 1) : 0;
        if (r >= 0)
            r = put_lower(out, fields[i].name);
    }
    return r;
}

static int put_canonical(struct buf *out, const struct sigv4_key *key,
                         const struct sigv4_request *q, const struct head_field *fields)
{
    const char *mark = memchr(q->target.p, '?', q->target.n);
    struct text path = { q->target.p, mark ? (size_t)(mark - q->target.p) : q->target.n };
    struct text query = { mark ? mark + 1 : q->target.p, mark ? q->target.n - path.n - 1 : 0 };
    int r = buf_append(out, q->method.p, q->method.n);
    if (r >= 0)
        r = buf_append(out, "\n", 1);
    if (r >= 0)
        r = put_path(out, path, key->service);
    if (r >= 0)
        r = buf_append(out, "\n", 1);
    if (r >= 0)
        r = put_query(out, query);
    if (r >= 0)
        r = buf_append(out, "\n", 1);
    for (size_t i = 0; i < q->n_fields && r >= 0; i++) {
        r = put_lower(out, fields[i].name);
        if (r >= 0)
            r = buf_append(out, ":", 1);
        if (r >= 0)
            r = put_value(out, fields[i].value);
    }
    if (r >= 0)
        r = buf_append(out, "\n", 1);
    if (r >= 0)
        r = put_names(out, fields, q->n_fields);
    return r < 0 ? r : buf_printf(out, "\n%s", q->payload);
}

/* ---- the signature ---- */

static void mac(unsigned char key[HASH_BYTES], const char *text)
{
    unsigned char hash[HASH_BYTES] = { 0 };
    (void)HMAC(EVP_sha256(), key, HASH_BYTES, (const unsigned char *)text, strlen(text), hash,
               NULL);
    memcpy(key, hash, HASH_BYTES);
}

static int signing_key(const struct sigv4_key *key, const char *date, unsigned char out[HASH_BYTES])
{
    char day[9];
    char *first = malloc(4 + key->n_secret);
    if (!first)
        return -ENOMEM;
    static const char before[4] = { 'A', 'W', 'S', '4' };
    memcpy(first, before, sizeof(before));
    memcpy(first + 4, key->secret, key->n_secret);
    (void)snprintf(day, sizeof(day), "%.8s", date);
    (void)HMAC(EVP_sha256(), first, (int)(4 + key->n_secret), (const unsigned char *)day, 8, out,
               NULL);
    explicit_bzero(first, 4 + key->n_secret);
    free(first);
    mac(out, key->region);
    mac(out, key->service);
    mac(out, "aws4_request");
    return 0;
}

int sigv4_sign(const struct sigv4_key *key, const struct sigv4_request *q, struct buf *out)
{
    _cleanup_(buf_done) struct buf canon = BUF_INIT(CANON_MAX), text = BUF_INIT(1024);
    struct head_field fields[SIGV4_FIELDS_MAX];
    unsigned char secret[HASH_BYTES];
    char hash[SIGV4_HASH_SIZE];
    if (q->n_fields == 0 || q->n_fields > SIGV4_FIELDS_MAX)
        return -E2BIG;
    memcpy(fields, q->fields, q->n_fields * sizeof(*fields));
    qsort(fields, q->n_fields, sizeof(*fields), compare_fields);
    int r = put_canonical(&canon, key, q, fields);
    if (r < 0)
        return r;
    sigv4_hash(canon.data, canon.len, hash);
    r = buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/%s/aws4_request\n%s", q->date, q->date,
                   key->region, key->service, hash);
    if (r >= 0)
        r = signing_key(key, q->date, secret);
    if (r < 0)
        return r;
    mac(secret, text.data);
    hex_encode(secret, HASH_BYTES, hash);
    explicit_bzero(secret, sizeof(secret));
    r = buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request, SignedHeaders=",
                   key->id, q->date, key->region, key->service);
    if (r >= 0)
        r = put_names(out, fields, q->n_fields);
    return r < 0 ? r : buf_printf(out, ", Signature=%s", hash);
}
