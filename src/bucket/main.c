/* warren-bucket - shows a bucket of an object store as files, by way of s3fs.
 *
 * Started by the keeper for one mount, as wire/bucket.h says: warren-bucket UID FILES_UID. Two processes:
 * s3fs, in a room of its own (room.h), and this one, which is its way to the bucket (relay.h) and outlives the
 * keeper. Neither has any right; the key is known to them alone. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/oom.h"
#include "bucket/relay.h"
#include "bucket/room.h"

#define BACKLOG 64
#define SAID_SIZE 512 /* the last that s3fs said */

static int read_config(struct bucket_config *c, struct err *err)
{
    if (pread(BUCKET_CONFIG_FD, c, sizeof(*c), 0) != (ssize_t)sizeof(*c) || !bucket_config_valid(c))
        return err_set(err, EINVAL, "not a bucket's configuration");
    return 0;
}

/* A network namespace with a loopback and nothing else; we stay in it. */
static int enter_network(int *ret_listener, struct err *err)
{
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    const struct sockaddr_in sa = { .sin_family = AF_INET,
                                    .sin_port = htons(RELAY_PORT),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (unshare(CLONE_NEWNET) < 0)
        return err_set(err, errno, "cannot make a network namespace");
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0 ||
        bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, BACKLOG) < 0)
        return err_set(err, errno, "cannot listen for s3fs");
    *ret_listener = take_fd(fd);
    return 0;
}

static _Noreturn void become_s3fs(const struct bucket_config *c, uid_t uid, uid_t files_uid,
                                  int said, int parent)
{
    struct err err = ERR_INIT;
    _cleanup_fd_ int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int keep[] = { BUCKET_FUSE_FD, parent, BUCKET_SPOOL_FD };
    (void)setsid();
    (void)umask(0);
    if (dup2(nothing, 0) < 0 || dup2(said, 1) < 0 || dup2(said, 2) < 0 ||
        fd_keep_only(keep, ARRAY_LEN(keep)) < 0 || fcntl(ROOM_FUSE_FD, F_SETFD, 0) < 0)
        _exit(1);
    (void)room_run(c, uid, files_uid, &err);
    (void)dprintf(2, "%s: %s\n", err.msg, strerror(err.code));
    _exit(1);
}

/* What s3fs says, line by line: "TIME [CRT] FILE:FUNCTION(LINE): what is wrong". */
struct hearing {
    char line[SAID_SIZE];
    size_t n;
};

/* Keeps the last line that is not for information, from where it says what is wrong. */
static void hear_line(const char *line, char said[SAID_SIZE])
{
    const char *text = strstr(line, "): ");
    if (*line && !strstr(line, "[INF]"))
        (void)snprintf(said, SAID_SIZE, "%s", text ? text + 3 : line);
}

static void listen_to(int fd, struct hearing *h, char said[SAID_SIZE])
{
    char block[SAID_SIZE];
    ssize_t n = read(fd, block, sizeof(block));
    for (ssize_t i = 0; i < n; i++) {
        if (block[i] == '\n') {
            h->line[h->n] = '\0';
            hear_line(h->line, said);
            h->n = 0;
        } else if (h->n < sizeof(h->line) - 1) {
            h->line[h->n++] = block[i] < ' ' || block[i] > '~' ? ' ' : block[i];
        }
    }
}

/* Until s3fs ends. */
static int attend(int pidfd, int output, char said[SAID_SIZE])
{
    struct pollfd ends[] = { { pidfd, POLLIN, 0 }, { output, POLLIN, 0 } };
    struct hearing h = { .n = 0 };
    siginfo_t si = { 0 };
    for (;;) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (ends[1].revents & POLLIN)
            listen_to(output, &h, said);
        else if (ends[1].revents)
            ends[1].fd = -1;
        if (ends[0].revents && !(ends[1].revents & POLLIN))
            break;
    }
    (void)waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED);
    return si.si_status;
}

static void report(int code, const char *msg, const char *said)
{
    struct bucket_report rep = { .code = code };
    (void)snprintf(rep.msg, sizeof(rep.msg), "%.100s%s%.140s", msg, *said ? ": " : "", said);
    (void)fd_write_full(BUCKET_REPORT_FD, &rep, sizeof(rep));
}

static int run(uid_t uid, uid_t files_uid, char said[SAID_SIZE], struct err *err)
{
    static struct bucket_config config; /* the relay's threads read it */
    _cleanup_fd_ int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), listener = -1;
    int output[2];
    int r = home < 0 ? err_set(err, errno, "cannot open the network namespace")
                     : read_config(&config, err);
    if (r == 0)
        r = enter_network(&listener, err);
    if (r < 0)
        return r;
    if (pipe2(output, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    /* Of the same user as we, so that it dies when we do: but it sees nobody. */
    _cleanup_fd_ int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    pid_t pid = self < 0 ? -1 : (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWPID, 0, 0, 0, 0);
    if (pid == 0)
        become_s3fs(&config, uid, files_uid, output[1], self);
    int pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    (void)close(output[1]);
    (void)close(BUCKET_FUSE_FD); /* with s3fs the last is gone, and the mount says so */
    (void)close(BUCKET_CONFIG_FD);
    (void)close(BUCKET_SPOOL_FD);
    explicit_bzero(config.secret, sizeof(config.secret));
    if (pidfd < 0)
        return err_set(err, errno, "cannot start a process");
    if (setns(home, CLONE_NEWNET) < 0)
        return err_set(err, errno, "cannot come back from a network namespace");
    r = room_drop(uid, err);
    if (r == 0 && (r = relay_start(listener, &config)) < 0)
        r = err_set(err, -r, "cannot start a thread");
    if (r < 0)
        return r;
    listener = -1; /* the relay's from here on */
    return attend(pidfd, output[0], said);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    char said[SAID_SIZE] = "";
    struct err err = ERR_INIT;
    uint32_t uid = 0, files_uid = 0;
    if (strcmp(slash ? slash + 1 : argv[0], "fusermount") == 0)
        return room_hand_over();
    if (argc != 3 || number_u32(argv[1], UINT32_MAX, &uid) < 0 ||
        number_u32(argv[2], UINT32_MAX, &files_uid) < 0 || uid == 0)
        return 2;
    (void)oom_set(0, OOM_JOB);
    (void)signal(SIGPIPE, SIG_IGN);
    int r = run(uid, files_uid, said, &err);
    if (r < 0)
        report(-r, err.msg, "");
    else
        report(EIO, "s3fs has ended", said);
    return 1;
}
