#include "core/chunker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/archive_program.h"

#define PIPE_BYTES (1024 * 1024)
#define REPORT_WAIT_MS 60000

struct chunker {
    int fd;     /* heads and packed bytes, from it or to it */
    int report; /* joining */
    pid_t pid;
};

static struct chunker *chunker_new(void)
{
    struct chunker *c = calloc(1, sizeof(*c));
    if (c)
        c->fd = c->report = -1;
    return c;
}

/* ---- into pieces ---- */

static int known_file(const uint8_t (*known)[CHUNK_DIGEST], size_t n, struct err *err)
{
    int fd = memfd_create("known", MFD_CLOEXEC);
    if (fd >= 0 && (fd_write_full(fd, known, n * CHUNK_DIGEST) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd < 0 ? err_set(err, ENOMEM, "cannot make a file in memory") : fd;
}

int chunker_split(struct core *core, int in, const uint8_t (*known)[CHUNK_DIGEST], size_t n,
                  struct chunker **ret_c, struct err *err)
{
    int pipe_[2];
    _cleanup_(chunker_freep) struct chunker *c = chunker_new();
    if (!c)
        return err_set(err, ENOMEM, "cannot allocate a stream");
    _cleanup_fd_ int list = known_file(known, n, err);
    if (list < 0)
        return list;
    if (pipe2(pipe_, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    c->fd = pipe_[0];
    _cleanup_fd_ int theirs = pipe_[1];
    (void)fcntl(c->fd, F_SETPIPE_SZ, PIPE_BYTES);
    const struct archive_ends ends = { in, theirs, list, -1 };
    static const char *const words[] = { "chunk", NULL };
    int r = archive_program_start(core, words, &ends, &c->pid, err);
    if (r >= 0)
        *ret_c = take_ptr(c);
    return r;
}

int chunker_next(struct chunker *c, struct chunk_head *ret_head, void *packed, struct err *err)
{
    int r = fd_read_full(c->fd, ret_head, sizeof(*ret_head));
    if (r < 0)
        return err_set(err, EIO, "warren-archive ended before the files did");
    if (ret_head->kind < CHUNK_DATA || ret_head->kind > CHUNK_END || ret_head->raw > CHUNK_MAX ||
        ret_head->packed > CHUNK_PACKED_MAX ||
        (ret_head->packed > 0) != (ret_head->kind == CHUNK_DATA) ||
        (ret_head->raw > 0) != (ret_head->kind != CHUNK_END))
        return err_set(err, EPROTO, "warren-archive says what it should not");
    r = fd_read_full(c->fd, packed, ret_head->packed);
    return r < 0 ? err_set(err, EIO, "warren-archive ended before the files did") : 0;
}

/* ---- and back ---- */

int chunker_join(struct core *core, int out, struct chunker **ret_c, struct err *err)
{
    int in[2], report[2];
    _cleanup_(chunker_freep) struct chunker *c = chunker_new();
    if (!c)
        return err_set(err, ENOMEM, "cannot allocate a stream");
    if (pipe2(in, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    c->fd = in[1];
    _cleanup_fd_ int theirs = in[0];
    (void)fcntl(c->fd, F_SETPIPE_SZ, PIPE_BYTES);
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    c->report = report[0];
    _cleanup_fd_ int tells = report[1];
    const struct archive_ends ends = { theirs, out, -1, tells };
    static const char *const words[] = { "join", NULL };
    int r = archive_program_start(core, words, &ends, &c->pid, err);
    if (r >= 0)
        *ret_c = take_ptr(c);
    return r;
}

int chunker_give(struct chunker *c, const struct chunk_head *head, const void *packed,
                 struct err *err)
{
    int r = fd_write_full(c->fd, head, sizeof(*head));
    if (r == 0)
        r = fd_write_full(c->fd, packed, head->packed);
    return r < 0 ? err_set(err, -r, "warren-archive ended early") : 0;
}

int chunker_end(struct chunker *c, uint64_t *ret_pieces, struct err *err)
{
    struct chunk_report rep;
    (void)close(take_fd(c->fd));
    int r = fd_wait(c->report, POLLIN, REPORT_WAIT_MS);
    if (r > 0)
        r = fd_read_full(c->report, &rep, sizeof(rep));
    else if (r == 0)
        r = -ETIMEDOUT;
    if (r < 0)
        return err_set(err, -r, "warren-archive was killed");
    *ret_pieces = rep.pieces;
    if (rep.code == EBADMSG)
        return err_fail(err, FAIL_ARCHIVE_CORRUPT, "the archive is damaged");
    return rep.code ? err_set(err, EIO, "the archive could not be put together") : 0;
}

void chunker_free(struct chunker *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        (void)close(c->fd);
    if (c->report >= 0)
        (void)close(c->report);
    if (c->pid > 0) {
        (void)kill(c->pid, SIGKILL); /* it is ours until it is waited for */
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    free(c);
}
