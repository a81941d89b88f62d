#include "life.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOUNT "/e2b"
#define HEADERS_SIZE 512
#define PATH_SIZE 128
#define ENVELOPE_SIZE 5 /* a byte of flags, four of length */
#define ANSWER_SHOWN 160
#define THREAD_STACK (256 * 1024)

/* What the client runs for commands.run('true'). */
#define START_TRUE \
    "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"true\"]},\"stdin\":false}"

static int ask(struct http *h, const struct http_request *q, int status, struct http_answer *ret,
               struct err *err)
{
    int r = http_send(h, q, ret, err);

    if (r < 0)
        return r;
    if (ret->status != status)
        return err_set(err, EPROTO, "%s %s answered %d: %.*s", q->method, q->path, ret->status,
                       ANSWER_SHOWN, ret->body);
    return 0;
}

/* A text member of a JSON object that holds no such name twice. */
static int member(const char *json, const char *name, char *out, size_t size)
{
    const char *p = strstr(json, name), *end;

    p = p ? strchr(p + strlen(name), ':') : NULL;
    p = p ? strchr(p, '"') : NULL;
    end = p ? strchr(++p, '"') : NULL;
    if (!end || (size_t)(end - p) >= size)
        return -EPROTO;
    memcpy(out, p, (size_t)(end - p));
    out[end - p] = '\0';
    return 0;
}

static void control_headers(const struct http *h, char out[HEADERS_SIZE])
{
    (void)snprintf(out, HEADERS_SIZE, "X-API-Key: %s\r\nContent-Type: application/json\r\n",
                   h->key);
}

int e2b_create(struct http *h, struct e2b_id *ret_id, struct err *err)
{
    static const char body[] = "{\"templateID\":\"base\",\"timeout\":300}";
    char headers[HEADERS_SIZE];
    struct http_request q = {
        "POST", MOUNT "/v2/sandboxes", headers, body, sizeof(body) - 1, NULL
    };
    struct http_answer a;
    int r;

    control_headers(h, headers);
    r = ask(h, &q, 201, &a, err);
    if (r < 0)
        return r;
    if (member(a.body, "\"sandboxID\"", ret_id->id, sizeof(ret_id->id)) < 0 ||
        member(a.body, "\"envdAccessToken\"", ret_id->token, sizeof(ret_id->token)) < 0)
        return err_set(err, EPROTO, "create answered without an id: %.*s", ANSWER_SHOWN, a.body);
    return 0;
}

int e2b_run_true(struct http *h, const struct e2b_id *id, struct err *err)
{
    char headers[HEADERS_SIZE], body[ENVELOPE_SIZE + sizeof(START_TRUE) - 1] = { 0 };
    struct http_request q = { "POST", MOUNT "/process.Process/Start", headers, body, sizeof(body),
                              NULL };
    struct http_answer a;
    int r;

    body[ENVELOPE_SIZE - 1] = (char)(sizeof(START_TRUE) - 1); /* below 256: the last byte says it */
    memcpy(body + ENVELOPE_SIZE, START_TRUE, sizeof(START_TRUE) - 1);
    (void)snprintf(headers, sizeof(headers),
                   "Content-Type: application/connect+json\r\nConnect-Protocol-Version: 1\r\n"
                   "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\n",
                   id->id, id->token);
    r = ask(h, &q, 200, &a, err);
    if (r < 0)
        return r;
    if (!memmem(a.body, a.len, "exit status 0", strlen("exit status 0")))
        return err_set(err, EPROTO, "true did not exit with 0");
    return 0;
}

int e2b_kill(struct http *h, const struct e2b_id *id, struct err *err)
{
    char headers[HEADERS_SIZE], path[PATH_SIZE];
    struct http_request q = { "DELETE", path, headers, NULL, 0, NULL };
    struct http_answer a;

    control_headers(h, headers);
    (void)snprintf(path, sizeof(path), MOUNT "/sandboxes/%s", id->id);
    return ask(h, &q, 204, &a, err);
}

int e2b_life(struct http *h, double *ret_us, struct err *err)
{
    double start = now_us();
    struct e2b_id id;
    int r = e2b_create(h, &id, err), gone;

    if (r < 0)
        return r;
    r = e2b_run_true(h, &id, err);
    gone = e2b_kill(h, &id, r < 0 ? NULL : err);
    if (r < 0 || gone < 0)
        return r < 0 ? r : gone;
    *ret_us = now_us() - start;
    return 0;
}

/* ---- many at once ---- */

struct client {
    pthread_t thread;
    unsigned port, lives;
    const char *key;
    struct sample times;
    unsigned failures;
    char first_failure[400];
};

static void *client_run(void *arg)
{
    struct client *c = arg;
    struct http h = { .fd = -1 };

    for (unsigned i = 0; i < c->lives; i++) {
        struct err err = ERR_INIT;
        double us;
        int r = h.fd >= 0 ? 0 : http_open(&h, c->port, c->key, &err);

        if (r >= 0)
            r = e2b_life(&h, &us, &err);
        if (r >= 0) {
            sample_add(&c->times, us);
            continue;
        }
        if (!c->failures++)
            (void)snprintf(c->first_failure, sizeof(c->first_failure), "%s", err.msg);
        http_close(&h); /* its state is unknown: the next one gets another */
    }
    http_close(&h);
    return NULL;
}

void e2b_burst(unsigned port, const char *key, struct e2b_burst *burst)
{
    struct client *clients = calloc(burst->clients, sizeof(*clients));
    pthread_attr_t attr;

    if (!clients)
        abort();
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK);
    for (unsigned i = 0; i < burst->clients; i++) {
        clients[i].port = port;
        clients[i].lives = burst->lives;
        clients[i].key = key;
        if (pthread_create(&clients[i].thread, &attr, client_run, &clients[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < burst->clients; i++) {
        (void)pthread_join(clients[i].thread, NULL);
        sample_merge(&burst->times, &clients[i].times);
        if (!burst->failures && clients[i].failures)
            (void)snprintf(burst->first_failure, sizeof(burst->first_failure), "%s",
                           clients[i].first_failure);
        burst->failures += clients[i].failures;
        sample_done(&clients[i].times);
    }
    (void)pthread_attr_destroy(&attr);
    free(clients);
}
