#include "base/logring.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

struct line {
    int64_t time_ms;
    enum log_level level;
    char module[LOGRING_MODULE_MAX];
    char *text;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct line lines[LOGRING_LINES];
    uint64_t first, end; /* numbers: lines [first, end) are there */
    size_t bytes;
    unsigned waiting;
} ring = { .lock = PTHREAD_MUTEX_INITIALIZER, .first = 1, .end = 1 };

static struct line *at(uint64_t seq)
{
    return &ring.lines[seq % LOGRING_LINES];
}

static void drop_first(void)
{
    struct line *l = at(ring.first++);
    ring.bytes -= strlen(l->text);
    free(l->text);
    l->text = NULL;
}

static void add(const struct log_record *rec)
{
    char *text = strdup(rec->text);
    if (!text)
        return;
    (void)pthread_mutex_lock(&ring.lock);
    ring.bytes += strlen(text);
    while (ring.end - ring.first == LOGRING_LINES ||
           (ring.bytes > LOGRING_BYTES && ring.first < ring.end))
        drop_first();
    struct line *l = at(ring.end++);
    *l = (struct line){ .time_ms = rec->time_ms, .level = rec->level, .text = text };
    (void)snprintf(l->module, sizeof(l->module), "%s", rec->module);
    if (ring.waiting)
        (void)pthread_cond_broadcast(&ring.more);
    (void)pthread_mutex_unlock(&ring.lock);
}

void logring_start(void)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&ring.more, &attr);
    (void)pthread_condattr_destroy(&attr);
    log_set_tap(add);
}

static void copy(uint64_t seq, struct logring_line *ret_line)
{
    const struct line *l = at(seq);
    ret_line->seq = seq;
    ret_line->time_ms = l->time_ms;
    ret_line->level = l->level;
    memcpy(ret_line->module, l->module, sizeof(l->module));
    (void)snprintf(ret_line->text, sizeof(ret_line->text), "%s", l->text);
}

int logring_next(uint64_t since, int wait_ms, struct logring_line *ret_line)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_mutex_lock(&ring.lock);
    ring.waiting++;
    while (ring.end <= since + 1 && wait_ms > 0)
        if (pthread_cond_timedwait(&ring.more, &ring.lock, &until) == ETIMEDOUT)
            break;
    ring.waiting--;
    int r = ring.end > since + 1;
    if (r)
        copy(since + 1 < ring.first ? ring.first : since + 1, ret_line);
    (void)pthread_mutex_unlock(&ring.lock);
    return r;
}
