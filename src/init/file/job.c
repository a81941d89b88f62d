#include "init/file/job.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "init/file/fault.h"
#include "init/file/self.h"
#include "init/launch.h"

static int (*const ops[])(struct job *j) = {
    [WIRE_FILE_READ] = op_read,           [WIRE_FILE_WRITE] = op_write,
    [WIRE_FILE_STAT] = op_stat,           [WIRE_FILE_LIST] = op_list,
    [WIRE_FILE_MKDIR] = op_mkdir,         [WIRE_FILE_MOVE] = op_move,
    [WIRE_FILE_COPY] = op_copy,           [WIRE_FILE_REMOVE] = op_remove,
    [WIRE_FILE_CHMOD] = op_chmod,         [WIRE_FILE_CHOWN] = op_chown,
    [WIRE_FILE_SYMLINK] = op_symlink,     [WIRE_FILE_XATTRS] = op_xattrs,
    [WIRE_FILE_XATTR_SET] = op_xattr_set, [WIRE_FILE_XATTR_RM] = op_xattr_rm,
    [WIRE_FILE_TRUNCATE] = op_truncate,   [WIRE_FILE_USAGE] = op_usage,
    [WIRE_FILE_FIND] = op_find,           [WIRE_FILE_SEARCH] = op_search,
    [WIRE_FILE_REPLACE] = op_replace,     [WIRE_FILE_WATCH] = op_watch,
    [WIRE_FILE_TREE_OUT] = op_tree_out,   [WIRE_FILE_TREE_IN] = op_tree_in,
};

int job_refuse(struct job *j, int code, enum failure failure, const char *path, const char *why)
{
    if (code == EPIPE && failure == FAIL_NONE)
        return -EPIPE;
    if (j->err.code) /* the first failure is the one that is told */
        return -j->err.code;
    free(j->err_path);
    j->err_path = path ? strdup(path) : NULL;
    if (!path)
        return err_fail_as(&j->err, code, failure, "%s", why);
    return err_fail_as(&j->err, code, failure, "'%.250s' %s", path, why);
}

int job_fail(struct job *j, int code, const char *path)
{
    code = code < 0 ? -code : code;
    const struct fault *f = fault_of(code);
    return job_refuse(j, code, f->failure, path, f->says);
}

int job_skip_why(struct job *j, int code, enum failure failure, const char *path, const char *why)
{
    struct buf *b = talk_begin(&j->talk);
    char msg[ERR_MSG_MAX];
    (void)snprintf(msg, sizeof(msg), "'%.250s' %s", path, why);
    int r = wire_put_str(b, WIRE_T_PATH, path);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_CODE, (uint64_t)code);
    if (r == 0)
        r = wire_put_str(b, WIRE_T_WHAT, failure_name(failure));
    if (r == 0)
        r = wire_put_str(b, WIRE_T_MESSAGE, msg);
    return r < 0 ? r : talk_end(&j->talk, WIRE_SKIPPED);
}

int job_skip(struct job *j, int code, const char *path)
{
    code = code < 0 ? -code : code;
    if (code == EPIPE)
        return -EPIPE;
    const struct fault *f = fault_of(code);
    return job_skip_why(j, code, f->failure, path, f->says);
}

void job_note(struct job *j, enum wire_tag tag, uint64_t value)
{
    if (j->n_notes == JOB_NOTES_MAX)
        return;
    j->notes[j->n_notes].tag = tag;
    j->notes[j->n_notes++].value = value;
}

/* ---- the last answer ---- */

static void say_ok(struct job *j)
{
    struct buf *b = talk_begin(&j->talk);
    int r = 0;
    for (size_t i = 0; r == 0 && i < j->n_notes; i++)
        r = wire_put_u64(b, j->notes[i].tag, j->notes[i].value);
    if (r == 0)
        r = wire_put_str(b, WIRE_T_AFTER, j->after);
    if (r == 0 && talk_end(&j->talk, WIRE_OK) == 0)
        (void)talk_flush(&j->talk);
}

static void say_error(struct job *j)
{
    struct buf *b = talk_begin(&j->talk);
    int r = wire_put_u64(b, WIRE_T_CODE, (uint64_t)j->err.code);
    if (r == 0)
        r = wire_put_str(b, WIRE_T_WHAT, failure_name(j->err.failure));
    if (r == 0)
        r = wire_put_str(b, WIRE_T_MESSAGE, j->err.msg);
    if (r == 0)
        r = wire_put_str(b, WIRE_T_PATH, j->err_path);
    if (r == 0 && j->err_size)
        r = wire_put_u64(b, WIRE_T_SIZE, j->err_size);
    if (r == 0 && talk_end(&j->talk, WIRE_ERROR) == 0)
        (void)talk_flush(&j->talk);
}

/* ---- becoming the user ---- */

static int become(struct job *j, const char *user)
{
    const struct account *who;
    int r = account_lookup(user, &who);
    if (r == -ENOENT)
        return err_fail(&j->err, FAIL_USER_NOT_FOUND, "there is no user '%s'", user);
    if (r == -ESRCH)
        return err_fail(&j->err, FAIL_USER_NOT_FOUND, "there is no group as in '%s'", user);
    if (r < 0)
        return err_fail(&j->err, FAIL_OUT_OF_MEMORY, "no memory to look up '%s'", user);
    if (j->ask->root[0]) {
        r = self_root(j->ask->root);
        if (r < 0)
            return err_fail_as(&j->err, -r, FAIL_NOT_FOUND, "there is no '%s'", j->ask->root);
    }
    r = ask_is(j->ask, WIRE_F_FOR_USER) ? launch_act_for(who) : launch_become(who);
    if (r < 0)
        return err_fail_as(&j->err, -r, FAIL_USER_NOT_FOUND, "cannot take on the ids of '%s'",
                           user);
    j->home = j->ask->root[0] ? "/" : who->home;
    j->uid = who->uid;
    j->gid = who->gid;
    (void)umask(022);
    return 0;
}

void job_run(int fd, char *payload, size_t n, const char *rest, size_t rest_n)
{
    struct ask ask = { 0 };
    struct job j = { .ask = &ask };
    (void)signal(SIGPIPE, SIG_IGN); /* sendfile has no flag against it */
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may grow no more is an error, not an end */
    talk_init(&j.talk, fd, rest, rest_n);
    int r = ask_decode(payload, n, &ask, &j.err);
    if (r == 0)
        r = become(&j, ask.user);
    if (r == 0)
        r = ops[ask.op](&j); /* which ask_decode knows to be one of them */
    if (r == 0)
        say_ok(&j);
    else if (j.err.code != 0)
        say_error(&j);
    ask_done(&ask);
    talk_done(&j.talk);
    free(j.err_path);
    free(j.after);
}
