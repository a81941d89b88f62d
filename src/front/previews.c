#include "front/previews.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "core/network.h"
#include "core/port.h"
#include "core/sandbox.h"
#include "core/token.h"
#include "front/http/glance.h"
#include "wire/broker.h"

#define LOG_MODULE "preview"
#define DIAL_MS 5000
#define ASKS_MAX 512
#define ASKS_OF_ONE 64 /* a sandbox that takes no connections must not use up what others need */
#define OF_BUCKETS 256
#define STOP_WAIT_MS 10

/* Sanitizers need several times the stack. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES (2 * 1024 * 1024)
#else
#define STACK_BYTES (256 * 1024)
#endif

struct previews {
    struct core *core;
    struct server *server;
    const char *domain;
    int link_fd;
    pthread_t thread;
    bool started;
    atomic_int asks;
    atomic_int asks_of[OF_BUCKETS]; /* by a hash of the sandbox: two may share a count */
};

struct asked {
    struct previews *p;
    atomic_int *of;
    struct broker_ask msg;
};

/* ---- a question ---- */

static void answer(struct previews *p, struct broker_answer *a, int fd)
{
    a->type = BROKER_ANSWER;
    int r = fd_send_msg(p->link_fd, a, sizeof(*a), &fd, fd >= 0 ? 1 : 0);
    if (r < 0)
        log_debug("the broker did not get an answer err=%d", -r);
    if (fd >= 0)
        (void)close(fd);
}

static bool may_enter(struct core *core, const struct sandbox *s, const char *token)
{
    return !pairs_get(&s->spec.metadata, PREVIEWS_PRIVATE) ||
           token_is(core, PREVIEWS_TOKEN, s->id, token);
}

/* "${PORT}" stands for the port. */
static void mask_host(const struct sandbox *s, unsigned port, char out[BROKER_HOST_SIZE])
{
    const char *mask = pairs_get(&s->spec.metadata, PREVIEWS_HOST);
    const char *mark = mask ? strstr(mask, "${PORT}") : NULL;
    int n = 0;
    if (mark)
        n = snprintf(out, BROKER_HOST_SIZE, "%.*s%u%s", (int)(mark - mask), mask, port, mark + 7);
    else if (mask)
        n = snprintf(out, BROKER_HOST_SIZE, "%s", mask);
    if (n < 0 || n >= BROKER_HOST_SIZE)
        out[0] = '\0';
}

static enum broker_verdict verdict_of(const struct err *err)
{
    static const struct {
        const char *what;
        enum broker_verdict verdict;
    } table[] = {
        { "sandbox_not_found", BROKER_NO_SANDBOX },
        { "sandbox_gone", BROKER_NO_SANDBOX },
        { "sandbox_not_running", BROKER_ASLEEP },
        { "port_closed", BROKER_CLOSED },
    };
    for (size_t i = 0; err->what && i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].what, err->what) == 0)
            return table[i].verdict;
    return BROKER_FAILED;
}

static void decide(struct previews *p, const struct broker_ask *ask, struct broker_answer *a,
                   int *ret_fd)
{
    struct sandbox s = { 0 };
    struct err err = ERR_INIT;
    if (sandbox_enter(p->core, NULL, ask->sandbox, &s, &err) < 0) {
        a->verdict = verdict_of(&err);
        sandbox_done(&s);
        return;
    }
    if (!may_enter(p->core, &s, ask->token)) {
        a->verdict = BROKER_FORBIDDEN;
    } else {
        mask_host(&s, ask->port, a->host);
        int r = port_dial(p->core, &s, ask->port, DIAL_MS, ret_fd, &err);
        a->verdict = r < 0 ? verdict_of(&err) : BROKER_OK;
        if (a->verdict == BROKER_FAILED)
            log_warn("a port could not be reached sandbox=%s port=%u err=%s", s.id, ask->port,
                     err.msg);
    }
    sandbox_leave(p->core, s.id);
    sandbox_done(&s);
}

static void *answer_one(void *arg)
{
    struct asked *q = arg;
    struct broker_answer a = { .number = q->msg.number };
    int fd = -1;
    decide(q->p, &q->msg, &a, &fd);
    struct previews *p = q->p;
    answer(p, &a, fd);
    atomic_fetch_sub(q->of, 1);
    free(q);
    atomic_fetch_sub(&p->asks, 1); /* the last: whoever stops us waits for it */
    return NULL;
}

static int spawn(struct asked *q)
{
    pthread_attr_t attr;
    pthread_t thread;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int r = pthread_create(&thread, &attr, answer_one, q);
    (void)pthread_attr_destroy(&attr);
    return -r;
}

static atomic_int *count_of(struct previews *p, const char *sandbox)
{
    unsigned hash = 2166136261u; /* FNV-1a */
    for (; *sandbox; sandbox++)
        hash = (hash ^ (unsigned char)*sandbox) * 16777619u;
    return &p->asks_of[hash % OF_BUCKETS];
}

static void on_ask(struct previews *p, const struct broker_ask *ask)
{
    struct broker_answer failed = { .number = ask->number, .verdict = BROKER_FAILED };
    if (ask->sandbox[ID_LEN] || ask->token[BROKER_TOKEN_SIZE - 1] || !id_valid(ask->sandbox)) {
        answer(p, &failed, -1);
        return;
    }
    struct asked *q = malloc(sizeof(*q));
    if (!q) {
        answer(p, &failed, -1);
        return;
    }
    *q = (struct asked){ p, count_of(p, ask->sandbox), *ask };
    bool room = atomic_fetch_add(&p->asks, 1) < ASKS_MAX;
    room = atomic_fetch_add(q->of, 1) < ASKS_OF_ONE && room;
    if (room && spawn(q) == 0)
        return;
    atomic_fetch_sub(q->of, 1);
    atomic_fetch_sub(&p->asks, 1);
    free(q);
    answer(p, &failed, -1);
}

/* ---- the link ---- */

static void on_pass(struct previews *p, const struct broker_pass *pass, int fd)
{
    if (fd >= 0 && pass->peer_len <= sizeof(pass->peer))
        server_take(p->server, fd, (const struct sockaddr *)&pass->peer, pass->peer_len);
    else if (fd >= 0)
        (void)close(fd);
}

static void on_touch(struct previews *p, const struct broker_touch *touch)
{
    struct sandbox s = { 0 };
    struct err err = ERR_INIT;
    if (touch->sandbox[ID_LEN] == '\0' &&
        sandbox_enter(p->core, NULL, touch->sandbox, &s, &err) >= 0)
        sandbox_leave(p->core, s.id);
    sandbox_done(&s);
}

static void on_message(struct previews *p, const void *msg, size_t n, int fd)
{
    uint32_t type = 0;
    if (n >= sizeof(type))
        memcpy(&type, msg, sizeof(type));
    if (type == BROKER_ASK && n == sizeof(struct broker_ask) && fd < 0) {
        on_ask(p, msg);
    } else if (type == BROKER_PASS && n == sizeof(struct broker_pass)) {
        on_pass(p, msg, fd);
    } else if (type == BROKER_TOUCH && n == sizeof(struct broker_touch) && fd < 0) {
        on_touch(p, msg);
    } else if (!network_told(p->core, msg, n)) {
        log_warn("the broker said what is not understood type=%u size=%zu", type, n);
        if (fd >= 0)
            (void)close(fd);
    }
}

static void *listen_to_broker(void *arg)
{
    struct previews *p = arg;
    _Alignas(16) unsigned char msg[BROKER_MSG_MAX];
    for (;;) {
        int fd = -1;
        size_t nfds = 0;
        ssize_t n = fd_recv_msg(p->link_fd, msg, sizeof(msg), &fd, 1, &nfds);
        if (n == 0 || (n < 0 && n != -EMSGSIZE))
            return NULL;
        if (n > 0)
            on_message(p, msg, (size_t)n, nfds ? fd : -1);
    }
}

bool previews_divert(void *previews, int fd, const char *head, size_t n)
{
    struct previews *p = previews;
    struct broker_client msg = { .type = BROKER_CLIENT };
    if (!glance_is_preview(head, n, p->domain))
        return false;
    int r = fd_try_send_msg(p->link_fd, &msg, sizeof(msg), &fd, 1);
    if (r < 0)
        log_warn("the broker does not take connections err=%d", -r);
    (void)close(fd);
    return true;
}

/* ---- life ---- */

int previews_new(struct core *core, int link_fd, const char *domain, struct previews **ret_p,
                 struct err *err)
{
    struct previews *p = calloc(1, sizeof(*p));
    if (!p) {
        (void)close(link_fd);
        return err_set(err, ENOMEM, "cannot allocate the previews");
    }
    p->core = core;
    p->link_fd = link_fd;
    p->domain = domain;
    *ret_p = p;
    return 0;
}

int previews_start(struct previews *p, struct server *server, struct err *err)
{
    p->server = server;
    int r = pthread_create(&p->thread, NULL, listen_to_broker, p);
    if (r)
        return err_set(err, r, "cannot start a thread for the broker");
    p->started = true;
    return 0;
}

void previews_stop(struct previews *p)
{
    if (!p || !p->started)
        return;
    (void)shutdown(p->link_fd, SHUT_RDWR);
    (void)pthread_join(p->thread, NULL);
    while (atomic_load(&p->asks) > 0)
        (void)poll(NULL, 0, STOP_WAIT_MS);
    p->started = false;
}

void previews_free(struct previews *p)
{
    if (!p)
        return;
    previews_stop(p);
    (void)close(p->link_fd);
    free(p);
}
