/* One request, over libcurl. It signs what it sends; the hash of the body is ours to give, for it reads a body only
 * when it sends it. */
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"
#include "s3/private.h"

#define HEAD_MAX (64 * 1024)
#define SLOW_BYTES_PER_S 1
#define SHA256_HEX 65
#define HASH_LINE 96

static CURL *take_handle(struct s3 *s3)
{
    CURL *easy = NULL;
    (void)pthread_mutex_lock(&s3->lock);
    if (s3->nidle > 0)
        easy = s3->idle[--s3->nidle];
    (void)pthread_mutex_unlock(&s3->lock);
    return easy ? easy : curl_easy_init();
}

static void give_handle(struct s3 *s3, CURL *easy)
{
    curl_easy_reset(easy);
    (void)pthread_mutex_lock(&s3->lock);
    if (s3->nidle < S3_HANDLES)
        s3->idle[s3->nidle++] = take_ptr(easy);
    (void)pthread_mutex_unlock(&s3->lock);
    curl_easy_cleanup(easy);
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct s3_ask *ask = arg;
    ask->head_bytes += n;
    ask->whole_head = n == 2 && p[0] == '\r';
    return ask->head_bytes > HEAD_MAX ? 0 : n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct s3_ask *ask = arg;
    if (ask->most && ask->answer.len + n > ask->most)
        ask->too_long = true;
    if (buf_append(&ask->answer, p, n) < 0)
        ask->too_long = true; /* of a failure's page, what fits is enough */
    return n > 0 && ask->too_long && ask->most ? 0 : n;
}

static size_t on_read(char *out, size_t size, size_t n, void *arg)
{
    struct s3_ask *ask = arg;
    size_t left = ask->body_size - ask->sent;
    size_t now = size * n < left ? size * n : left;
    memcpy(out, (const char *)ask->body + ask->sent, now);
    ask->sent += now;
    return now;
}

static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct s3_ask *ask = arg;
    if (origin != SEEK_SET || offset < 0 || (size_t)offset > ask->body_size)
        return CURL_SEEKFUNC_FAIL;
    ask->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct s3 *s3 = arg;
    return s3->cancelled && s3->cancelled(s3->arg);
}

static int hash_line(const struct s3_ask *ask, char out[HASH_LINE])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    char hex[SHA256_HEX];
    if (EVP_Digest(ask->body ? ask->body : "", ask->body_size, raw, &len, EVP_sha256(), NULL) !=
            1 ||
        len * 2 + 1 != sizeof(hex))
        return -EIO;
    hex_encode(raw, len, hex);
    (void)snprintf(out, HASH_LINE, "x-amz-content-sha256: %s", hex);
    return 0;
}

static void set_rules(CURL *easy, struct s3 *s3)
{
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)s3->timeout_s);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_PER_S);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)s3->timeout_s);
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    if (s3->ca_file)
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, s3->ca_file);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFODATA, s3);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "warren/" WARREN_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, s3->sign);
    (void)curl_easy_setopt(easy, CURLOPT_USERPWD, s3->user);
}

static void set_ask(CURL *easy, struct s3_ask *ask)
{
    (void)curl_easy_setopt(easy, CURLOPT_URL, ask->url);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, ask);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, ask);
    if (strcmp(ask->method, "PUT") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)ask->body_size);
        (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
        (void)curl_easy_setopt(easy, CURLOPT_READDATA, ask);
        (void)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
        (void)curl_easy_setopt(easy, CURLOPT_SEEKDATA, ask);
    } else if (strcmp(ask->method, "GET") != 0) {
        (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, ask->method);
    }
}

static int failed(const struct s3 *s3, const struct s3_ask *ask, CURLcode code, struct err *err)
{
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return err_fail(err, FAIL_CANCELLED, "cancelled");
    if (ask->too_long || ask->head_bytes > HEAD_MAX)
        return err_fail_as(err, EMSGSIZE, FAIL_ARCHIVE_FAILED,
                           "the object storage's answer for '%s' is longer than it may be",
                           ask->key);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        return err_fail_as(err, EPROTO, FAIL_ARCHIVE_FAILED,
                           "the certificate of the object storage cannot be trusted");
    if (code == CURLE_OUT_OF_MEMORY)
        return err_set(err, ENOMEM, "cannot allocate a request");
    (void)err_fail(err, FAIL_ARCHIVE_FAILED, "the object storage cannot be reached: %s",
                   curl_easy_strerror(code));
    return -EAGAIN;
}

static void learn(CURL *easy, struct s3_ask *ask)
{
    struct curl_header *date = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &ask->status);
    if (curl_easy_header(easy, "Date", 0, CURLH_HEADER, -1, &date) == CURLHE_OK) {
        time_t at = curl_getdate(date->value, NULL);
        ask->now_ms = at > 0 ? (int64_t)at * 1000 : 0;
    }
}

int s3_exchange(struct s3 *s3, struct s3_ask *ask, struct err *err)
{
    char hash[HASH_LINE];
    CURL *easy = take_handle(s3);
    if (!easy || hash_line(ask, hash) < 0) {
        if (easy)
            curl_easy_cleanup(easy);
        return err_set(err, ENOMEM, "cannot allocate a request");
    }
    buf_clear(&ask->answer);
    ask->status = 0;
    ask->sent = ask->head_bytes = 0;
    ask->too_long = ask->whole_head = false;
    struct curl_slist *headers = curl_slist_append(NULL, hash);
    if (headers && s3->token)
        (void)curl_slist_append(headers, s3->token);
    if (headers) /* no waiting for a 100 */
        (void)curl_slist_append(headers, "Expect:");
    set_rules(easy, s3);
    set_ask(easy, ask);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    CURLcode code = headers ? curl_easy_perform(easy) : CURLE_OUT_OF_MEMORY;
    learn(easy, ask);
    if (code == CURLE_OK && !ask->whole_head) /* which curl takes for an answer without a body */
        code = CURLE_GOT_NOTHING;
    int r = code == CURLE_OK ? 0 : failed(s3, ask, code, err);
    give_handle(s3, easy);
    for (struct curl_slist *l = headers; l; l = l->next)
        explicit_bzero(l->data, strlen(l->data));
    curl_slist_free_all(headers);
    return r;
}
