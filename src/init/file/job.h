/* job - one FILE operation under way in its worker: who asked for what, and what to answer.
 *
 * An operation is a function in ops_*.c that runs top to bottom, blocks as it likes, and returns 0
 * or a negative errno that job_fail gave a name to. job_run is all a worker does. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "init/account.h"
#include "init/file/ask.h"
#include "init/file/talk.h"

#define JOB_NOTES_MAX 4

struct job {
    const struct ask *ask;
    const char *home; /* where a relative path begins */
    uid_t uid;
    gid_t gid;
    struct talk talk;
    struct err err;
    char *err_path;    /* NULL: the failure is of no path */
    uint64_t err_size; /* of a file that does not reach as far as was asked for */
    struct {
        enum wire_tag tag;
        uint64_t value;
    } notes[JOB_NOTES_MAX]; /* what OK will say */
    size_t n_notes;
    char *after; /* LIST, FIND, SEARCH: there is more behind this path */
};

/* Read the request, become the user, do it, answer. `payload` is the FILE frame's, writable up to
 * and with payload[n]; `rest` what came behind it. The process is of no use for anything else
 * afterwards. */
void job_run(int fd, char *payload, size_t n, const char *rest, size_t rest_n);

/* The failure to answer with: `code` as a name and a sentence about `path`. Returns -code; an end
 * of the connection passes through. */
int job_fail(struct job *j, int code, const char *path);
/* The same in other words. */
int job_refuse(struct job *j, int code, enum failure failure, const char *path, const char *why);
int job_skip(struct job *j, int code, const char *path); /* SKIPPED: this one, not the others */
int job_skip_why(struct job *j, int code, enum failure failure, const char *path, const char *why);
void job_note(struct job *j, enum wire_tag tag, uint64_t value);

/* The operations. */
int op_read(struct job *j);
int op_write(struct job *j);
int op_stat(struct job *j);
int op_list(struct job *j);
int op_mkdir(struct job *j);
int op_move(struct job *j);
int op_copy(struct job *j);
int op_remove(struct job *j);
int op_chmod(struct job *j);
int op_chown(struct job *j);
int op_symlink(struct job *j);
int op_xattrs(struct job *j);
int op_xattr_set(struct job *j);
int op_xattr_rm(struct job *j);
int op_truncate(struct job *j);
int op_usage(struct job *j);
int op_find(struct job *j);
int op_search(struct job *j);
int op_replace(struct job *j);
int op_watch(struct job *j);
int op_tree_out(struct job *j);
int op_tree_in(struct job *j);
