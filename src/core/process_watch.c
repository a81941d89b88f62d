/* One thread waits for the ends of all processes that somebody left to run by themselves: each
 * is a connection that only hears of the exit, so nothing here slows a process down. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/json.h"
#include "base/log.h"
#include "core/event.h"
#include "core/process.h"

#define LOG_MODULE "process"
#define WATCHES_MAX 4096 /* descriptors we spend on this */

struct watch {
    struct core *core;
    char owner[OWNER_MAX];
    char sandbox[ID_SIZE];
    struct process_stream *stream;
    struct watch *next, *prev;
};

static struct {
    pthread_mutex_t lock; /* of the list */
    pthread_t thread;
    bool running;
    int epoll_fd, stop_fd;
    struct watch *first;
    size_t n;
} watcher = { .lock = PTHREAD_MUTEX_INITIALIZER, .epoll_fd = -1, .stop_fd = -1 };

static void emit(const struct watch *w, const char *type, const struct process *p)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);
    struct jout j = JOUT_INIT(&b);

    jout_open(&j, NULL, '{');
    jout_uint(&j, "process", p->proc);
    jout_int(&j, "pid", p->pid);
    jout_str(&j, "label", p->label);
    if (p->ended) {
        jout_int(&j, "exit_code", p->exit_code);
        jout_str(&j, "signal", p->exit_signal ? process_signal_name(p->exit_signal) : NULL);
        jout_str(&j, "reason", process_reason_name(p->reason));
        jout_uint(&j, "cpu_us", p->cpu_us);
    }
    jout_close(&j, '}');
    event_emit(w->core, w->owner, w->sandbox, type, jout_done(&j) < 0 ? NULL : b.data);
}

static void watch_free(struct watch *w)
{
    process_stream_free(w->stream); /* closing takes it out of the epoll set */
    free(w);
}

static void unlink_watch(struct watch *w)
{
    (void)pthread_mutex_lock(&watcher.lock);
    if (w->prev)
        w->prev->next = w->next;
    else
        watcher.first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    watcher.n--;
    (void)pthread_mutex_unlock(&watcher.lock);
}

/* True once there is nothing more to hear. */
static bool watch_step(struct watch *w)
{
    for (;;) {
        struct process_event ev;
        int r = process_next(w->stream, 0, -1, &ev, NULL);
        if (r < 0)
            return r != -ETIMEDOUT; /* else the sandbox ended, and the feed says so */
        if (ev.type == PROCESS_ENDED) {
            emit(w, "process.ended", &ev.ended);
            process_done(&ev.ended);
            return true;
        }
    }
}

static void *watch_all(void *arg)
{
    struct epoll_event ev;
    for (;;) {
        int n = epoll_wait(watcher.epoll_fd, &ev, 1, -1);
        if (n < 0 && errno != EINTR)
            return NULL;
        if (n <= 0)
            continue;
        struct watch *w = ev.data.ptr;
        if (!w)
            return NULL; /* the stop descriptor */
        if (watch_step(w)) {
            unlink_watch(w);
            watch_free(w);
        }
    }
}

/* Under the lock. */
static int start_thread(void)
{
    struct epoll_event ev = { .events = EPOLLIN };
    watcher.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    watcher.stop_fd = eventfd(0, EFD_CLOEXEC);
    if (watcher.epoll_fd >= 0 && watcher.stop_fd >= 0 &&
        epoll_ctl(watcher.epoll_fd, EPOLL_CTL_ADD, watcher.stop_fd, &ev) == 0 &&
        pthread_create(&watcher.thread, NULL, watch_all, NULL) == 0) {
        watcher.running = true;
        return 0;
    }
    cleanup_close(&watcher.epoll_fd);
    cleanup_close(&watcher.stop_fd);
    watcher.epoll_fd = watcher.stop_fd = -1;
    return -EAGAIN;
}

/* The list holds it, then the thread may see it: it is the thread's from here on. */
static int add(struct watch *w)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.ptr = w };
    int r = 0;
    (void)pthread_mutex_lock(&watcher.lock);
    if (watcher.n >= WATCHES_MAX)
        r = -ENOSPC;
    if (r >= 0 && !watcher.running)
        r = start_thread();
    if (r >= 0 && epoll_ctl(watcher.epoll_fd, EPOLL_CTL_ADD, process_stream_fd(w->stream), &ev) < 0)
        r = -errno;
    if (r >= 0) {
        w->next = watcher.first;
        if (w->next)
            w->next->prev = w;
        watcher.first = w;
        watcher.n++;
    }
    (void)pthread_mutex_unlock(&watcher.lock);
    return r;
}

void process_watch(struct core *core, const struct sandbox *s, const struct process *p,
                   struct process_stream *stream)
{
    struct watch *w = calloc(1, sizeof(*w));
    if (!w) {
        process_stream_free(stream);
        return;
    }
    w->core = core;
    w->stream = stream;
    memcpy(w->owner, s->owner, sizeof(w->owner));
    memcpy(w->sandbox, s->id, sizeof(w->sandbox));
    emit(w, "process.started", p);
    int r = stream ? 0 : process_attach(core, s, p->proc, 0, true, &w->stream, NULL, NULL);
    /* What came together with the answer is in our buffer already, not in the socket. */
    if (r >= 0 && watch_step(w)) {
        watch_free(w);
        return;
    }
    if (r >= 0)
        r = add(w);
    if (r < 0) {
        log_debug("the end of a process will not be told sandbox=%s process=%llu", s->id,
                  (unsigned long long)p->proc);
        watch_free(w);
    }
}

void process_watch_stop(void)
{
    if (watcher.running) {
        (void)eventfd_write(watcher.stop_fd, 1);
        (void)pthread_join(watcher.thread, NULL);
        cleanup_close(&watcher.epoll_fd);
        cleanup_close(&watcher.stop_fd);
        watcher.epoll_fd = watcher.stop_fd = -1;
        watcher.running = false;
    }
    while (watcher.first) {
        struct watch *w = watcher.first;
        watcher.first = w->next;
        watch_free(w);
    }
    watcher.n = 0;
}
