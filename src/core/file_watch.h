/* file_watch - changes under a path of a sandbox, one after the other.
 *
 * What init tells in halves is told whole here: a file that left one watched name and came to
 * another was renamed, one that only left was removed, one that only came was created. */
#pragma once
#include "core/file.h"

enum file_change_type {
    FILE_CREATED,
    FILE_WRITTEN,
    FILE_REMOVED,
    FILE_RENAMED,
    FILE_ATTRIBUTES,
    FILE_OVERFLOW, /* some were lost: look again */
};
const char *file_change_name(enum file_change_type type);

struct file_change {
    enum file_change_type type;
    char *path, *to;         /* to: RENAMED; path NULL: OVERFLOW */
    struct file_entry entry; /* as it is now; without a path where it is gone */
    int64_t time_ms;
};
void file_change_done(struct file_change *c);

struct file_watch;
/* Watches when it returns. Flags: WIRE_F_RECURSIVE, WIRE_F_XATTRS. */
int file_watch_open(struct core *core, const struct sandbox *s, const char *user, const char *path,
                    uint64_t flags, int hangup_fd, struct file_watch **ret_w, struct err *err);
/* 1 and a change; failures as of file_next. file_not_found: what was watched is gone. */
int file_watch_next(struct file_watch *w, int timeout_ms, int hangup_fd, struct file_change *ret_c,
                    struct err *err);
void file_watch_cancel(struct file_watch *w); /* from another thread: ends a next */
void file_watch_free(struct file_watch *w);
DEFINE_FREEP(struct file_watch *, file_watch_free)
