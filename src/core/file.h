/* file - the files of a sandbox, reached through its warren-init.
 *
 * Each call is one connection and one FILE operation of `wire`: the host opens no path of a
 * sandbox, and what comes back is checked like any outside input. `user` NULL is the sandbox's
 * own. The sandbox was entered by the caller (sandbox_enter) and is left by it. Calls block. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/core.h"
#include "core/sandbox.h"
#include "wire/wire.h"

struct file_xattr {
    char *name, *value;
    size_t len;
};

struct file_entry {
    char *path; /* absolute, as the sandbox sees it; in a tree relative to its top */
    enum wire_file_type type;
    unsigned mode; /* permission bits */
    uint32_t uid, gid;
    char *owner, *group; /* names; NULL where there are none */
    uint64_t size, blocks_bytes, inode, nlink, rdev;
    int64_t mtime_ns, atime_ns, ctime_ns;
    char *link; /* NULL: neither a symbolic nor a hard link */
    char *etag;
    struct file_xattr *xattrs;
    size_t n_xattrs;
    uint64_t length; /* READ: the bytes that follow */
};
void file_entry_done(struct file_entry *e);

/* One request, as wire has it; what is NULL or 0 is not sent, but for what `have` names. */
struct file_ask {
    enum wire_file_op op;
    const char *user;
    const char *const *paths;
    size_t n_paths;
    const char *const *patterns;
    size_t n_patterns;
    const char *to, *text, *owner, *etag, *after;
    const struct file_xattr *xattr;
    uint64_t flags, offset, length, mode, size, depth, limit, type;
    uint64_t have; /* FILE_HAVE bits: send it although it is 0 */
    int client_fd; /* 0: none; else a connection whose end ends the waiting */
};
#define FILE_HAVE(tag_) (UINT64_C(1) << ((tag_)-WIRE_T_OP))

#define FILE_QUIET_MS 600000 /* a walk through a tree may report nothing for long */

/* An operation under way: feed what it takes, then read what it answers. */
struct file_call;
int file_begin(struct core *core, const struct sandbox *s, const struct file_ask *ask,
               struct file_call **ret_call, struct err *err);
/* What WRITE and TREE_IN take. An operation that failed early shows here as -EPIPE: file_next
 * then tells why. */
int file_put_entry(struct file_call *call, const struct file_entry *e);
int file_put_data(struct file_call *call, const void *p, size_t n);
/* Up to n bytes that are in the socket `from`, or still to come, without a look at them; as init_conn_pass. */
int file_put_from(struct file_call *call, int from, uint64_t n, int from_ms, size_t *ret_taken);
int file_put_hole(struct file_call *call,
                  uint64_t n); /* so many zero bytes, as cheaply as can be */
int file_put_end(struct file_call *call);

enum file_event_type {
    FILE_ENTRY,
    FILE_DATA,
    FILE_MATCH,
    FILE_CHANGE,
    FILE_SKIPPED,
    FILE_READY, /* WATCH: it watches */
    FILE_DONE,  /* the operation succeeded; the last one */
};
struct file_event {
    enum file_event_type type;
    struct file_entry entry; /* ENTRY, CHANGE; MATCH, SKIPPED: its path */
    const char *data;        /* DATA; MATCH: the line; valid until the next call */
    size_t len;
    uint64_t line, column, offset, count; /* MATCH; CHANGE of REPLACE: count; DONE: count */
    uint64_t files, dirs, bytes, size;    /* DONE */
    enum wire_change change;
    uint64_t cookie;
    struct err err; /* SKIPPED */
};
/* 1 and an event (file_event_done it), below zero a failure: the operation's own is named in
 * err. -ETIMEDOUT after timeout_ms without an event. With timeout_ms -1 an operation that is
 * silent for too long fails with a name: after a minute, or ten where it writes or walks a tree.
 * -ECANCELED when hangup_fd (-1: none) was closed by its peer. */
int file_next(struct file_call *call, int timeout_ms, int hangup_fd, struct file_event *ret_ev,
              struct err *err);
void file_event_done(struct file_event *ev);
/* The bytes after a READ's entry, straight into `out`: how many, 0 at the end of the operation.
 * Not to be mixed with file_next once begun. */
ssize_t file_read(struct file_call *call, void *out, size_t max, int hangup_fd, struct err *err);
/* After range_not_satisfiable: the size of the file. */
uint64_t file_call_size(const struct file_call *call);
/* For archiver.c. Wait for the first answer, and fail if it is a refusal; it is not taken. Then let
 * the call read from another socket (takes fd) what answers in init's place. */
int file_call_check(struct file_call *call, int hangup_fd, struct err *err);
void file_call_redirect(struct file_call *call, int fd);
int file_call_fd(const struct file_call *call); /* borrowed: to be handed to warren-archive */
/* All waits that have no time of their own add up to this, and a ms for each byte; FILE_QUIET_MS unless
 * called. */
void file_call_hurry(struct file_call *call, int grace_ms);
void file_call_free(struct file_call *call); /* ends it, wherever it is; NULL is fine */
DEFINE_FREEP(struct file_call *, file_call_free)

/* One that answers with at most one entry, whole. *ret_e may be NULL. */
int file_do(struct core *core, const struct sandbox *s, const struct file_ask *ask,
            struct file_entry *ret_e, struct file_event *ret_done /* may be NULL */,
            struct err *err);
