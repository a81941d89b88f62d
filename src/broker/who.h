/* who - which program of a sandbox made a connection or asked a question.
 *
 * A question is embedded in what it is for. The kernel says at once which socket it is (diag.h); whose that
 * is only the sandbox knows, so warrend asks its init, for several sockets at a time, one question of a
 * sandbox after the other, and only so many in a second. Nobody has to wait: the answer is a text that
 * the sandbox could forge, made harmless here, and may never come. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/loop.h"
#include "broker/diag.h"
#include "wire/broker.h"

struct whos;

struct who {
    struct whos *of; /* NULL: it does not wait */
    struct who *next, **at;
    bool asked;
    uint32_t inode;
    /* Once, not before who_begin returns. program: "": not known. */
    void (*fn)(struct who *w, const char *program);
};

/* One sandbox's. */
struct whos {
    struct loop *loop;
    struct deadline deadline; /* of what was asked */
    char sandbox[ID_SIZE];
    int diag_fd;                       /* -1: none, and nothing is known; borrowed */
    uint64_t number;                   /* of what was asked; 0: nothing */
    struct who *asked[BROKER_WHO_MAX]; /* NULL: it was given up meanwhile */
    struct who *first, **last;         /* not asked yet */
    size_t n_waiting;
    int64_t asks, asks_ms; /* how many may be asked, and when that was so */
    int (*send)(void *arg, const struct broker_who *msg);
    void *arg;
};

void whos_init(struct whos *all, struct loop *loop, const char *sandbox,
               int (*send)(void *arg, const struct broker_who *msg), void *arg);
void whos_done(struct whos *all); /* who still waits is told that nothing is known */

/* False: it is not known, and will not be; fn is not called. */
bool who_begin(struct whos *all, struct who *w, bool udp, const struct diag_end *client,
               const struct diag_end *server, void (*fn)(struct who *w, const char *program));
bool who_waits(const struct who *w);
void who_end(struct who *w);                     /* may not wait at all; fn is not called */
void who_move(struct who *from, struct who *to); /* `to` waits in its place, with a fn of its own */
void whos_answer(struct whos *all, const struct broker_who_answer *msg);
