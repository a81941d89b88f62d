#include "registry/registry.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>

#include "base/json.h"
#include "registry/private.h"

#define REDIRECTS_MAX 5
#define CHALLENGES_MAX 3 /* a token that ran out on the way, once or twice */
#define TRIES_MAX 6      /* without a byte of progress */
#define PAUSE_MS 200     /* before the second; doubles: 6 s in all */
#define PAUSE_STEP_MS 50 /* how soon a cancel is seen */
#define RETRY_AFTER_MAX_S 20
#define ERROR_PAGE_MAX (64 * 1024)
#define ERROR_TEXT_MAX 120

/* ---- made and freed ---- */

static int ping(struct registry *reg, const char *scheme, struct exchange *x, struct err *err)
{
    char url[REFERENCE_HOST_MAX + 32];
    (void)snprintf(reg->base, sizeof(reg->base), "%s://%s", scheme, reference_api_host(&reg->ref));
    (void)snprintf(url, sizeof(url), "%s/v2/", reg->base);
    x->method = "GET";
    x->url = url;
    int r = exchange_run(reg->http, x, err);
    x->url = NULL;
    return r;
}

/* Which of the two a registry that may be plain speaks. No credentials are sent. On loopback plain
 * comes first: it is the rule there, and a TLS server says at once that it is one. */
static int find_scheme(struct registry *reg, bool loopback, struct err *err)
{
    _cleanup_(exchange_done) struct exchange x = { .answer = BUF_INIT(ERROR_PAGE_MAX) };
    int r = ping(reg, loopback ? "http" : "https", &x, err);
    if (loopback) {
        if (r < 0 && (!x.transient || x.silent))
            return r;
        return r >= 0 && x.status != 400 ? 0 : ping(reg, "https", &x, err);
    }
    if (r >= 0 || r == -ECANCELED || r == -EACCES)
        return r;
    return ping(reg, "http", &x, err);
}

int registry_new(const struct registry_config *config, struct registry **ret_reg, struct err *err)
{
    _cleanup_(registry_freep) struct registry *reg = calloc(1, sizeof(*reg));
    if (!reg)
        return err_set(err, ENOMEM, "cannot allocate a registry's client");
    reg->ref = *config->ref;
    bool loopback = host_is_loopback(reg->ref.host);
    char name[REFERENCE_HOST_MAX + 1];
    const char *host = reg->ref.host;
    size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    (void)snprintf(name, sizeof(name), "%.*s", (int)n, host);

    struct http_config http = { .access = config->access,
                                .insecure_host = config->insecure ? name : NULL,
                                .timeout_s = config->timeout_s,
                                .cancelled = config->cancelled,
                                .arg = config->arg };
    int r = access_host(&config->access, reg->ref.host, err);
    if (r >= 0)
        r = http_new(&http, &reg->http, err);
    struct credential_config auth = { .username = config->username,
                                      .password = config->password,
                                      .repo = reg->ref.repo,
                                      .push = config->push,
                                      .http = reg->http };
    if (r >= 0)
        r = credential_new(&auth, &reg->auth, err);
    (void)snprintf(reg->base, sizeof(reg->base), "https://%s", reference_api_host(&reg->ref));
    if (r >= 0 && (loopback || config->insecure))
        r = find_scheme(reg, loopback, err);
    if (r < 0)
        return r;
    *ret_reg = take_ptr(reg);
    return 0;
}

void registry_free(struct registry *reg)
{
    if (!reg)
        return;
    credential_free(reg->auth);
    http_free(reg->http);
    free(reg);
}

/* ---- asking ---- */

int registry_url(const struct registry *reg, const char *kind, const char *name,
                 char ret_url[EXCHANGE_URL_MAX], struct err *err)
{
    int n =
        snprintf(ret_url, EXCHANGE_URL_MAX, "%s/v2/%s/%s/%s", reg->base, reg->ref.repo, kind, name);
    return n > 0 && n < EXCHANGE_URL_MAX ? 0 : err_set(err, ENAMETOOLONG, "an address is too long");
}

static bool is_redirect(const struct exchange *x)
{
    return (x->status == 301 || x->status == 302 || x->status == 303 || x->status == 307 ||
            x->status == 308) &&
           x->location[0] && (strcmp(x->method, "GET") == 0 || strcmp(x->method, "HEAD") == 0);
}

static int follow(struct exchange *x, char url[EXCHANGE_URL_MAX], struct err *err)
{
    char next[EXCHANGE_URL_MAX];
    int r = url_resolve(url, x->location, next, err);
    if (r < 0)
        return r;
    if (strncmp(url, "https:", 6) == 0 && strncmp(next, "https:", 6) != 0)
        return err_fail_as(err, EPROTO, FAIL_REGISTRY_FAILED,
                           "the registry sends us from https to an address in the clear");
    memcpy(url, next, sizeof(next));
    return 0;
}

int registry_ask(struct registry *reg, struct exchange *x, struct err *err)
{
    char url[EXCHANGE_URL_MAX];
    const char *first = x->url;
    unsigned redirects = 0, challenges = 0;
    int n = snprintf(url, sizeof(url), "%s", first);
    int r = n > 0 && (size_t)n < sizeof(url) ? 0 : err_set(err, ENAMETOOLONG, "too long");
    while (r >= 0) {
        char *header = NULL;
        unsigned number = 0;
        bool ours = url_same_origin(url, reg->base);
        if (ours)
            r = credential_header(reg->auth, &header, &number, err);
        x->url = url;
        x->authorization = header;
        if (r >= 0)
            r = exchange_run(reg->http, x, err);
        x->authorization = NULL;
        credential_header_free(header);
        if (r < 0)
            break;
        if (x->status == 401 && ours && challenges++ < CHALLENGES_MAX)
            r = credential_answer(reg->auth, x->challenge, number, err);
        else if (!is_redirect(x))
            break;
        else if (redirects++ == REDIRECTS_MAX)
            r = err_fail_as(err, ELOOP, FAIL_REGISTRY_FAILED,
                            "the registry sends us around in circles");
        else
            r = follow(x, url, err);
    }
    x->url = first;
    return r;
}

/* ---- what an answer means ---- */

/* The registry's own words, made harmless. */
static void their_words(const struct exchange *x, char out[ERROR_TEXT_MAX])
{
    bool sane = x->answer.len > 0 && json_shallow(x->answer.data, x->answer.len);
    json_t *doc = sane ? json_loadb(x->answer.data, x->answer.len, 0, NULL) : NULL;
    const json_t *first = json_array_get(json_object_get(doc, "errors"), 0);
    const char *text = json_string_value(json_object_get(first, "message"));
    size_t n = 0;
    for (; text && text[n] && n + 1 < ERROR_TEXT_MAX; n++)
        out[n] = text[n] >= ' ' && text[n] < 0x7f ? text[n] : '?';
    out[n] = '\0';
    json_decref(doc);
}

int registry_check(const struct registry *reg, struct exchange *x, const char *what,
                   struct err *err)
{
    char words[ERROR_TEXT_MAX];
    if (x->status >= 200 && x->status < 300)
        return 0;
    their_words(x, words);
    const char *colon = words[0] ? ": " : "";
    switch (x->status) {
    case 401:
    case 403:
        return err_fail(err, FAIL_REGISTRY_UNAUTHORIZED, "'%s' refuses %s of '%s'%s%s",
                        reg->ref.host, what, reg->ref.repo, colon, words);
    case 404:
        return err_fail(err, FAIL_REGISTRY_NOT_FOUND, "'%s' has no %s of '%s'%s%s", reg->ref.host,
                        what, reg->ref.repo, colon, words);
    case 429:
        x->transient = true;
        return err_fail_as(err, EAGAIN, FAIL_REGISTRY_FAILED, "'%s' asks us to come back later%s%s",
                           reg->ref.host, colon, words);
    default:
        x->transient = x->status >= 500 || x->status == 408;
        return err_fail(err, FAIL_REGISTRY_FAILED, "'%s' answered with %ld for %s of '%s'%s%s",
                        reg->ref.host, x->status, what, reg->ref.repo, colon, words);
    }
}

bool retry_again(struct registry *reg, struct retry *retry, const struct exchange *x)
{
    if (!x->transient || ++retry->tries >= TRIES_MAX)
        return false;
    int pause_ms = PAUSE_MS << (retry->tries - 1);
    if (x->retry_after_s > 0 && x->retry_after_s <= RETRY_AFTER_MAX_S)
        pause_ms = (int)x->retry_after_s * 1000;
    for (; pause_ms > 0 && !http_cancelled(reg->http); pause_ms -= PAUSE_STEP_MS)
        (void)poll(NULL, 0, PAUSE_STEP_MS);
    return !http_cancelled(reg->http);
}
