#include "keeper/sweeper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/storage.h"

#define BATCH_MAX 64

#define SWEEP 's'
#define BURY 'b'
#define FLUSH 'f'
#define BURY_AFTER_MS 1000      /* how many roots go together when sandboxes are deleted in a row */
#define NICER 5                 /* than the keeper */
#define BURY_STACK (128 * 1024) /* of a thread that calls close */
#define DIRTY_MAX 256           /* beyond, the kernel does it in its own time */
#define FLUSH_AFTER_MS 2000     /* what is resumed or removed by then is not written for nothing */

/* What is to be written out, the oldest first. */
struct dirty {
    int fds[DIRTY_MAX];
    int64_t due_ms[DIRTY_MAX];
    size_t n;
};

/* Roots of deleted sandboxes, not let go of yet. */
struct dead {
    int fds[BATCH_MAX];
    size_t n;
    int64_t due_ms;
};

static void take(struct dirty *d, struct dead *dead, char what, int fd)
{
    if (what == BURY && dead->n < BATCH_MAX) {
        if (dead->n == 0)
            dead->due_ms = clock_mono_ms() + BURY_AFTER_MS;
        dead->fds[dead->n++] = fd;
        return;
    }
    if (what != FLUSH || d->n == DIRTY_MAX) {
        (void)close(fd);
        return;
    }
    d->due_ms[d->n] = clock_mono_ms() + FLUSH_AFTER_MS;
    d->fds[d->n++] = fd;
}

static void *let_go(void *arg)
{
    (void)close(*(int *)arg);
    return NULL;
}

/* All at once: each unmounts a filesystem, for which the kernel commits the pool's transaction, and those who wait for
 * the same commit share it. One after the other each would find what new sandboxes have begun meanwhile, and pay
 * for a commit of its own; and everybody who makes a sandbox waits for commits. */
static void bury(struct dead *dead)
{
    pthread_t threads[BATCH_MAX];
    bool started[BATCH_MAX] = { false };
    pthread_attr_t attr;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, BURY_STACK);
    for (size_t i = 1; i < dead->n; i++)
        started[i] = pthread_create(&threads[i], &attr, let_go, &dead->fds[i]) == 0;
    (void)pthread_attr_destroy(&attr);
    for (size_t i = 0; i < dead->n; i++)
        if (!started[i])
            (void)let_go(&dead->fds[i]);
    for (size_t i = 1; i < dead->n; i++)
        if (started[i])
            (void)pthread_join(threads[i], NULL);
    dead->n = 0;
}

/* One that is gone by now cannot be copied. */
static void flush_oldest(struct storage *storage, struct dirty *d)
{
    (void)storage_flush(storage, d->fds[0], NULL);
    (void)close(d->fds[0]);
    d->n--;
    memmove(d->fds, d->fds + 1, d->n * sizeof(*d->fds));
    memmove(d->due_ms, d->due_ms + 1, d->n * sizeof(*d->due_ms));
    storage_empty_trash(storage); /* the copy lies there */
}

/* How long to wait for a message; -1: until there is one. */
static int patience(const struct dirty *d, const struct dead *dead)
{
    int64_t due = INT64_MAX;
    if (d->n)
        due = d->due_ms[0];
    if (dead->n && dead->due_ms < due)
        due = dead->due_ms;
    if (due == INT64_MAX)
        return -1;
    int64_t left = due - clock_mono_ms();
    return left < 0 ? 0 : (int)left;
}

/* No more fit in, their time has come, or somebody may be waiting for the room. */
static bool must_bury(struct storage *storage, const struct dead *dead)
{
    return dead->n == BATCH_MAX || (dead->n && clock_mono_ms() >= dead->due_ms) ||
           (dead->n && storage_is_tight(storage));
}

/* Take up to a batch of waiting messages. Receive a message only when there is room for it: one
 * that is received and left aside would keep its descriptor open, and with it a deleted
 * sandbox's files. *ret_sweep: the trash is to be emptied now. False: the keeper is gone. */
static bool take_batch(int sock, struct dirty *d, struct dead *dead, bool *ret_sweep)
{
    *ret_sweep = false;
    for (int i = 0; i < BATCH_MAX && dead->n < BATCH_MAX && fd_wait(sock, POLLIN, 0) > 0; i++) {
        char byte;
        int root = -1;
        size_t nfds = 0;
        if (fd_recv_msg(sock, &byte, 1, &root, 1, &nfds) <= 0)
            return false;
        *ret_sweep |= byte == SWEEP || nfds == 0;
        if (nfds == 1)
            take(d, dead, byte, root);
    }
    return true;
}

/* Empty the trash once for each batch. */
static _Noreturn void run(int sock, struct storage *storage)
{
    static struct dirty dirty;
    static struct dead dead;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "keeper-sweeper");
    /* What users wait for comes first, however nice the keeper was started. */
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER);
    storage_empty_trash(storage);
    for (;;) {
        bool sweep = false;
        if (fd_wait(sock, POLLIN, patience(&dirty, &dead)) != 0 &&
            !take_batch(sock, &dirty, &dead, &sweep))
            _exit(0);
        if (must_bury(storage, &dead)) {
            bury(&dead);
            sweep = true;
        }
        if (sweep)
            storage_empty_trash(storage);
        if (dirty.n && clock_mono_ms() >= dirty.due_ms[0])
            flush_oldest(storage, &dirty);
    }
}

int sweeper_start(struct sweeper *s, struct storage *storage, struct err *err)
{
    int sv[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return err_set(err, errno, "cannot make a socket pair");
    pid_t pid = fork();
    if (pid == 0) {
        /* A replacement is forked from a keeper that has cells: its copies of their descriptors
         * would keep them alive. */
        storage_close_others(storage, sv[1]);
        run(sv[1], storage);
    }
    (void)close(sv[1]);
    if (pid < 0) {
        int r = err_set(err, errno, "cannot start the sweeper");
        (void)close(sv[0]);
        return r;
    }
    s->storage = storage;
    s->pid = pid;
    s->fd = sv[0];
    return 0;
}

static void hand_over(struct sweeper *s, char byte, int root_fd)
{
    int r = fd_try_send_msg(s->fd, &byte, 1, &root_fd, root_fd >= 0 ? 1 : 0);
    if (r == -EPIPE || r == -ECONNRESET) {
        (void)waitpid(s->pid, NULL, WNOHANG);
        (void)close(take_fd(s->fd));
        if (sweeper_start(s, s->storage, NULL) == 0)
            (void)fd_try_send_msg(s->fd, &byte, 1, &root_fd, root_fd >= 0 ? 1 : 0);
    }
    /* Taken over there, or dropped here where that queue was full; the trash waits either way. */
    if (root_fd >= 0)
        (void)close(root_fd);
}

void sweeper_sweep(struct sweeper *s, int root_fd)
{
    hand_over(s, SWEEP, root_fd);
}

void sweeper_bury(struct sweeper *s, int root_fd)
{
    hand_over(s, BURY, root_fd);
}

void sweeper_flush(struct sweeper *s, int subvolume_fd)
{
    hand_over(s, FLUSH, subvolume_fd);
}
