#include "s3/s3.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/id.h"
#include "s3/private.h"

#define PAGE_MAX (4 * 1024 * 1024) /* 1000 objects with keys of 1024 bytes, and as much again */
#define ERROR_MAX (16 * 1024)
#define LIST_PAGE "1000"
#define LIST_PAGES_MAX 100000
#define BACKOFF_MS 200
#define BACKOFF_MAX_MS 10000
#define URL_MAX 8192

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void global_init(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* ---- what the operator said ---- */

static bool word(const char *text, const char *others, size_t max)
{
    size_t n = text ? strlen(text) : 0;
    if (n == 0 || n > max)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(others, text[i]))
            return false;
    return true;
}

bool s3_key_valid(const char *key)
{
    return word(key, "/._-", S3_KEY_MAX / 2) && key[0] != '/' && !strstr(key, "//") &&
           !strstr(key, "..");
}

static bool printable(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static int check_endpoint(const char *url, struct err *err)
{
    const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
                       : strncmp(url, "http://", 7) == 0 ? url + 7
                                                         : NULL;
    if (!host || !*host || !printable(host) || strpbrk(host, "/?#@\\") || strlen(host) > 255)
        return err_set(err, EINVAL, "'%.200s' is no endpoint: it should be https://HOST[:PORT]",
                       url);
    size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    bool loopback = (n == 9 && strncmp(host, "localhost", n) == 0) ||
                    (n == 5 && strncmp(host, "[::1]", n) == 0) ||
                    (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == n);
    if (url[4] == ':' && !loopback)
        return err_set(err, EINVAL, "'%.200s' is in the clear, which is for loopback only", url);
    return 0;
}

static int check(const struct s3_config *c, struct err *err)
{
    if (!word(c->bucket, ".-", 63) || strstr(c->bucket, ".."))
        return err_set(err, EINVAL, "'%.80s' is not the name of a bucket",
                       c->bucket ? c->bucket : "");
    if (*c->prefix && !s3_key_valid(c->prefix))
        return err_set(err, EINVAL,
                       "the prefix '%.80s' may have letters, digits and '/', '.', '_', '-' only",
                       c->prefix);
    if (!word(c->region, "-", 40))
        return err_set(err, EINVAL, "'%.80s' is not a region", c->region ? c->region : "");
    if (!c->key_id || !c->secret || !*c->key_id || !*c->secret || strchr(c->key_id, ':') ||
        !printable(c->key_id) || !printable(c->secret) || (c->token && !printable(c->token)))
        return err_set(err, EINVAL, "there are no credentials for the bucket '%s'", c->bucket);
    return check_endpoint(c->endpoint, err);
}

static int copy(struct s3 *s3, const struct s3_config *c)
{
    size_t n = strlen(c->prefix);
    while (n > 0 && c->prefix[n - 1] == '/')
        n--;
    if (asprintf(&s3->base, "%s/%s", c->endpoint, c->bucket) < 0)
        s3->base = NULL;
    if (asprintf(&s3->prefix, "%.*s%s", (int)n, c->prefix, n ? "/" : "") < 0)
        s3->prefix = NULL;
    if (asprintf(&s3->sign, "aws:amz:%s:s3", c->region) < 0)
        s3->sign = NULL;
    if (asprintf(&s3->user, "%s:%s", c->key_id, c->secret) < 0)
        s3->user = NULL;
    if (c->token && asprintf(&s3->token, "x-amz-security-token: %s", c->token) < 0)
        s3->token = NULL;
    s3->ca_file = c->ca_file ? strdup(c->ca_file) : NULL;
    return s3->base && s3->prefix && s3->sign && s3->user && (!c->token || s3->token) &&
                   (!c->ca_file || s3->ca_file)
               ? 0
               : -ENOMEM;
}

int s3_new(const struct s3_config *config, struct s3 **ret_s3, struct err *err)
{
    (void)pthread_once(&once, global_init);
    int r = check(config, err);
    if (r < 0)
        return r;
    _cleanup_(s3_freep) struct s3 *s3 = calloc(1, sizeof(*s3));
    if (!s3)
        return err_set(err, ENOMEM, "cannot allocate a client of object storage");
    (void)pthread_mutex_init(&s3->lock, NULL);
    s3->timeout_s = config->timeout_s ? config->timeout_s : 30;
    s3->tries = config->tries ? config->tries : 5;
    s3->cancelled = config->cancelled;
    s3->arg = config->arg;
    if (copy(s3, config) < 0)
        return err_set(err, ENOMEM, "cannot allocate a client of object storage");
    *ret_s3 = take_ptr(s3);
    return 0;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void s3_free(struct s3 *s3)
{
    if (!s3)
        return;
    for (size_t i = 0; i < s3->nidle; i++)
        curl_easy_cleanup(s3->idle[i]);
    (void)pthread_mutex_destroy(&s3->lock);
    free(s3->base);
    free(s3->prefix);
    free(s3->sign);
    wipe(s3->user);
    wipe(s3->token);
    free(s3->ca_file);
    free(s3);
}

/* ---- once more ---- */

static bool cancelled(const struct s3 *s3)
{
    return s3->cancelled && s3->cancelled(s3->arg);
}

/* Before try number `n`, from 1. */
static void back_off(const struct s3 *s3, unsigned n)
{
    uint64_t most = (uint64_t)BACKOFF_MS << (n < 7 ? n - 1 : 6);
    uint16_t chance = 0;
    (void)random_bytes(&chance, sizeof(chance));
    most = most < BACKOFF_MAX_MS ? most : BACKOFF_MAX_MS;
    /* Between half of it and all: many that failed together do not come back together. */
    int64_t end = clock_mono_ms() + (int64_t)(most / 2 + most / 2 * chance / UINT16_MAX);
    while (clock_mono_ms() < end && !cancelled(s3)) {
        const struct timespec nap = { .tv_nsec = 20000000 };
        (void)nanosleep(&nap, NULL);
    }
}

static bool passing(long status)
{
    return status >= 500 || status == 429 || status == 408;
}

static int refused(const struct s3 *s3, const struct s3_ask *ask, struct err *err)
{
    char code[S3_CODE_MAX];
    listing_code(ask->answer.data ? ask->answer.data : "", ask->answer.len, code);
    if (ask->status == 404 && strcmp(code, "NoSuchBucket") != 0)
        return err_fail_as(err, ENOENT, FAIL_ARCHIVE_FAILED, "'%s' is not in the object storage",
                           ask->key);
    return err_fail_as(err, ask->status == 403 ? EACCES : EIO, FAIL_ARCHIVE_FAILED,
                       "the object storage refused %s of '%s': %ld%s%s", ask->method, ask->key,
                       ask->status, code[0] ? ", " : "", code);
}

/* Until it works or is refused for good. What the answer had is in ask->answer, at 2xx in full. */
static int run(struct s3 *s3, struct s3_ask *ask, struct err *err)
{
    int r = 0;
    for (unsigned n = 1;; n++) {
        r = s3_exchange(s3, ask, err);
        if (r == 0 && ask->status >= 200 && ask->status < 300)
            return 0;
        bool again = r == -EAGAIN || (r == 0 && passing(ask->status));
        if (r == 0)
            r = refused(s3, ask, err);
        if (r == -EAGAIN)
            r = -EIO;
        if (!again || n >= s3->tries)
            return r;
        back_off(s3, n);
        if (cancelled(s3))
            return err_fail(err, FAIL_CANCELLED, "cancelled");
    }
}

/* ---- the operations ---- */

static int url_of(const struct s3 *s3, const char *key, char url[URL_MAX], struct err *err)
{
    if (!s3_key_valid(key) ||
        snprintf(url, URL_MAX, "%s/%s%s", s3->base, s3->prefix, key) >= URL_MAX)
        return err_set(err, EINVAL, "'%.80s' is not a key", key);
    return 0;
}

static int simple(struct s3 *s3, const char *method, const char *key, struct s3_ask *ask,
                  struct err *err)
{
    char url[URL_MAX];
    int r = url_of(s3, key, url, err);
    if (r < 0)
        return r;
    ask->method = method;
    ask->key = key;
    ask->url = url;
    r = run(s3, ask, err);
    ask->url = NULL;
    return r;
}

int s3_put(struct s3 *s3, const char *key, const void *p, size_t n, struct err *err)
{
    struct s3_ask ask = { .body = p ? p : "", .body_size = n, .answer = BUF_INIT(ERROR_MAX) };
    int r = simple(s3, "PUT", key, &ask, err);
    buf_done(&ask.answer);
    return r;
}

int s3_get(struct s3 *s3, const char *key, struct buf *ret, struct err *err)
{
    size_t room = ret->max - ret->len;
    struct s3_ask ask = { .answer = BUF_INIT(room > ERROR_MAX ? room : ERROR_MAX), .most = room };
    int r = simple(s3, "GET", key, &ask, err);
    if (r == 0 && buf_append(ret, ask.answer.data ? ask.answer.data : "", ask.answer.len) < 0)
        r = err_set(err, ENOMEM, "cannot allocate an object");
    buf_done(&ask.answer);
    return r;
}

int s3_delete(struct s3 *s3, const char *key, struct err *err)
{
    struct s3_ask ask = { .answer = BUF_INIT(ERROR_MAX) };
    int r = simple(s3, "DELETE", key, &ask, err);
    buf_done(&ask.answer);
    return r == -ENOENT ? 0 : r;
}

/* ---- what is there ---- */

struct relative {
    const struct s3 *s3;
    s3_object_fn fn;
    void *ctx;
};

static int give(void *ctx, const struct s3_object *o, struct err *err)
{
    struct relative *rel = ctx;
    size_t n = strlen(rel->s3->prefix);
    if (strncmp(o->key, rel->s3->prefix, n) != 0)
        return err_fail_as(err, EBADMSG, FAIL_ARCHIVE_FAILED,
                           "the object storage lists what was not asked for");
    struct s3_object own = *o;
    memmove(own.key, own.key + n, strlen(own.key + n) + 1);
    /* What has another shape is not ours. */
    return s3_key_valid(own.key) ? rel->fn(rel->ctx, &own, err) : 0;
}

static void quote(const char *text, char *out, size_t size)
{
    size_t at = 0;
    for (; *text && at + 4 < size; text++) {
        if (isalnum((unsigned char)*text) || strchr("-_.~", *text))
            out[at++] = *text;
        else
            at += (size_t)snprintf(out + at, size - at, "%%%02X", (unsigned char)*text);
    }
    out[at] = '\0';
}

static int list_page(struct s3 *s3, const char *prefix, struct listing_end *end, s3_object_fn fn,
                     void *ctx, int64_t *ret_now_ms, struct err *err)
{
    char url[URL_MAX], token[S3_TOKEN_MAX * 3 + 8], whole[S3_KEY_MAX], quoted[S3_KEY_MAX * 3 + 8];
    struct relative rel = { s3, fn, ctx };
    (void)snprintf(whole, sizeof(whole), "%s%s", s3->prefix, prefix);
    quote(whole, quoted, sizeof(quoted));
    quote(end->token, token, sizeof(token));
    /* In order of their names: libcurl 7.88 signs a query as it stands, the service sorts it. */
    if (snprintf(url, sizeof(url), "%s?%s%s%slist-type=2&max-keys=" LIST_PAGE "&prefix=%s",
                 s3->base, end->more ? "continuation-token=" : "", end->more ? token : "",
                 end->more ? "&" : "", quoted) >= (int)sizeof(url))
        return err_set(err, EMSGSIZE, "the list of '%.80s' cannot be asked for", prefix);
    struct s3_ask ask = {
        .method = "GET", .key = prefix, .url = url, .answer = BUF_INIT(PAGE_MAX), .most = PAGE_MAX
    };
    int r = run(s3, &ask, err);
    if (r == 0)
        r = listing_read(ask.answer.data ? ask.answer.data : "", ask.answer.len, give, &rel, end,
                         err);
    if (r == 0 && ret_now_ms)
        *ret_now_ms = ask.now_ms;
    buf_done(&ask.answer);
    return r;
}

int s3_list(struct s3 *s3, const char *prefix, s3_object_fn fn, void *ctx, int64_t *ret_now_ms,
            struct err *err)
{
    struct listing_end end = { .more = false };
    for (unsigned page = 0; page < LIST_PAGES_MAX; page++) {
        int r = list_page(s3, prefix, &end, fn, ctx, ret_now_ms, err);
        if (r < 0 || !end.more)
            return r;
    }
    return err_fail_as(err, EBADMSG, FAIL_ARCHIVE_FAILED, "the object storage's list has no end");
}
