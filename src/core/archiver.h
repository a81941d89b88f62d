/* archiver - a tree of a sandbox as an archive, made and read by warren-archive.
 *
 * Archives are parsed in a process of their own that can reach nothing but its descriptors: the
 * archive's bytes (a pipe to us), the connection of a TREE_IN or TREE_OUT call, and a way to
 * report. Here is only the other end of the pipe. Calls block. */
#pragma once
#include <sys/types.h>

#include "core/file.h"

struct archiver;

/* "tar", "tar.gz", "tar.zst", "zip"; unpacking also "auto". */
bool archiver_format_known(const char *format, bool unpack);

/* Hands the call over; takes it, also on failure. A call that init has refused already fails
 * here, with init's reason: hangup_fd as of file_next. */
int archiver_pack(struct core *core, struct file_call *call, const char *format, int hangup_fd,
                  struct archiver **ret_archiver, struct err *err);
int archiver_unpack(struct core *core, struct file_call *call, const char *format,
                    struct archiver **ret_archiver, struct err *err);

/* Packing: how many bytes, 0 at the end (archive_finish tells whether it is whole), -errno. */
ssize_t archiver_read(struct archiver *a, void *out, size_t max, int hangup_fd);
/* Unpacking; -EPIPE: it ended early, archive_finish tells why. */
int archiver_write(struct archiver *a, const void *p, size_t n);
/* After the last byte. Events as of file_next: FILE_ENTRY (path under the top, size) for what was
 * unpacked, FILE_DONE at last. */
int archiver_next(struct archiver *a, int hangup_fd, struct file_event *ret_ev, struct err *err);
void archiver_free(struct archiver *a); /* ends it, wherever it is; NULL is fine */
DEFINE_FREEP(struct archiver *, archiver_free)
