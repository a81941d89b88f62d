#include "cli/client_private.h"

#include <errno.h>
#include <string.h>

#include "cli/xmem.h"

#define TEAM_HEADER "X-Warren-Team: "
#define ANSWER_MAX (64u << 20) /* a page of 1000 sandboxes with all their metadata */
#define CONNECT_TIMEOUT_MS 5000L
#define CALL_TIMEOUT_S 180L  /* an answer from a machine that is swapping */
#define WORK_TIMEOUT_S 3600L /* a POST may have to fetch an archive first, or put away gigabytes */
#define STREAM_SILENCE_S 60L /* the daemon sends a ping every 15 s */
#define STREAM_BUFFER 65536L /* a full output frame in one read */
#define SINK_BUFFER 262144L  /* a frame of a file */

/* ---- one call ---- */

static size_t on_data(char *p, size_t size, size_t n, void *arg)
{
    struct request *call = arg;
    size_t len = size * n;
    int r;
    call->client->moved = true;
    if (call->status == 0)
        (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->status);
    if (call->on_line && call->status < 300)
        r = ndjson_feed(&call->lines, p, len);
    else if (call->sink && call->status < 300)
        r = call->sink(call->arg, p, len);
    else
        r = buf_append(&call->text, p, len);
    if (r < 0) {
        call->result = r;
        return 0; /* curl ends the transfer */
    }
    return len;
}

static size_t on_source(char *p, size_t size, size_t n, void *arg)
{
    struct request *call = arg;
    ssize_t r = call->source(call->arg, p, size * n);
    if (r < 0) {
        call->result = (int)r;
        return CURL_READFUNC_ABORT;
    }
    return (size_t)r;
}

static int add_header(struct request *call, const char *line)
{
    struct curl_slist *l = curl_slist_append(call->headers, line);
    if (!l)
        return -ENOMEM;
    call->headers = l;
    return 0;
}

static int set_headers(struct request *call)
{
    const char *auth = call->client->auth;
    char type[128];
    int r = add_header(call, call->on_line ? "Accept: application/x-ndjson"
                             : call->sink  ? "Accept: */*"
                                           : "Accept: application/json");
    if (r == 0 && auth)
        r = add_header(call, auth);
    if (r == 0 && call->client->team)
        r = add_header(call, call->client->team);
    if (r == 0 && call->body_type) {
        (void)snprintf(type, sizeof(type), "Content-Type: %s", call->body_type);
        r = add_header(call, type);
    }
    if (r == 0 && !call->source)
        r = add_header(call, "Expect:"); /* small bodies go with the head */
    if (r == 0)
        (void)curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return r;
}

static void set_body(struct request *call)
{
    CURL *e = call->easy;
    if (call->source) {
        (void)curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_source);
        (void)curl_easy_setopt(e, CURLOPT_READDATA, call);
        (void)curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->source_len);
        (void)curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 512L * 1024);
    } else if (call->body_type || strcmp(call->method, "POST") == 0) {
        (void)curl_easy_setopt(e, CURLOPT_POSTFIELDS, call->body ? call->body : "");
        (void)curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
    }
    if (strcmp(call->method, "GET") != 0)
        (void)curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, call->method);
}

static void set_limits(struct request *call)
{
    CURL *e = call->easy;
    (void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    if (call->on_line || call->sink) {
        (void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, call->sink ? SINK_BUFFER : STREAM_BUFFER);
        (void)curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
        (void)curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, STREAM_SILENCE_S);
    } else if (call->timeout_s >= 0 && !call->source) {
        (void)curl_easy_setopt(e, CURLOPT_TIMEOUT,
                               call->timeout_s ? call->timeout_s : CALL_TIMEOUT_S);
    }
}

static void set_place(const struct client *c, CURL *e, const char *url)
{
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_URL, url);
    (void)curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (c->socket)
        (void)curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, c->socket);
    if (c->direct)
        (void)curl_easy_setopt(e, CURLOPT_PROXY, "");
    if (c->ca) /* the system's directory counts all the same */
        (void)curl_easy_setopt(e, CURLOPT_CAINFO, c->ca);
}

int client_start(struct client *c, struct request *call, struct err *err)
{
    _cleanup_free_ char *url = xasprintf("%s%s", c->base, call->path);
    call->client = c;
    call->active = true;
    call->done = false;
    call->result = 0;
    call->status = 0;
    call->code[0] = '\0';
    call->text = (struct buf)BUF_INIT(ANSWER_MAX);
    ndjson_init(&call->lines, call->on_line, call->arg);
    call->easy = curl_easy_init();
    if (!call->easy || set_headers(call) < 0)
        return err_set(err, ENOMEM, "cannot begin a request");

    CURL *e = call->easy;
    set_place(c, e, url);
    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, call);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, call);
    set_body(call);
    set_limits(call);
    if (curl_multi_add_handle(c->multi, e) != CURLM_OK)
        return err_set(err, EIO, "cannot begin a request");
    return 0;
}

static void finish(struct request *call, CURLcode rc)
{
    int r = call->result; /* set where a callback ended it */
    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->status);
    call->done = true;
    if (r == 0 && rc == CURLE_OK && call->on_line && call->status < 300)
        r = ndjson_end(&call->lines);
    if (call->text.len > 0)
        call->json = json_loadb(call->text.data, call->text.len, JSON_ALLOW_NUL, NULL);
    if (call->status >= 400) /* an early refusal may also have cut an upload */
        call->result = client_api_error(call);
    else if (r == -EPROTO)
        call->result = err_set(&call->err, EPROTO, "warrend at %s sent a line that is not JSON",
                               client_where(call->client));
    else if (r < 0)
        call->result = call->err.code ? r : err_set(&call->err, -r, "the request was cut short");
    else if (rc != CURLE_OK)
        call->result = client_transport_error(call, rc, &call->err);
    else if (call->status >= 300 || (call->text.len > 0 && !call->json))
        call->result = err_set(&call->err, EPROTO, "what answers at %s is not warrend",
                               client_where(call->client));
}

void request_done(struct request *call)
{
    if (!call->active)
        return;
    if (call->easy) {
        (void)curl_multi_remove_handle(call->client->multi, call->easy);
        curl_easy_cleanup(call->easy);
        call->easy = NULL;
    }
    curl_slist_free_all(call->headers);
    call->headers = NULL;
    buf_done(&call->text);
    ndjson_done(&call->lines);
    json_decref(call->json);
    call->json = NULL;
    call->err = (struct err)ERR_INIT;
    call->active = call->done = false;
}

/* ---- the loop ---- */

/* True when a call was finished. */
static bool reap(struct client *c)
{
    CURLMsg *m;
    int left;
    bool any = false;
    while ((m = curl_multi_info_read(c->multi, &left))) {
        struct request *call = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode rc = m->data.result;
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &call);
        /* Taken out at once, so that its connection is free for the next call. */
        (void)curl_multi_remove_handle(c->multi, m->easy_handle);
        finish(call, rc);
        any = true;
    }
    return any;
}

int client_poll(struct client *c, struct curl_waitfd *fds, unsigned nfds, int timeout_ms)
{
    int running;
    c->moved = false;
    (void)curl_multi_perform(c->multi, &running);
    if (reap(c) || c->moved)
        timeout_ms = 0; /* there is news: only look at the fds */
    if (curl_multi_poll(c->multi, fds, nfds, timeout_ms, NULL) != CURLM_OK)
        return -EIO;
    if (timeout_ms != 0) {
        (void)curl_multi_perform(c->multi, &running);
        (void)reap(c);
    }
    return 0;
}

int client_perform(struct client *c, struct request *call, struct err *err)
{
    int r = client_start(c, call, err);
    while (r == 0 && !call->done)
        r = client_poll(c, NULL, 0, 1000);
    if (r < 0)
        return r;
    if (call->result < 0 && err)
        *err = call->err;
    return call->result;
}

int client_call(struct client *c, const char *method, const char *path, const json_t *body,
                json_t **ret_json, char ret_code[REQUEST_CODE_MAX], struct err *err)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_(request_done) struct request call = { .method = method, .path = path };
    if (strcmp(method, "POST") == 0)
        call.timeout_s = WORK_TIMEOUT_S;
    if (body) {
        text = json_dumps(body, JSON_COMPACT);
        if (!text)
            return err_set(err, ENOMEM, "cannot write the request");
        call.body = text;
        call.body_len = strlen(text);
        call.body_type = "application/json";
    }
    int r = client_perform(c, &call, err);
    if (ret_code)
        memcpy(ret_code, call.code, REQUEST_CODE_MAX);
    if (r < 0)
        return r;
    if (ret_json)
        *ret_json = take_ptr(call.json);
    return 0;
}

/* ---- a connection for something else ---- */

CURL *client_raw(struct client *c)
{
    CURL *e = curl_easy_init();
    if (!e)
        return NULL;
    set_place(c, e, c->base);
    (void)curl_easy_setopt(e, CURLOPT_CONNECT_ONLY, 1L);
    (void)curl_easy_setopt(e, CURLOPT_HTTPPROXYTUNNEL, 1L); /* what passes is not HTTP for long */
    (void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    (void)curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
    return e;
}

/* Of "scheme://user@host:port/path": what Host says, and what goes before a path. */
static struct text_pair {
    const char *host;
    int host_n;
    const char *path;
} split_base(const char *base)
{
    const char *host = strstr(base, "://");
    host = host ? host + 3 : base;
    size_t n = strcspn(host, "/?#");
    const char *path = host + n;
    const char *at = memrchr(host, '@', n);
    if (at) {
        n -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    return (struct text_pair){ host, (int)n, path };
}

int client_put_head(struct client *c, const char *method, const char *path, struct buf *out)
{
    struct text_pair at = split_base(c->base);
    int r = buf_printf(out, "%s %s%s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: warren/%s\r\n", method,
                       at.path, path, at.host_n, at.host, WARREN_VERSION);
    if (r >= 0 && c->auth)
        r = buf_printf(out, "%s\r\n", c->auth);
    if (r >= 0 && c->team)
        r = buf_printf(out, "%s\r\n", c->team);
    return r;
}

/* ---- making one ---- */

static bool is_loopback(const char *url)
{
    static const char *const hosts[] = { "127.", "localhost", "[::1]" };
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        if (strncmp(host, hosts[i], strlen(hosts[i])) == 0)
            return true;
    return false;
}

int client_new(const struct client_config *config, struct client **ret_client, struct err *err)
{
    _cleanup_(client_freep) struct client *c = xcalloc(1, sizeof(*c));
    if (config->key && strpbrk(config->key, "\r\n"))
        return err_set(err, EINVAL, "the key holds a line break");
    if (config->socket) {
        c->socket = xstrdup(config->socket);
        c->base = xstrdup("http://warren");
        c->direct = true;
    } else {
        c->base = xasprintf("%s%s", strstr(config->url, "://") ? "" : "http://", config->url);
        while (*c->base && c->base[strlen(c->base) - 1] == '/')
            c->base[strlen(c->base) - 1] = '\0';
        c->direct = is_loopback(c->base);
    }
    if (config->key)
        c->auth = xasprintf("Authorization: Bearer %s", config->key);
    if (config->team)
        c->team = xasprintf(TEAM_HEADER "%s", config->team);
    if (config->ca)
        c->ca = xstrdup(config->ca);
    if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK || !(c->multi = curl_multi_init()))
        return err_set(err, ENOMEM, "cannot set libcurl up");
    *ret_client = take_ptr(c);
    return 0;
}

void client_free(struct client *c)
{
    if (!c)
        return;
    if (c->multi)
        (void)curl_multi_cleanup(c->multi);
    free(c->socket);
    free(c->base);
    if (c->auth)
        explicit_bzero(c->auth, strlen(c->auth));
    free(c->auth);
    free(c->team);
    free(c->ca);
    free(c);
}

const char *client_where(const struct client *c)
{
    return c->socket ? c->socket : c->base;
}

const char *client_team(const struct client *c)
{
    return c->team ? c->team + strlen(TEAM_HEADER) : NULL;
}

bool client_is_here(const struct client *c)
{
    return c->direct;
}
