/* watches - file watches that the daemon keeps between polls, for clients that cannot hold a
 * connection open.
 *
 * Each is a thread that reads changes into a queue of bounded length; what does not fit is
 * counted. One ends when it was deleted, when nobody asked for ten minutes, with its sandbox, and
 * with the daemon. Numbers are never used again while the daemon lives. */
#pragma once
#include "core/file_watch.h"

#define WATCHES_PER_SANDBOX 64
#define WATCH_QUEUE_MAX 4096
#define WATCH_IDLE_MS (10 * 60 * 1000)

/* Flags as of file_watch_open; `note` (may be NULL) is the caller's own and comes back with each batch. */
int watches_add(struct core *core, const struct sandbox *s, const char *user, const char *path,
                uint64_t flags, const char *note, uint64_t *ret_n, struct err *err);
/* What has come since the last time, waiting up to wait_ms for a first one; the caller frees with
 * watches_batch_done. -ENOENT watch_not_found also for one that has ended and is empty, with the
 * reason; -ECANCELED: hangup_fd's peer went away. */
struct watches_batch {
    struct file_change *changes;
    size_t n;
    uint64_t dropped;
    char *note; /* NULL: none was given */
};
int watches_poll(struct core *core, const char *sandbox, uint64_t n, int wait_ms, int hangup_fd,
                 struct watches_batch *ret_b, struct err *err);
void watches_batch_done(struct watches_batch *b);
int watches_remove(struct core *core, const char *sandbox, uint64_t n, struct err *err);
void watches_stop(struct core *core); /* all of them, before the core is freed */
