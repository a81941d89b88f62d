#include "daemon/previews.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/sanitized.h"
#include "base/share.h"
#include "core/alias.h"
#include "core/certs.h"
#include "core/network.h"
#include "core/sandbox.h"
#include "front/http/glance.h"
#include "daemon/porter.h"
#include "daemon/visit.h"
#include "wire/broker.h"

#define LOG_MODULE "preview"
#define WORKING_MAX 512
#define WORKING_OF_ONE 16 /* those that take no connections must not use up what others need */
#define WAITING_MAX 8192
#define WAITING_OF_ONE 2048 /* all that come while it wakes up */
#define SHARES 256
#define STOP_WAIT_MS 10

#define STACK_BYTES (SANITIZED ? 2 * 1024 * 1024 : 256 * 1024)

/* What one sandbox has of the threads and of the queue; by a hash: two may share it. */
struct share {
    unsigned working, waiting;
};

struct asked {
    struct asked *next;
    struct previews *p;
    struct share *share;
    struct broker_ask msg;
};

struct previews {
    struct visit visit;
    struct server *server;
    const char *domain;
    int link_fd;
    struct porter *porter;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* of what follows */
    unsigned working, waiting;
    struct share shares[SHARES];
    struct asked *first, **last;
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

static void refuse(struct previews *p, const struct broker_ask *ask)
{
    struct broker_answer failed = { .number = ask->number, .verdict = BROKER_FAILED };
    answer(p, &failed, -1);
}

static struct share *share_of(struct previews *p, const char *sandbox)
{
    return &p->shares[hash_text(sandbox) % SHARES];
}

/* With the lock held: the next that may be answered, out of the queue; NULL: none. */
static struct asked *next_asked(struct previews *p)
{
    size_t most = share(WORKING_MAX, p->working, WORKING_OF_ONE);
    for (struct asked **at = &p->first; *at && !atomic_load(&p->visit.stop); at = &(*at)->next) {
        struct asked *q = *at;
        if (q->share->working >= most)
            continue;
        *at = q->next;
        if (p->last == &q->next)
            p->last = at;
        q->share->waiting--;
        p->waiting--;
        q->share->working++;
        return q;
    }
    return NULL;
}

/* Answers one after the other for as long as there are any. */
static void *answer_all(void *arg)
{
    struct asked *q = arg;
    struct previews *p = q->p;
    while (q) {
        struct broker_answer a = { .number = q->msg.number };
        int fd = -1;
        visit_decide(&p->visit, &q->msg, &a, &fd);
        answer(p, &a, fd);
        (void)pthread_mutex_lock(&p->lock);
        q->share->working--;
        free(q);
        q = next_asked(p);
        if (!q)
            p->working--; /* the last: whoever stops us waits for it */
        (void)pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

static int spawn(struct asked *q)
{
    pthread_attr_t attr;
    pthread_t thread;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int r = pthread_create(&thread, &attr, answer_all, q);
    (void)pthread_attr_destroy(&attr);
    return -r;
}

/* With the lock held. 0: it has a thread, or waits for one. */
static int take_on(struct previews *p, struct asked *q)
{
    struct share *s = q->share;
    if (s->working < share(WORKING_MAX, p->working, WORKING_OF_ONE) && spawn(q) == 0) {
        p->working++;
        s->working++;
        return 0;
    }
    /* Those at work take the next when they are done. */
    if (p->working == 0 || s->waiting >= share(WAITING_MAX, p->waiting, WAITING_OF_ONE))
        return -EAGAIN;
    *p->last = q;
    p->last = &q->next;
    s->waiting++;
    p->waiting++;
    return 0;
}

static void on_ask(struct previews *p, const struct broker_ask *ask)
{
    if (ask->sandbox[ID_LEN] || ask->proof.token[BROKER_TOKEN_SIZE - 1] ||
        ask->proof.key[BROKER_TOKEN_SIZE - 1] || !id_valid(ask->sandbox)) {
        refuse(p, ask);
        return;
    }
    struct asked *q = malloc(sizeof(*q));
    if (!q) {
        refuse(p, ask);
        return;
    }
    *q = (struct asked){ .p = p, .share = share_of(p, ask->sandbox), .msg = *ask };
    (void)pthread_mutex_lock(&p->lock);
    int r = take_on(p, q);
    (void)pthread_mutex_unlock(&p->lock);
    if (r < 0) {
        free(q);
        refuse(p, ask);
    }
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
        sandbox_enter_awake(p->visit.core, NULL, touch->sandbox, &s, &err) >= 0)
        sandbox_leave(p->visit.core, s.id);
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
    } else if (!network_told(p->visit.core, msg, n)) {
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

/* An authority looks for a proof that a name is ours: that is answered by us, whatever the name leads to. */
static bool is_challenge(struct core *core, const char *head, size_t n)
{
    static const char line[] = "GET /.well-known/acme-challenge/";
    char token[CERTS_TOKEN_MAX + 1], proof[CERTS_PROOF_SIZE];
    size_t skip = sizeof(line) - 1, len = 0;
    if (n <= skip || memcmp(head, line, skip) != 0)
        return false;
    while (skip + len < n && head[skip + len] != ' ' && len < CERTS_TOKEN_MAX)
        len++;
    (void)snprintf(token, sizeof(token), "%.*s", (int)len, head + skip);
    return certs_challenge(core, token, proof) >= 0;
}

bool previews_divert(void *previews, int fd, const char *head, size_t n)
{
    struct previews *p = previews;
    struct alias alias;
    struct glance g;
    glance(head, n, p->domain, &g);
    if (!g.preview && (!alias_find(p->visit.core, g.host, g.host_len, &alias) ||
                       is_challenge(p->visit.core, head, n)))
        return false;
    porter_hand(p->porter, fd);
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
    p->visit.core = core;
    p->link_fd = link_fd;
    p->domain = domain;
    p->last = &p->first;
    (void)pthread_mutex_init(&p->lock, NULL);
    int r = auth_new(&p->visit.guard, err);
    if (r >= 0)
        r = porter_new(link_fd, &p->porter, err);
    if (r < 0) {
        previews_free(p);
        return r;
    }
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

static unsigned working(struct previews *p)
{
    (void)pthread_mutex_lock(&p->lock);
    unsigned n = p->working;
    (void)pthread_mutex_unlock(&p->lock);
    return n;
}

void previews_stop(struct previews *p)
{
    if (!p || !p->started)
        return;
    atomic_store(&p->visit.stop, true);
    (void)shutdown(p->link_fd, SHUT_RDWR);
    (void)pthread_join(p->thread, NULL);
    while (working(p) > 0)
        (void)poll(NULL, 0, STOP_WAIT_MS);
    p->started = false;
}

void previews_free(struct previews *p)
{
    if (!p)
        return;
    previews_stop(p);
    (void)shutdown(p->link_fd, SHUT_RDWR); /* it may not have been started */
    porter_free(p->porter);
    while (p->first) {
        struct asked *q = p->first;
        p->first = q->next;
        free(q);
    }
    auth_free(p->visit.guard);
    (void)pthread_mutex_destroy(&p->lock);
    (void)close(p->link_fd);
    free(p);
}
