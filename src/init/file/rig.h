/* rig - for tests: one operation in a process of its own, as a worker is, in a directory of its
 * own. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "init/file/job.h"
#include "init/file/placed.h"

#define RIG_SEEN_MAX 4096

struct rig {
    int fd;
    pid_t pid;
    struct buf ask, in;
    struct wire_header h;
    char what[64];              /* of ERROR; "" after OK */
    char seen[RIG_SEEN_MAX];    /* the paths of ENTRY, CHANGE and MATCH, a space behind each */
    char skipped[RIG_SEEN_MAX]; /* "path:what " of SKIPPED */
    struct buf data;            /* of DATA */
    uint64_t count, files, bytes;
};

/* ---- a directory ---- */

static char rig_top[64];

static inline void rig_enter(void)
{
    (void)snprintf(rig_top, sizeof(rig_top), "/tmp/warren-file-XXXXXX");
    CHECK(mkdtemp(rig_top) != NULL);
    CHECK_OK(chmod(rig_top, 0777));
    CHECK_OK(chdir(rig_top));
}

static inline void rig_leave(void)
{
    char command[128];
    CHECK_OK(chdir("/"));
    (void)snprintf(command, sizeof(command), "rm -rf %s", rig_top);
    CHECK_EQ(system(command), 0);
}

/* In the test's directory. The result is good for a few calls. */
static inline const char *rig_path(const char *name)
{
    static char paths[8][512];
    static unsigned at;
    char *out = paths[at++ % 8];
    (void)snprintf(out, 512, "%s%s%s", rig_top, *name ? "/" : "", name);
    return out;
}

static inline void rig_file(const char *name, const char *text)
{
    FILE *f = fopen(rig_path(name), "we");
    CHECK(f != NULL);
    CHECK(fputs(text, f) >= 0);
    CHECK_EQ(fclose(f), 0);
}

static inline const char *rig_text(const char *name)
{
    static char text[8192];
    int fd = open(rig_path(name), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    if (n < 0)
        return "<none>";
    text[n] = '\0';
    return text;
}

static inline bool rig_is_there(const char *name)
{
    struct stat st;
    return lstat(rig_path(name), &st) == 0;
}

static inline unsigned rig_mode(const char *name)
{
    struct stat st;
    return lstat(rig_path(name), &st) < 0 ? 0 : st.st_mode & 07777;
}

/* ---- an operation ---- */

static inline void rig_ask(struct rig *r, enum wire_file_op op, const char *user, const char *path)
{
    *r = (struct rig){ .fd = -1, .ask = BUF_INIT(WIRE_PAYLOAD_MAX) };
    r->in = (struct buf)BUF_INIT(WIRE_PAYLOAD_MAX);
    r->data = (struct buf)BUF_INIT(64u * 1024 * 1024);
    CHECK_OK(wire_put_u64(&r->ask, WIRE_T_OP, op));
    CHECK_OK(wire_put_str(&r->ask, WIRE_T_USER, user));
    CHECK_OK(wire_put_str(&r->ask, WIRE_T_PATH, path));
}

static inline void rig_put(struct rig *r, enum wire_tag tag, uint64_t v)
{
    CHECK_OK(wire_put_u64(&r->ask, tag, v));
}

static inline void rig_text_field(struct rig *r, enum wire_tag tag, const char *s)
{
    CHECK_OK(wire_put_str(&r->ask, tag, s));
}

static inline void rig_go(struct rig *r)
{
    int fds[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    CHECK_OK(buf_reserve(&r->ask, 1));
    placed_share();
    r->pid = fork();
    CHECK(r->pid >= 0);
    if (r->pid == 0) {
        (void)close(fds[0]);
        job_run(fds[1], r->ask.data, r->ask.len, NULL, 0);
        _exit(0);
    }
    (void)close(fds[1]);
    r->fd = fds[0];
}

static inline bool rig_field(const struct buf *b, enum wire_tag tag, struct wire_field *ret_f)
{
    struct wire_reader reader = { b->data, b->len };
    while (wire_next(&reader, ret_f) > 0)
        if (ret_f->tag == tag)
            return true;
    return false;
}

static inline uint64_t rig_number(const struct rig *r, enum wire_tag tag)
{
    struct wire_field f;
    uint64_t v = 0;
    if (rig_field(&r->in, tag, &f))
        CHECK_OK(wire_field_u64(&f, &v));
    return v;
}

static inline void rig_string(const struct rig *r, enum wire_tag tag, char *out, size_t size)
{
    struct wire_field f;
    out[0] = '\0';
    if (rig_field(&r->in, tag, &f))
        (void)snprintf(out, size, "%.*s", (int)f.n, f.p);
}

static inline int rig_next(struct rig *r)
{
    return wire_recv(r->fd, &r->h, &r->in, 20000);
}

static inline void rig_note_path(struct rig *r, char *list, bool with_what)
{
    char path[600], what[64] = "";
    size_t n = strlen(list), top_n = strlen(rig_top);
    rig_string(r, WIRE_T_PATH, path, sizeof(path));
    if (with_what)
        rig_string(r, WIRE_T_WHAT, what, sizeof(what));
    const char *shown =
        strncmp(path, rig_top, top_n) == 0 && path[top_n] == '/' ? path + top_n + 1 : path;
    (void)snprintf(list + n, RIG_SEEN_MAX - n, "%s%s%s ", shown, with_what ? ":" : "", what);
}

/* Everything up to OK or ERROR; 0 or -1. */
static inline int rig_finish(struct rig *r)
{
    for (;;) {
        int got = rig_next(r);
        if (got < 0) {
            (void)snprintf(r->what, sizeof(r->what), "<closed>");
            return -1;
        }
        switch ((int)r->h.type) {
        case WIRE_ENTRY:
        case WIRE_CHANGE:
        case WIRE_MATCH: rig_note_path(r, r->seen, false); break;
        case WIRE_SKIPPED: rig_note_path(r, r->skipped, true); break;
        case WIRE_DATA: CHECK_OK(buf_append(&r->data, r->in.data, r->in.len)); break;
        case WIRE_OK:
            r->count = rig_number(r, WIRE_T_COUNT);
            r->files = rig_number(r, WIRE_T_FILES);
            r->bytes = rig_number(r, WIRE_T_BYTES);
            return 0;
        case WIRE_ERROR: rig_string(r, WIRE_T_WHAT, r->what, sizeof(r->what)); return -1;
        default: CHECK(!"a frame that has no place here");
        }
    }
}

static inline void rig_done(struct rig *r)
{
    int status = 0;
    if (r->fd >= 0)
        (void)close(r->fd);
    CHECK_EQ(waitpid(r->pid, &status, 0), r->pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    buf_done(&r->ask);
    buf_done(&r->in);
    buf_done(&r->data);
}

/* One that takes nothing but its request. The name of its failure, "" if there was none. */
static inline const char *rig_run(struct rig *r)
{
    static char what[64];
    rig_go(r);
    (void)rig_finish(r);
    rig_done(r);
    (void)snprintf(what, sizeof(what), "%s", r->what);
    return what;
}

/* ---- what is sent ---- */

static inline int rig_send(struct rig *r, const void *p, size_t n)
{
    return wire_send_raw(r->fd, WIRE_DATA, p, n);
}

static inline int rig_send_entry(struct rig *r, enum wire_file_type type, const char *path,
                                 const char *link, uint64_t mode, const char *bytes)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(WIRE_PAYLOAD_MAX);
    int e = wire_put_u64(&b, WIRE_T_TYPE, type);
    if (e == 0)
        e = wire_put_str(&b, WIRE_T_PATH, path);
    if (e == 0)
        e = wire_put_str(&b, WIRE_T_LINK, link);
    if (e == 0)
        e = wire_put_u64(&b, WIRE_T_MODE, mode);
    if (e == 0 && type == WIRE_REGULAR)
        e = wire_put_u64(&b, WIRE_T_SIZE, bytes ? strlen(bytes) : 0);
    if (e == 0)
        e = wire_send(r->fd, WIRE_ENTRY, &b);
    if (e == 0 && bytes && *bytes)
        e = rig_send(r, bytes, strlen(bytes));
    return e;
}

static inline const char *rig_write(const char *user, const char *path, const char *text)
{
    struct rig r;
    static char what[64];
    rig_ask(&r, WIRE_FILE_WRITE, user, path);
    rig_go(&r);
    (void)rig_send(&r, text, strlen(text));
    (void)wire_send(r.fd, WIRE_END, NULL);
    (void)rig_finish(&r);
    rig_done(&r);
    (void)snprintf(what, sizeof(what), "%s", r.what);
    return what;
}
