#include "init/park.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "init/family.h"
#include "init/file/worker.h"
#include "init/launch.h"
#include "init/peer.h"
#include "init/poller.h"
#include "init/proc.h"
#include "init/sweep.h"
#include "init/ward.h"
#include "wire/park.h"

#define WORKERS_MS 300 /* what a file operation gets to end by itself; a watch never does */
#define LOOK_MS 5
#define UP_WAIT_S 10 /* for the rest of what the keeper has begun to say */

static struct {
    struct peer *line; /* who asked; NULL: nobody */
    void (*done)(struct peer *line);
    bool ready, now;
    int64_t kill_at; /* monotonic */
    char name[PARK_NAME_SIZE];
} park;

bool park_is_on(void)
{
    return park.line != NULL;
}

/* ---- the first step ---- */

int park_begin(struct peer *line, void (*done)(struct peer *line))
{
    if (park.line || sweep_is_on())
        return -EBUSY;
    park.line = line;
    park.done = done;
    park.ready = park.now = false;
    park.kill_at = clock_mono_ms() + WORKERS_MS;
    poller_wake_at(clock_mono_ms());
    peers_accept(false);
    return 0;
}

void park_cancel(struct peer *line)
{
    if (park.line != line || park.now)
        return;
    park.line = NULL;
    peers_accept(true);
    peers_wake();
}

void park_tick(int64_t now)
{
    if (!park.line || park.ready)
        return;
    if (workers_count() == 0 && procs_starting() == 0) {
        park.ready = true;
        park.done(park.line);
        return;
    }
    if (now >= park.kill_at)
        workers_signal_all(SIGKILL);
    poller_wake_at(now + LOOK_MS);
}

/* ---- the second ---- */

int park_now(struct peer *line, const char *name)
{
    size_t n = strspn(name, "0123456789abcdef");
    if (park.line != line || !park.ready || n != PARK_NAME_SIZE - 1 || name[n] != '\0')
        return -EPROTO;
    memcpy(park.name, name, sizeof(park.name));
    park.now = true;
    return 0;
}

static int listen_inside(void)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    memcpy(sa.sun_path + 1, park.name, PARK_NAME_SIZE - 1);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + PARK_NAME_SIZE);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, 4) < 0)
        return -errno;
    return take_fd(fd);
}

static int hand_out(int line_fd, int listener, const int *fds, size_t n)
{
    const struct park_reply reply = { PARK_VERSION, (uint32_t)n };
    int r = fd_send_msg(line_fd, &reply, sizeof(reply), &listener, 1);
    for (size_t i = 0; r >= 0 && i < n; i += PARK_BATCH)
        r = fd_send_msg(line_fd, "p", 1, fds + i, n - i < PARK_BATCH ? n - i : PARK_BATCH);
    return r;
}

/* Groups' descriptors are of the host's filesystem. */
static void let_go(void)
{
    procs_each_family(family_park);
    worker_family(family_park);
    family_let_go();
    launch_let_go();
    procs_setup(-1);
}

struct up {
    struct park_up head;
    int fds[PARK_HAS];
    int peers[PEERS_MAX];
};

static int hear(int fd, struct up *up)
{
    size_t n = 0, at = 0;
    int got[PARK_HAS];
    if (fd_recv_msg(fd, &up->head, sizeof(up->head), got, PARK_HAS, &n) !=
            (ssize_t)sizeof(up->head) ||
        up->head.version != PARK_VERSION || up->head.peers > PEERS_MAX)
        return -EPROTO;
    for (size_t i = 0; i < PARK_HAS; i++)
        up->fds[i] = up->head.has[i] && at < n ? got[at++] : -1;
    for (size_t have = 0; have < up->head.peers; have += n) {
        char byte;
        n = 0;
        if (fd_recv_msg(fd, &byte, 1, up->peers + have, up->head.peers - have, &n) <= 0 || n == 0)
            return -EPROTO;
    }
    return up->fds[PARK_LISTENER] < 0 ? -EPROTO : 0;
}

/* Only who is outside our pid namespace has no pid in it. */
static bool is_from_outside(int fd)
{
    struct ucred who;
    socklen_t len = sizeof(who);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.pid == 0;
}

static int await_up(int listener, struct up *up)
{
    for (;;) {
        _cleanup_fd_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        struct timeval limit = { .tv_sec = UP_WAIT_S };
        if (fd < 0)
            (void)poll(NULL, 0, LOOK_MS); /* out of descriptors or memory: try again soon */
        if (fd < 0 || !is_from_outside(fd))
            continue;
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        if (hear(fd, up) == 0)
            return take_fd(fd);
    }
}

static void take_back(const struct up *up)
{
    family_setup(up->fds[PARK_GROUP]);
    launch_take_back(up->fds + PARK_V1, PARK_PROCS);
    procs_setup(up->fds[PARK_OOM]);
    procs_each_family(family_unpark);
    worker_family(family_unpark);
    if (up->head.peers == 0)
        procs_forget_ooms();
}

static void stand_by(int inside)
{
    static struct up up; /* a kilobyte */
    int line_fd = park.line->watch.fd, listener, fds[PEERS_MAX];
    (void)ward_begin();
    size_t n = peers_hand_out(park.line, fds, &listener);
    (void)hand_out(line_fd, listener, fds, n);
    (void)close(listener);
    fd_close_all(fds, n);
    let_go();
    (void)close(line_fd);
    park.line->watch.fd = -1;

    int fd = await_up(inside, &up);
    (void)prctl(PR_SET_DUMPABLE, 0);
    take_back(&up);
    ward_end();
    peers_take_back(park.line, up.fds[PARK_LISTENER], up.peers, up.head.peers);
    (void)!write(fd, "k", 1);
    (void)close(fd);
}

void park_settle(void)
{
    if (!park.now)
        return;
    _cleanup_fd_ int inside = listen_inside();
    /* Who looks at us from within our user namespace, as CRIU does, needs this. The workload is
     * frozen until we have taken it back. */
    if (inside >= 0 && prctl(PR_SET_DUMPABLE, 1) == 0)
        stand_by(inside);
    struct peer *line = take_ptr(park.line);
    park.now = false;
    peer_close(line); /* not parked: it sees the end of its connection */
    peers_accept(true);
    peers_wake();
}
