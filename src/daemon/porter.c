#include "daemon/porter.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "wire/broker.h"

#define LOG_MODULE "preview"
#define WAITING_MAX 1024 /* as many as a listening socket keeps */

struct waiting {
    struct waiting *next;
    int fd;
};

struct porter {
    int link_fd;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t come;
    struct waiting *first, **last;
    size_t n;
    bool sending; /* one is on its way, and goes first */
    bool stop;
};

static void let_go(int fd, int why)
{
    if (why != -EPIPE) /* then it is over for all */
        log_warn("the broker does not take a connection err=%d", -why);
    (void)close(fd);
}

/* With the lock held: the next, or NULL: it is over. */
static struct waiting *next(struct porter *p)
{
    p->sending = false;
    while (!p->first && !p->stop)
        (void)pthread_cond_wait(&p->come, &p->lock);
    struct waiting *w = p->stop ? NULL : p->first;
    if (!w)
        return NULL;
    p->first = w->next;
    if (!p->first)
        p->last = &p->first;
    p->n--;
    p->sending = true;
    return w;
}

static void *carry(void *arg)
{
    const struct broker_client msg = { .type = BROKER_CLIENT };
    struct porter *p = arg;
    struct waiting *w;
    (void)pthread_mutex_lock(&p->lock);
    while ((w = next(p))) {
        (void)pthread_mutex_unlock(&p->lock);
        int r = fd_send_msg(p->link_fd, &msg, sizeof(msg), &w->fd, 1);
        if (r < 0)
            let_go(w->fd, r);
        else
            (void)close(w->fd);
        free(w);
        (void)pthread_mutex_lock(&p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* With the lock held: 0 if it is with the broker, or waits; -EAGAIN: there are too many. Takes fd then. */
static int hand(struct porter *p, int fd)
{
    const struct broker_client msg = { .type = BROKER_CLIENT };
    if (!p->sending && !p->first) {
        int r = fd_try_send_msg(p->link_fd, &msg, sizeof(msg), &fd, 1);
        if (r == 0)
            (void)close(fd);
        if (r != -EAGAIN)
            return r;
    }
    struct waiting *w = p->n < WAITING_MAX ? malloc(sizeof(*w)) : NULL;
    if (!w)
        return -EAGAIN;
    *w = (struct waiting){ .fd = fd };
    *p->last = w;
    p->last = &w->next;
    p->n++;
    (void)pthread_cond_signal(&p->come);
    return 0;
}

void porter_hand(struct porter *p, int fd)
{
    (void)pthread_mutex_lock(&p->lock);
    int r = hand(p, fd);
    (void)pthread_mutex_unlock(&p->lock);
    if (r < 0)
        let_go(fd, r);
}

int porter_new(int link_fd, struct porter **ret_p, struct err *err)
{
    struct porter *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(err, ENOMEM, "cannot allocate the way to the broker");
    p->link_fd = link_fd;
    p->last = &p->first;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->come, NULL);
    int r = pthread_create(&p->thread, NULL, carry, p);
    if (r) {
        free(p);
        return err_set(err, r, "cannot start a thread for connections to the broker");
    }
    *ret_p = p;
    return 0;
}

void porter_free(struct porter *p)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_signal(&p->come);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL);
    while (p->first) {
        struct waiting *w = p->first;
        p->first = w->next;
        (void)close(w->fd);
        free(w);
    }
    (void)pthread_cond_destroy(&p->come);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}
