#include "broker/who.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define ANSWER_MS 1000
#define ASKS_PER_S 20 /* each is a search through the sandbox's processes, on its own account */
#define ASKS_BURST 10
#define WAITING_MAX 64

void whos_init(struct whos *all, struct loop *loop, const char *sandbox,
               int (*send)(void *arg, const struct broker_who *msg), void *arg)
{
    *all = (struct whos){ .loop = loop, .diag_fd = -1, .send = send, .arg = arg };
    all->last = &all->first;
    all->asks = ASKS_BURST * 1000;
    all->asks_ms = clock_mono_ms();
    (void)snprintf(all->sandbox, sizeof(all->sandbox), "%s", sandbox);
}

/* ---- those that wait ---- */

static void append(struct whos *all, struct who *w)
{
    w->next = NULL;
    w->at = all->last;
    *all->last = w;
    all->last = &w->next;
    all->n_waiting++;
}

static void leave_list(struct who *w)
{
    struct whos *all = w->of;
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    else
        all->last = w->at;
    w->at = NULL;
    all->n_waiting--;
}

bool who_waits(const struct who *w)
{
    return w->of != NULL;
}

static size_t place(const struct who *w)
{
    size_t i = 0;
    while (w->of->asked[i] != w)
        i++;
    return i;
}

void who_end(struct who *w)
{
    if (!w->of)
        return;
    if (w->asked)
        w->of->asked[place(w)] = NULL;
    else
        leave_list(w);
    w->of = NULL;
}

void who_move(struct who *from, struct who *to)
{
    struct whos *all = from->of;
    void (*fn)(struct who * w, const char *program) = to->fn;
    *to = *from;
    to->fn = fn;
    if (from->asked) {
        all->asked[place(from)] = to;
    } else if (all) {
        *to->at = to;
        if (to->next)
            to->next->at = &to->next;
        else
            all->last = &to->next;
    }
    from->of = NULL;
}

static void tell(struct who *w, const char *program)
{
    w->of = NULL;
    w->fn(w, program);
}

/* ---- questions ---- */

static void on_deadline(struct deadline *d)
{
    struct whos *all = container_of(d, struct whos, deadline);
    struct broker_who_answer nothing = { .number = all->number };
    whos_answer(all, &nothing);
}

static bool may_ask(struct whos *all)
{
    int64_t now = clock_mono_ms();
    all->asks += (now - all->asks_ms) * ASKS_PER_S;
    all->asks = all->asks > ASKS_BURST * 1000 ? ASKS_BURST * 1000 : all->asks;
    all->asks_ms = now;
    if (all->asks < 1000)
        return false;
    all->asks -= 1000;
    return true;
}

static void give_up_waiting(struct whos *all)
{
    for (size_t n = all->n_waiting; n > 0 && all->first; n--) {
        struct who *w = all->first;
        leave_list(w);
        tell(w, "");
    }
}

/* Text from inside: what would be taken for more than text is not passed on. */
static void clean(const char *from, char out[BROKER_PROGRAM_SIZE])
{
    size_t i = 0;
    for (; i < BROKER_PROGRAM_SIZE - 1 && from[i]; i++)
        out[i] = from[i] < ' ' || from[i] > '~' ? '?' : from[i];
    out[i] = '\0';
}

static void tell_asked(struct whos *all, const struct broker_who_answer *msg)
{
    char program[BROKER_PROGRAM_SIZE];
    loop_no_deadline(all->loop, &all->deadline);
    /* The number stays until all are told: one that asks again meanwhile has to wait. */
    for (size_t i = 0; i < BROKER_WHO_MAX; i++)
        if (all->asked[i]) {
            struct who *w = all->asked[i];
            all->asked[i] = NULL;
            w->asked = false;
            clean(i < msg->n ? msg->programs[i] : "", program);
            tell(w, program);
        }
    all->number = 0;
}

static void ask(struct whos *all)
{
    static uint64_t last; /* of all sandboxes: an answer finds its question alone */
    struct broker_who msg = { .type = BROKER_WHO };
    if (!all->first || all->number)
        return;
    if (!may_ask(all)) {
        give_up_waiting(all); /* later is too late: who asks is gone by then */
        return;
    }
    msg.number = all->number = ++last;
    memcpy(msg.sandbox, all->sandbox, sizeof(msg.sandbox));
    while (msg.n < BROKER_WHO_MAX && all->first) {
        struct who *w = all->first;
        leave_list(w);
        w->asked = true;
        all->asked[msg.n] = w;
        msg.inodes[msg.n++] = w->inode;
    }
    loop_deadline(all->loop, &all->deadline, clock_mono_ms() + ANSWER_MS, on_deadline);
    if (all->send(all->arg, &msg) < 0)
        tell_asked(all, &(struct broker_who_answer){ .number = msg.number });
}

void whos_answer(struct whos *all, const struct broker_who_answer *msg)
{
    if (!all->number || msg->number != all->number)
        return;
    tell_asked(all, msg);
    ask(all);
}

static void nobody(struct who *w, const char *program)
{
}

bool who_begin(struct whos *all, struct who *w, bool udp, const struct diag_end *client,
               const struct diag_end *server, void (*fn)(struct who *w, const char *program))
{
    *w = (struct who){ .fn = fn };
    if (all->diag_fd < 0 || all->n_waiting >= WAITING_MAX)
        return false;
    if (!all->number && all->asks + (clock_mono_ms() - all->asks_ms) * ASKS_PER_S < 1000)
        return false;
    w->inode = diag_inode(all->diag_fd, udp, client, server);
    if (w->inode == 0)
        return false;
    w->of = all;
    w->fn = nobody; /* not before this returns */
    append(all, w);
    ask(all);
    w->fn = fn;
    return who_waits(w);
}

void whos_done(struct whos *all)
{
    loop_no_deadline(all->loop, &all->deadline);
    for (size_t i = 0; i < BROKER_WHO_MAX; i++)
        if (all->asked[i]) {
            struct who *w = all->asked[i];
            all->asked[i] = NULL;
            tell(w, "");
        }
    give_up_waiting(all);
}
