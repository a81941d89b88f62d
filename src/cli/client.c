#include "cli/client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cli/object.h"
#include "cli/xmem.h"

#define ANSWER_MAX (64u << 20) /* a page of 1000 sandboxes with all their metadata */
#define CONNECT_TIMEOUT_MS 5000L
#define CALL_TIMEOUT_S 180L  /* making a sandbox on a machine that is swapping */
#define STREAM_SILENCE_S 60L /* the daemon sends a ping every 15 s */
#define STREAM_BUFFER 65536L /* a full output frame in one read */

struct client {
    CURLM *multi;
    char *socket; /* NULL: TCP */
    char *base;   /* what comes before a path */
    char *auth;   /* a header line, or NULL */
    char *team;   /* likewise */
    bool direct;  /* no proxy between */
    bool moved;   /* bytes arrived in this round */
};

/* ---- what went wrong, for a person ---- */

/* The connect's own errno says which; curl only says that it failed. */
static int socket_errno(const char *path)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(sa.sun_path))
        return ENAMETOOLONG;
    memcpy(sa.sun_path, path, strlen(path) + 1);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return errno;
    return 0;
}

#define HOW_TO_START "start it with `sudo ./dev up` or `systemctl start warren`"

static int unreachable(const struct client *c, struct err *err)
{
    if (!c->socket)
        return err_set(err, ECONNREFUSED, "cannot reach warrend at %s; " HOW_TO_START, c->base);
    int e = socket_errno(c->socket);
    if (e == EACCES || e == EPERM)
        return err_set(err, EACCES,
                       "no permission on %s; use sudo, or a key over TCP: "
                       "WARREN_URL=http://127.0.0.1:7070 WARREN_API_KEY=...",
                       c->socket);
    if (e == ENAMETOOLONG)
        return err_set(err, e, "the socket's path is too long: %s", c->socket);
    return err_set(err, e ? e : ECONNREFUSED, "cannot reach warrend at %s; " HOW_TO_START,
                   c->socket);
}

static int transport_error(const struct request *call, CURLcode rc, struct err *err)
{
    const struct client *c = call->client;
    switch (rc) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST: return unreachable(c, err);
    case CURLE_OPERATION_TIMEDOUT:
        if (call->status == 0 && !c->socket) {
            double connected = 0;
            (void)curl_easy_getinfo(call->easy, CURLINFO_CONNECT_TIME, &connected);
            if (connected <= 0)
                return unreachable(c, err);
        }
        return err_set(err, ETIMEDOUT, "no answer from warrend at %s in time", client_where(c));
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return err_set(err, ECONNRESET, "warrend at %s ended the connection", client_where(c));
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_set(err, EINVAL, "'%s' is not an address; it looks like http://127.0.0.1:7070",
                       c->base);
    default:
        return err_set(err, EIO, "talking to warrend at %s: %s", client_where(c),
                       curl_easy_strerror(rc));
    }
}

static int status_errno(long status)
{
    switch (status) {
    case 401:
    case 403: return EACCES;
    case 404: return ENOENT;
    case 409: return EBUSY;
    case 507: return ENOSPC;
    default: return status >= 500 ? EIO : EINVAL;
    }
}

static int api_error(struct request *call)
{
    const json_t *e = json_object_get(call->json, "error");
    const char *message = member_text(e, "message");
    (void)snprintf(call->code, sizeof(call->code), "%s", member_text(e, "code"));
    int code = status_errno(call->status);
    if (call->status == 401)
        return err_set(&call->err, code,
                       "%s; set WARREN_API_KEY (or --key), or use sudo and the admin socket",
                       *message ? message : "warrend does not take this key");
    if (*message)
        return err_set(&call->err, code, "%s", message);
    return err_set(&call->err, code, "warrend answered status %ld without saying why (is %s it?)",
                   call->status, client_where(call->client));
}

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
        (void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, STREAM_BUFFER);
        (void)curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
        (void)curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, STREAM_SILENCE_S);
    } else if (call->timeout_s >= 0 && !call->source) {
        (void)curl_easy_setopt(e, CURLOPT_TIMEOUT,
                               call->timeout_s ? call->timeout_s : CALL_TIMEOUT_S);
    }
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
    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, call);
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_URL, url);
    (void)curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, call);
    if (c->socket)
        (void)curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, c->socket);
    if (c->direct)
        (void)curl_easy_setopt(e, CURLOPT_PROXY, "");
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
        call->result = api_error(call);
    else if (r == -EPROTO)
        call->result = err_set(&call->err, EPROTO, "warrend at %s sent a line that is not JSON",
                               client_where(call->client));
    else if (r < 0)
        call->result = call->err.code ? r : err_set(&call->err, -r, "the request was cut short");
    else if (rc != CURLE_OK)
        call->result = transport_error(call, rc, &call->err);
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
        c->team = xasprintf("X-Warren-Team: %s", config->team);
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
    free(c);
}

const char *client_where(const struct client *c)
{
    return c->socket ? c->socket : c->base;
}
