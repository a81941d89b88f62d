#include "keeper/park.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "kernel/cgroup.h"
#include "kernel/netns.h"
#include "wire/wire.h"

/* For a whole conversation: programs inside cannot reach init, but can slow it down. */
#define LINE_WAIT_MS 10000
#define PING_WAIT_MS 1000
#define RETURN_WAIT_MS 5000 /* init has nothing else to do */
#define NOTE_SIZE 96

void parked_close(struct parked *p)
{
    fd_close_all(&p->listener, 1);
    fd_close_all(p->peers, p->n);
    *p = (struct parked)PARKED_INIT;
}

/* ---- the note ---- */

int park_note_write(int run_dir, const struct park_note *note)
{
    char text[NOTE_SIZE];
    int n = snprintf(text, sizeof(text), "%s %d %" PRIu64 "\n", note->name, (int)note->criu,
                     note->criu_start);
    _cleanup_fd_ int fd =
        openat(run_dir, PARK_NOTE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    return fd_write_full(fd, text, (size_t)n);
}

int park_note_read(int run_dir, struct park_note *ret_note)
{
    char text[NOTE_SIZE];
    struct park_note note = { 0 };
    int criu = 0;
    ssize_t n = fd_read_file_at(run_dir, PARK_NOTE, text, sizeof(text));
    if (n < 0)
        return (int)n;
    if (sscanf(text, "%32[0-9a-f] %d %" SCNu64, note.name, &criu, &note.criu_start) != 3)
        return -EBADMSG;
    note.criu = criu;
    *ret_note = note;
    return 0;
}

void park_note_remove(int run_dir)
{
    (void)unlinkat(run_dir, PARK_NOTE, 0);
}

/* ---- there ---- */

static int connect_to(int run_dir, int wait_ms)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    struct timeval limit = { .tv_sec = wait_ms / 1000 }; /* while init's backlog is full */
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/init.sock", run_dir);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
        connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    return take_fd(fd);
}

static int send_frame(int fd, enum wire_type type, const char *payload, int64_t deadline)
{
    unsigned char head[WIRE_HEADER_SIZE];
    size_t n = strlen(payload);
    wire_header_put(head, &(struct wire_header){ .len = (uint32_t)n, .type = (uint8_t)type });
    int r = fd_write_by(fd, head, sizeof(head), deadline);
    return r < 0 ? r : fd_write_by(fd, payload, n, deadline);
}

/* What it says beside that it is well does not matter here. */
static int expect_ok(int fd, int64_t deadline)
{
    unsigned char head[WIRE_HEADER_SIZE];
    struct wire_header h = { 0 };
    int r = fd_read_by(fd, head, sizeof(head), deadline);
    if (r == 0)
        r = wire_header_get(head, &h);
    return r < 0 ? r : h.type == WIRE_OK ? 0 : -EBUSY;
}

bool park_is_deaf(int run_dir)
{
    _cleanup_fd_ int fd = connect_to(run_dir, PING_WAIT_MS);
    return fd == -ECONNREFUSED || fd == -ENOENT;
}

int park_ping(int run_dir)
{
    int64_t deadline = clock_mono_ms() + PING_WAIT_MS;
    _cleanup_fd_ int fd = connect_to(run_dir, PING_WAIT_MS);
    if (fd < 0)
        return fd;
    int r = send_frame(fd, WIRE_PING, "", deadline);
    return r < 0 ? r : expect_ok(fd, deadline);
}

int park_ask(int run_dir, int *ret_line, struct err *err)
{
    int64_t deadline = clock_mono_ms() + LINE_WAIT_MS;
    _cleanup_fd_ int fd = connect_to(run_dir, LINE_WAIT_MS);
    int r = fd < 0 ? fd : send_frame(fd, WIRE_PARK, "", deadline);
    if (r == 0)
        r = expect_ok(fd, deadline);
    if (r == -EBUSY)
        return err_fail(err, FAIL_SANDBOX_BUSY, "the sandbox does not come to rest");
    if (r < 0)
        return err_fail_as(err, -r, FAIL_CANNOT_DUMP, "the sandbox's init does not answer");
    *ret_line = take_fd(fd);
    return 0;
}

static ssize_t receive(int line, void *p, size_t size, int *fds, size_t max, size_t *ret_n,
                       int64_t deadline)
{
    int r = fd_wait_by(line, POLLIN, deadline);
    return r < 0 ? r : fd_recv_msg(line, p, size, fds, max, ret_n);
}

int park_go(int line, const char *name, struct parked *ret_parked, struct err *err)
{
    int64_t deadline = clock_mono_ms() + LINE_WAIT_MS;
    struct park_reply reply;
    size_t n = 0;
    int r = send_frame(line, WIRE_PARK_NOW, name, deadline);
    ssize_t got =
        r < 0 ? r : receive(line, &reply, sizeof(reply), &ret_parked->listener, 1, &n, deadline);
    if (got != (ssize_t)sizeof(reply) || n != 1 || reply.version != PARK_VERSION ||
        reply.peers > PARK_PEERS_MAX)
        return err_set(err, got < 0 ? (int)-got : EPROTO, "the sandbox's init did not park");
    while (ret_parked->n < reply.peers) {
        char byte;
        size_t room = reply.peers - ret_parked->n;
        n = 0;
        if (receive(line, &byte, 1, ret_parked->peers + ret_parked->n,
                    room < PARK_BATCH ? room : PARK_BATCH, &n, deadline) != 1 ||
            n == 0)
            return err_set(err, EPROTO, "the sandbox's init did not park");
        ret_parked->n += n;
    }
    char byte; /* the line is the last thing that it lets go of */
    return fd_read_by(line, &byte, 1, deadline) == -EPIPE
               ? 0
               : err_set(err, EPROTO, "the sandbox's init did not park");
}

/* ---- and back ---- */

static int make_socket(void *arg, struct err *err)
{
    int *fd = arg;
    *fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return *fd < 0 ? err_set(err, errno, "cannot make a socket in the network namespace") : 0;
}

static int dial(pid_t pid, const char *name, int *ret_fd, struct err *err)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    struct timeval limit = { .tv_sec = RETURN_WAIT_MS / 1000 };
    _cleanup_fd_ int pidfd = pidfd_open(pid, 0), fd = -1;
    if (pidfd < 0)
        return err_set(err, errno, "the sandbox's init is gone");
    int r = netns_visit(pidfd, make_socket, &fd, err);
    if (r < 0)
        return r;
    memcpy(sa.sun_path + 1, name, PARK_NAME_SIZE - 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&sa,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + PARK_NAME_SIZE)) < 0)
        return err_set(err, errno, "the sandbox's init is not parked");
    *ret_fd = take_fd(fd);
    return 0;
}

int park_return(pid_t pid, const char *name, const struct parked *p, const struct cgroup_fds *fds,
                struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = dial(pid, name, &fd, err);
    if (r < 0)
        return r;
    const int all[PARK_HAS] = { p->listener,   fds->work_group, fds->oom,
                                fds->procs[0], fds->procs[1],   fds->procs[2] };
    struct park_up up = { .version = PARK_VERSION, .peers = (uint32_t)p->n };
    int give[PARK_HAS];
    size_t n = 0;
    for (size_t i = 0; i < PARK_HAS; i++) {
        up.has[i] = all[i] >= 0;
        if (all[i] >= 0)
            give[n++] = all[i];
    }
    r = fd_send_msg(fd, &up, sizeof(up), give, n);
    for (size_t i = 0; r >= 0 && i < p->n; i += PARK_BATCH)
        r = fd_send_msg(fd, "p", 1, p->peers + i, p->n - i < PARK_BATCH ? p->n - i : PARK_BATCH);
    char byte;
    if (r >= 0)
        r = fd_read_by(fd, &byte, 1, clock_mono_ms() + RETURN_WAIT_MS);
    return r < 0 ? err_set(err, -r, "the sandbox's init did not come back") : 0;
}
