#include "registry/exchange.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "registry/reference.h"

#define HANDLES_MAX 8        /* kept for their connections; the most threads of a pull and a few */
#define HEAD_MAX (64 * 1024) /* all header lines of an answer */
#define SLOW_BYTES_PER_S 16  /* fewer than this is silence */
#define BUFFER_BYTES (256 * 1024L) /* of a download: fewer calls than the usual 16 KiB */

struct http {
    struct http_config config;
    char insecure_host[REFERENCE_HOST_MAX + 1];
    char *allow;
    pthread_mutex_t lock;
    CURL *idle[HANDLES_MAX];
    size_t nidle;
};

/* What the callbacks of one exchange share. */
struct run {
    struct http *http;
    struct exchange *x;
    const char *host; /* with the port */
    struct err *err;
    size_t head_bytes;
    uint64_t sent;
    bool refused_address;
    int r; /* a callback's own failure, told in err */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void global_init(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_new(const struct http_config *config, struct http **ret_http, struct err *err)
{
    (void)pthread_once(&once, global_init);
    struct http *http = calloc(1, sizeof(*http));
    if (!http)
        return err_set(err, ENOMEM, "cannot allocate an HTTP client");
    http->config = *config;
    http->config.insecure_host = NULL;
    if (config->insecure_host)
        (void)snprintf(http->insecure_host, sizeof(http->insecure_host), "%s",
                       config->insecure_host);
    if (config->access.allow && !(http->allow = strdup(config->access.allow))) {
        free(http);
        return err_set(err, ENOMEM, "cannot allocate an HTTP client");
    }
    http->config.access.allow = http->allow;
    (void)pthread_mutex_init(&http->lock, NULL);
    *ret_http = http;
    return 0;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    for (size_t i = 0; i < http->nidle; i++)
        curl_easy_cleanup(http->idle[i]);
    (void)pthread_mutex_destroy(&http->lock);
    free(http->allow);
    free(http);
}

bool http_cancelled(const struct http *http)
{
    return http->config.cancelled && http->config.cancelled(http->config.arg);
}

static CURL *take_handle(struct http *http)
{
    CURL *easy = NULL;
    (void)pthread_mutex_lock(&http->lock);
    if (http->nidle > 0)
        easy = http->idle[--http->nidle];
    (void)pthread_mutex_unlock(&http->lock);
    return easy ? easy : curl_easy_init();
}

static void give_handle(struct http *http, CURL *easy)
{
    curl_easy_reset(easy); /* forgets what pointed to our stack; connections stay */
    (void)pthread_mutex_lock(&http->lock);
    if (http->nidle < HANDLES_MAX)
        http->idle[http->nidle++] = take_ptr(easy);
    (void)pthread_mutex_unlock(&http->lock);
    curl_easy_cleanup(easy);
}

/* ---- the head of an answer ---- */

static bool header_is(const char *p, size_t n, const char *name, const char **ret_v, size_t *ret_n)
{
    size_t len = strlen(name);
    if (n <= len || p[len] != ':' || strncasecmp(p, name, len) != 0)
        return false;
    for (p += len + 1, n -= len + 1; n > 0 && (*p == ' ' || *p == '\t'); p++)
        n--;
    while (n > 0 && strchr(" \t\r\n", p[n - 1]))
        n--;
    *ret_v = p;
    *ret_n = n;
    return true;
}

static void keep_text(char *out, size_t size, const char *p, size_t n)
{
    if (n >= size || memchr(p, '\0', n))
        return; /* as if it had not been there */
    memcpy(out, p, n);
    out[n] = '\0';
}

static void keep_number(const char *p, size_t n, uint64_t *ret_v, bool *ret_ok)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < n && i < 18 && p[i] >= '0' && p[i] <= '9'; i++)
        v = v * 10 + (uint64_t)(p[i] - '0');
    *ret_ok = i > 0;
    *ret_v = v;
}

static void keep_header(struct exchange *x, const char *p, size_t n)
{
    const char *v;
    size_t len;
    if (header_is(p, n, "Location", &v, &len)) {
        keep_text(x->location, sizeof(x->location), v, len);
    } else if (header_is(p, n, "Content-Type", &v, &len)) {
        const char *end = memchr(v, ';', len);
        keep_text(x->type, sizeof(x->type), v, end ? (size_t)(end - v) : len);
    } else if (header_is(p, n, "Docker-Content-Digest", &v, &len)) {
        if (sha_valid(v, len))
            keep_text(x->digest, sizeof(x->digest), v, len);
    } else if (header_is(p, n, "WWW-Authenticate", &v, &len)) {
        size_t used = strlen(x->challenge);
        if (used + 2 + len < sizeof(x->challenge) && !memchr(v, '\0', len)) {
            if (used > 0) {
                memcpy(x->challenge + used, ", ", 2);
                used += 2;
            }
            memcpy(x->challenge + used, v, len);
            x->challenge[used + len] = '\0';
        }
    } else if (header_is(p, n, "Content-Range", &v, &len)) {
        if (len > 6 && strncasecmp(v, "bytes ", 6) == 0)
            keep_number(v + 6, len - 6, &x->range_start, &x->ranged);
    } else if (header_is(p, n, "Retry-After", &v, &len)) {
        uint64_t s;
        bool ok;
        keep_number(v, len, &s, &ok);
        x->retry_after_s = ok && s < 3600 ? (unsigned)s : 0;
    }
}

static void forget_head(struct exchange *x)
{
    x->status = 0;
    x->location[0] = x->type[0] = x->digest[0] = x->challenge[0] = '\0';
    x->ranged = false;
    x->range_start = 0;
    x->retry_after_s = 0;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct run *run = arg;
    run->head_bytes += n;
    if (run->head_bytes > HEAD_MAX) {
        run->r = err_fail_as(run->err, EMSGSIZE, FAIL_REGISTRY_FAILED,
                             "the registry's answer has more than %d bytes of headers", HEAD_MAX);
        return 0;
    }
    run->x->talked = true;
    if (n > 5 && strncmp(p, "HTTP/", 5) == 0) {
        const char *space = memchr(p, ' ', n);
        uint64_t status = 0;
        bool ok = false;
        forget_head(run->x); /* what came before was a 1xx */
        if (space)
            keep_number(space + 1, n - (size_t)(space + 1 - p), &status, &ok);
        run->x->status = ok && status < 1000 ? (long)status : 0;
    } else {
        keep_header(run->x, p, n);
    }
    return n;
}

/* ---- bodies ---- */

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct run *run = arg;
    struct exchange *x = run->x;
    if (x->sink && (x->status == 200 || x->status == 206)) {
        run->r = x->sink(x->arg, x, p, n, run->err);
        return run->r < 0 ? 0 : n;
    }
    int r = buf_append(&x->answer, p, n);
    if (r < 0 && x->status >= 200 && x->status < 300) {
        run->r = err_fail_as(run->err, -r, FAIL_REGISTRY_FAILED,
                             "the registry's answer has more than %zu bytes", x->answer.max);
        return 0;
    }
    return n; /* of a failure's page, what fits is enough */
}

static size_t on_read(char *out, size_t size, size_t n, void *arg)
{
    struct run *run = arg;
    struct exchange *x = run->x;
    uint64_t left = x->body_size - run->sent;
    size_t want = size * n < left ? size * n : (size_t)left;
    ssize_t got = (ssize_t)want;
    if (x->body)
        memcpy(out, (const char *)x->body + run->sent, want);
    else
        got = pread(x->body_fd, out, want, (off_t)run->sent);
    if (got < 0 || (want > 0 && got == 0)) {
        run->r = err_set(run->err, got < 0 ? errno : EIO, "cannot read what is to be sent");
        return CURL_READFUNC_ABORT;
    }
    run->sent += (uint64_t)got;
    if (x->sent)
        x->sent(x->arg, run->sent);
    return (size_t)got;
}

static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct run *run = arg;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > run->x->body_size)
        return CURL_SEEKFUNC_FAIL;
    run->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* ---- the line ---- */

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct run *run = arg;
    return http_cancelled(run->http);
}

static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *addr)
{
    struct run *run = arg;
    if (purpose != CURLSOCKTYPE_IPCXN ||
        !access_address(&run->http->config.access, run->host, &addr->addr)) {
        run->refused_address = true;
        return CURL_SOCKET_BAD;
    }
    return socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol);
}

static bool host_is_insecure(const struct http *http, const char *host)
{
    size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    return http->insecure_host[0] && strlen(http->insecure_host) == n &&
           strncasecmp(http->insecure_host, host, n) == 0;
}

static int failed(struct run *run, CURLcode code, struct err *err)
{
    struct exchange *x = run->x;
    if (run->r < 0)
        return run->r; /* a callback told why */
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return err_fail(err, FAIL_CANCELLED, "cancelled");
    if (run->refused_address)
        return err_fail_as(
            err, EACCES, FAIL_FORBIDDEN,
            "'%s' has an address that this daemon does not connect to for you: a "
            "private or loopback one is for the operator and for hosts listed in the "
            "option registry-allow; a link-local one is for nobody",
            run->host);
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return err_fail_as(
            err, EPROTO, FAIL_REGISTRY_FAILED,
            "the certificate of '%s' cannot be trusted; if you know why, say insecure", run->host);
    case CURLE_COULDNT_RESOLVE_HOST:
        x->transient = true;
        return err_fail_as(err, EHOSTUNREACH, FAIL_REGISTRY_FAILED, "there is no host '%s'",
                           run->host);
    case CURLE_OPERATION_TIMEDOUT:
        x->transient = x->silent = true;
        return err_fail_as(err, ETIMEDOUT, FAIL_REGISTRY_FAILED, "'%s' does not answer", run->host);
    case CURLE_SSL_CONNECT_ERROR:
        return err_fail_as(
            err, EPROTO, FAIL_REGISTRY_FAILED,
            "'%s' does not speak TLS as it should; if it is a plain one, say insecure", run->host);
    case CURLE_OUT_OF_MEMORY: return err_set(err, ENOMEM, "cannot allocate a request");
    default:
        x->transient = true;
        return err_fail(err, FAIL_REGISTRY_FAILED, "the connection to '%s' failed: %s", run->host,
                        curl_easy_strerror(code));
    }
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
    _cleanup_free_ char *line = NULL;
    if (!value)
        return list;
    if (asprintf(&line, "%s: %s", name, value) < 0)
        return list;
    struct curl_slist *longer = curl_slist_append(list, line);
    explicit_bzero(line, strlen(line)); /* one of them is a secret */
    return longer ? longer : list;
}

static void set_method(CURL *easy, struct run *run)
{
    const struct exchange *x = run->x;
    if (strcmp(x->method, "HEAD") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (strcmp(x->method, "GET") == 0)
        return;
    /* With UPLOAD and a known size, a body is sent as it is read, an empty one too. */
    (void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, x->method);
    (void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)x->body_size);
    (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    (void)curl_easy_setopt(easy, CURLOPT_READDATA, run);
    (void)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    (void)curl_easy_setopt(easy, CURLOPT_SEEKDATA, run);
}

static void set_rules(CURL *easy, struct run *run, bool insecure)
{
    const struct http_config *config = &run->http->config;
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* addresses are checked here, not there */
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)config->timeout_s);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_PER_S);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)config->timeout_s);
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, insecure ? 0L : 1L);
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, insecure ? 0L : 2L);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, run);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFODATA, run);
}

static CURLcode perform(CURL *easy, struct run *run, bool insecure)
{
    const struct exchange *x = run->x;
    struct curl_slist *headers = NULL;
    char range[32];
    headers = add_header(headers, "Authorization", x->authorization);
    headers = add_header(headers, "Accept", x->accept);
    headers = add_header(headers, "Content-Type", x->content_type);
    set_rules(easy, run, insecure);
    set_method(easy, run);
    if (x->range_from > 0) {
        (void)snprintf(range, sizeof(range), "%llu-", (unsigned long long)x->range_from);
        (void)curl_easy_setopt(easy, CURLOPT_RANGE, range);
    }
    (void)curl_easy_setopt(easy, CURLOPT_URL, x->url);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "warren/" WARREN_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, run);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, run);
    CURLcode code = curl_easy_perform(easy);
    for (struct curl_slist *l = headers; l; l = l->next)
        explicit_bzero(l->data, strlen(l->data));
    curl_slist_free_all(headers);
    return code;
}

int exchange_run(struct http *http, struct exchange *x, struct err *err)
{
    char host[EXCHANGE_HOST_MAX];
    struct run run = { .http = http, .x = x, .host = host, .err = err };
    bool tls;
    int r = url_origin(x->url, &tls, host, err);
    if (r < 0)
        return r;
    bool insecure = host_is_insecure(http, host);
    if (!tls && !insecure && !host_is_loopback(host))
        return err_fail_as(err, EPROTO, FAIL_REGISTRY_FAILED,
                           "'%s' is to be reached in the clear, which is done only for loopback; "
                           "if you know why, say insecure",
                           host);
    CURL *easy = take_handle(http);
    if (!easy)
        return err_set(err, ENOMEM, "cannot allocate a request");
    forget_head(x);
    buf_clear(&x->answer);
    x->transient = x->silent = x->talked = false;
    CURLcode code = perform(easy, &run, insecure);
    if (code != CURLE_OK || run.r < 0)
        r = failed(&run, code, err);
    give_handle(http, easy);
    return r;
}

void exchange_done(struct exchange *x)
{
    buf_done(&x->answer);
}
