#include "core/who.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "core/inside.h"

#define LOG_MODULE "network"
#define ASKS_MAX 64
#define STOP_WAIT_MS 10

struct asked {
    struct core *core;
    struct broker_who msg;
};

static void answer(struct core *core, struct broker_who_answer *a)
{
    a->type = BROKER_WHO_ANSWER;
    int r = fd_try_send_msg(core->broker_fd, a, sizeof(*a), NULL, 0);
    if (r < 0)
        log_debug("the broker did not get a program's name err=%d", -r);
}

static void *ask(void *arg)
{
    struct asked *q = arg;
    struct core *core = q->core;
    struct broker_who_answer a = { .number = q->msg.number };
    memcpy(a.sandbox, q->msg.sandbox, sizeof(a.sandbox));
    if (inside_who(core, q->msg.sandbox, q->msg.inodes, q->msg.n, a.programs) == 0)
        a.n = q->msg.n;
    free(q);
    answer(core, &a);
    atomic_fetch_sub(&core->whos, 1); /* the last: whoever stops us waits for it */
    return NULL;
}

static int start(struct asked *q)
{
    pthread_t thread;
    int r = thread_start(&thread, ask, q, NULL);
    if (r == 0)
        (void)pthread_detach(thread);
    return r;
}

void who_asked(struct core *core, const struct broker_who *msg)
{
    struct broker_who_answer nothing = { .number = msg->number };
    memcpy(nothing.sandbox, msg->sandbox, sizeof(nothing.sandbox));
    nothing.sandbox[ID_LEN] = '\0';
    struct asked *q = malloc(sizeof(*q));
    if (q)
        *q = (struct asked){ core, *msg };
    bool sound = !msg->sandbox[ID_LEN] && id_valid(msg->sandbox) && msg->n <= BROKER_WHO_MAX;
    bool room = atomic_fetch_add(&core->whos, 1) < ASKS_MAX;
    if (q && sound && room && start(q) == 0)
        return;
    atomic_fetch_sub(&core->whos, 1);
    free(q);
    answer(core, &nothing);
}

void who_stop(struct core *core)
{
    while (atomic_load(&core->whos) > 0)
        (void)poll(NULL, 0, STOP_WAIT_MS);
}
