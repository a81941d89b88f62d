#include "registry/credential.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

#include "base/json.h"
#include "registry/challenge.h"
#include "registry/reference.h"

#define SECRET_MAX 4096       /* of a user's name or password */
#define TOKEN_MAX (64 * 1024) /* they are signed documents, some long */
#define TOKEN_ANSWER_MAX (256 * 1024)
#define TOKEN_REDIRECTS_MAX 3

struct credential {
    struct credential_config config;
    char *username, *password;
    char repo[REFERENCE_REPO_MAX + 1];
    pthread_mutex_t lock; /* held while a token is asked for: the others want the same one */
    char *header;
    unsigned number; /* how many headers there were */
};

static void free_secret(char **secret)
{
    if (*secret)
        explicit_bzero(*secret, strlen(*secret));
    free(*secret);
    *secret = NULL;
}
#define _cleanup_secret_ _cleanup_(free_secret)

void credential_header_free(char *header)
{
    free_secret(&header);
}

static int copy_secret(const char *text, char **ret_copy, struct err *err)
{
    if (!text || !*text)
        return 0;
    if (strlen(text) > SECRET_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "a user name or password is too long");
    *ret_copy = strdup(text);
    return *ret_copy ? 0 : err_set(err, ENOMEM, "cannot allocate credentials");
}

int credential_new(const struct credential_config *config, struct credential **ret_cred,
                   struct err *err)
{
    _cleanup_(credential_freep) struct credential *cred = calloc(1, sizeof(*cred));
    if (!cred)
        return err_set(err, ENOMEM, "cannot allocate credentials");
    (void)pthread_mutex_init(&cred->lock, NULL);
    cred->config = *config;
    cred->config.username = cred->config.password = cred->config.repo = NULL;
    (void)snprintf(cred->repo, sizeof(cred->repo), "%s", config->repo);
    int r = copy_secret(config->username, &cred->username, err);
    if (r >= 0)
        r = copy_secret(config->password, &cred->password, err);
    if (r >= 0 && cred->username && strchr(cred->username, ':'))
        r = err_fail(err, FAIL_INVALID_FIELD, "a user name must not have a ':'");
    if (r < 0)
        return r;
    *ret_cred = take_ptr(cred);
    return 0;
}

void credential_free(struct credential *cred)
{
    if (!cred)
        return;
    free_secret(&cred->username);
    free_secret(&cred->password);
    free_secret(&cred->header);
    (void)pthread_mutex_destroy(&cred->lock);
    free(cred);
}

int credential_header(struct credential *cred, char **ret_header, unsigned *ret_number,
                      struct err *err)
{
    char *copy = NULL;
    (void)pthread_mutex_lock(&cred->lock);
    bool there = cred->header != NULL;
    if (there)
        copy = strdup(cred->header);
    *ret_number = cred->number;
    (void)pthread_mutex_unlock(&cred->lock);
    if (there && !copy)
        return err_set(err, ENOMEM, "cannot allocate credentials");
    *ret_header = copy;
    return 0;
}

static int basic_header(const struct credential *cred, char **ret_header, struct err *err)
{
    _cleanup_secret_ char *pair = NULL;
    if (asprintf(&pair, "%s:%s", cred->username, cred->password ? cred->password : "") < 0) {
        pair = NULL;
        return err_set(err, ENOMEM, "cannot allocate credentials");
    }
    size_t n = strlen(pair);
    size_t size = 6 + 4 * ((n + 2) / 3) + 1;
    char *header = malloc(size);
    if (!header)
        return err_set(err, ENOMEM, "cannot allocate credentials");
    (void)snprintf(header, size, "Basic ");
    (void)EVP_EncodeBlock((unsigned char *)header + 6, (const unsigned char *)pair, (int)n);
    *ret_header = header;
    return 0;
}

/* ---- tokens ---- */

static int token_url(const struct credential *cred, const struct challenge *ch,
                     char url[EXCHANGE_URL_MAX], struct err *err)
{
    char scope[REFERENCE_REPO_MAX + 32];
    (void)snprintf(scope, sizeof(scope), "repository:%s:pull%s", cred->repo,
                   cred->config.push ? ",push" : "");
    (void)snprintf(url, EXCHANGE_URL_MAX, "%s", ch->realm);
    int r = 0;
    if (ch->service[0])
        r = url_add_query(url, "service", ch->service, err);
    if (r >= 0)
        r = url_add_query(url, "scope", ch->scope[0] ? ch->scope : scope, err);
    return r;
}

static int read_token(const struct buf *answer, char **ret_header, struct err *err)
{
    bool sane = answer->len > 0 && json_shallow(answer->data, answer->len);
    json_t *doc = sane ? json_loadb(answer->data, answer->len, 0, NULL) : NULL;
    const char *token = json_string_value(json_object_get(doc, "token"));
    if (!token || !*token)
        token = json_string_value(json_object_get(doc, "access_token"));
    size_t n = token ? strlen(token) : 0;
    bool ok = n > 0 && n <= TOKEN_MAX;
    for (size_t i = 0; ok && i < n; i++)
        ok = token[i] > ' ' && token[i] < 0x7f; /* it becomes a header */
    int r = 0;
    if (!ok)
        r = err_fail_as(err, EPROTO, FAIL_REGISTRY_FAILED,
                        "the registry's token server gave no token");
    else if (asprintf(ret_header, "Bearer %s", token) < 0)
        r = err_set(err, ENOMEM, "cannot allocate a token");
    json_decref(doc);
    return r;
}

static int refused(const struct credential *cred, struct err *err)
{
    if (cred->username)
        return err_fail(err, FAIL_REGISTRY_UNAUTHORIZED,
                        "the registry does not accept this user name and password for '%s'",
                        cred->repo);
    return err_fail(err, FAIL_REGISTRY_UNAUTHORIZED,
                    "the registry wants a user name and password for '%s', or there is no such "
                    "repository",
                    cred->repo);
}

static int token_failed(const struct credential *cred, const struct exchange *x, struct err *err)
{
    if (x->status == 401 || x->status == 403 || x->status == 400)
        return refused(cred, err);
    return err_fail(err, FAIL_REGISTRY_FAILED, "the registry's token server answered with %ld",
                    x->status);
}

static int ask_token(struct credential *cred, const struct challenge *ch, char **ret_header,
                     struct err *err)
{
    _cleanup_secret_ char *basic = NULL;
    _cleanup_(exchange_done) struct exchange x = { .method = "GET",
                                                   .answer = BUF_INIT(TOKEN_ANSWER_MAX) };
    char url[EXCHANGE_URL_MAX], next[EXCHANGE_URL_MAX];
    int r = token_url(cred, ch, url, err);
    if (r >= 0 && cred->username)
        r = basic_header(cred, &basic, err);
    x.url = url;
    x.authorization = basic;
    for (unsigned i = 0; r >= 0; i++) {
        r = exchange_run(cred->config.http, &x, err);
        if (r < 0 || x.status < 300 || x.status >= 400 || !x.location[0])
            break;
        if (i == TOKEN_REDIRECTS_MAX)
            return err_fail_as(err, ELOOP, FAIL_REGISTRY_FAILED,
                               "the registry's token server sends us around in circles");
        r = url_resolve(url, x.location, next, err);
        if (r >= 0 && !url_same_origin(url, next))
            x.authorization = NULL;
        memcpy(url, next, sizeof(url));
    }
    if (r >= 0 && x.status != 200)
        r = token_failed(cred, &x, err);
    if (r >= 0)
        r = read_token(&x.answer, ret_header, err);
    if (x.answer.data)
        explicit_bzero(x.answer.data, x.answer.len);
    return r;
}

static int answer(struct credential *cred, const char *text, struct err *err)
{
    char *header = NULL;
    struct challenge ch;
    int r;
    challenge_parse(text, strlen(text), &ch);
    switch (ch.scheme) {
    case CHALLENGE_BEARER: r = ask_token(cred, &ch, &header, err); break;
    case CHALLENGE_BASIC:
        r = cred->username ? basic_header(cred, &header, err) : refused(cred, err);
        break;
    default:
        r = err_fail_as(err, EPROTO, FAIL_REGISTRY_UNAUTHORIZED,
                        "the registry asks for credentials in a way that is not known here");
    }
    if (r < 0)
        return r;
    /* The same password again would meet the same answer. */
    if (ch.scheme == CHALLENGE_BASIC && cred->header && strcmp(cred->header, header) == 0) {
        free_secret(&header);
        return refused(cred, err);
    }
    free_secret(&cred->header);
    cred->header = header;
    cred->number++;
    return 0;
}

int credential_answer(struct credential *cred, const char *challenge, unsigned number,
                      struct err *err)
{
    int r = 0;
    (void)pthread_mutex_lock(&cred->lock);
    if (cred->number == number) /* else another thread has answered meanwhile */
        r = answer(cred, challenge, err);
    (void)pthread_mutex_unlock(&cred->lock);
    return r;
}
