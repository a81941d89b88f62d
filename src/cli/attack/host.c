/* host - what a sandbox sees of the machine, compared with what this host sees; and how the
 * daemon's own processes are confined. Both need the daemon to be on this machine. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/attack/attack.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define FILE_MAX (256 << 10)

static char *read_here(const char *path)
{
    struct buf b = BUF_INIT(FILE_MAX);
    char block[4096];
    ssize_t n;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, block, sizeof(block))) > 0)
        if (buf_append(&b, block, (size_t)n) < 0)
            break;
    char *text = buf_steal(&b);
    return text ? text : xstrdup("");
}

static char *read_inside(struct attack *a, const char *box, const char *path)
{
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *shell = xasprintf("cat %s 2>/dev/null", path);
    (void)talk_box(a->red.client, "POST", box, "/exec", json_pack("{s:s}", "shell", shell),
                   &answer);
    return xstrdup(member_text(answer, "stdout"));
}

/* The n-th number behind a word; NAN: there is none. */
static double number_at(const char *text, const char *word, int n)
{
    const char *at = word ? strstr(text, word) : text;
    for (at = at ? at + (word ? strlen(word) : 0) : NULL; at && *at; n--) {
        at += strcspn(at, "0123456789");
        char *end;
        double v = strtod(at, &end);
        if (end == at)
            break;
        if (n == 0)
            return v;
        at = end;
    }
    return NAN;
}

static bool on_this_machine(struct attack *a, struct trial *t)
{
    if (a->secret_path && (!a->url || strstr(a->url, "127.0.0.1") || strstr(a->url, "localhost")))
        return true;
    trial_not_here(t, "the daemon is on another machine");
    return false;
}

/* text: the file; more: the word; number: which number behind it. Within 2 % of the host's
 * number the wall broke. */
static void run_same(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    const char *box = on_this_machine(a, t) ? stage_box(a, t) : NULL;
    if (!box)
        return;
    _cleanup_free_ char *inside = read_inside(a, box, self->text);
    _cleanup_free_ char *here = read_here(self->text);
    double x = number_at(inside, self->more, (int)self->number);
    double y = number_at(here, self->more, (int)self->number);
    if (isnan(x) || isnan(y))
        trial_held(t, "%s does not tell", self->text);
    else if (y > 20 && fabs(x - y) <= y * 0.02)
        trial_broke(t, "%s shows the host's: %g, and here %g", self->text, x, y);
    else
        trial_held(t, "%g inside, %g here", x, y);
}

/* The file must not have the host's text. */
static void run_text(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    const char *box = on_this_machine(a, t) ? stage_box(a, t) : NULL;
    if (!box)
        return;
    _cleanup_free_ char *inside = read_inside(a, box, self->text);
    _cleanup_free_ char *here = read_here(self->text);
    if (*here && strcmp(inside, here) == 0)
        trial_broke(t, "%s shows the host's: %.80s", self->text, here);
    else
        trial_held(t, *inside ? "something else" : "nothing");
}

/* The command must print nothing. */
static void run_nothing(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_json_ json_t *answer = NULL;
    const char *box = stage_box(a, t);
    if (!box)
        return;
    (void)talk_box(a->red.client, "POST", box, "/exec", json_pack("{s:s}", "shell", self->text),
                   &answer);
    const char *said = member_text(answer, "stdout");
    if (*said)
        trial_broke(t, "%.100s", said);
    else
        trial_held(t, "nothing");
}

/* Whether a tenant who makes sandboxes can tell from their host ids how many others made. By chance four in a row
 * have the same distance once in millions of runs. */
static void run_ids(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    double base[4] = { 0 };
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(base); i++) {
        _cleanup_free_ char *box = NULL;
        if (stage_make(a, &a->red, NULL, &box, &err) < 0) {
            trial_error(t, "no sandbox to look into: %s", err.msg);
            return;
        }
        _cleanup_free_ char *map = read_inside(a, box, "/proc/self/uid_map");
        base[i] = number_at(map, NULL, 1);
        (void)stage_delete(a, &a->red, &box, t);
    }
    bool in_order = true;
    for (size_t i = 2; i < ARRAY_LEN(base); i++)
        in_order = in_order && base[i] - base[i - 1] == base[1] - base[0];
    if (in_order)
        trial_broke(t, "they count the sandboxes of the host: %.0f, %.0f, %.0f", base[0], base[1],
                    base[2]);
    else
        trial_held(t, "in no order: %.0f, %.0f, %.0f", base[0], base[1], base[2]);
}

/* ---- the daemon's own processes ---- */

/* The process at the other end of the admin socket, or -1. */
static pid_t daemon_pid(struct attack *a)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct ucred peer = { .pid = -1 };
    socklen_t n = sizeof(peer);
    const char *where = client_where(a->admin), *run = getenv("WARREN_RUN");
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*where == '/')
        (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", where);
    else
        (void)snprintf(at.sun_path, sizeof(at.sun_path), "%.90s/warren.sock",
                       run ? run : "/run/warren");
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return -1;
    return peer.pid;
}

static char *proc_file(pid_t pid, const char *name)
{
    _cleanup_free_ char *path = xasprintf("/proc/%d/%s", (int)pid, name);
    return read_here(path);
}

/* The first process below `top`, at any depth, that has this name; -1: none. */
static pid_t below(pid_t top, const char *name, int depth)
{
    DIR *dir = depth > 0 ? opendir("/proc") : NULL;
    struct dirent *e;
    pid_t found = -1;
    while (dir && found < 0 && (e = readdir(dir))) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        _cleanup_free_ char *status = proc_file(pid, "status");
        if ((pid_t)number_at(status, "\nPPid:", 0) != top)
            continue;
        _cleanup_free_ char *comm = proc_file(pid, "comm");
        found = strncmp(comm, name, strlen(name)) == 0 ? pid : below(pid, name, depth - 1);
    }
    if (dir)
        (void)closedir(dir);
    return found;
}

/* name: which of its processes, NULL: the daemon itself. */
static pid_t process_of(struct attack *a, const char *name, struct trial *t)
{
    pid_t top = on_this_machine(a, t) ? daemon_pid(a) : -1;
    if (top >= 0 && name)
        top = below(top, name, 3);
    if (top < 0 && !t->said)
        trial_not_here(t, "the process is not found: run as root, on the admin socket");
    return top;
}

static bool may_lower_oom_score(void)
{
    _cleanup_free_ char *text = proc_file(getpid(), "status");
    const char *set = strstr(text, "\nCapEff:");
    return set && (strtoull(set + strlen("\nCapEff:"), NULL, 16) >> CAP_SYS_RESOURCE & 1);
}

static void run_oom(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    pid_t pid = process_of(a, self->more, t);
    if (pid < 0)
        return;
    _cleanup_free_ char *text = proc_file(pid, "oom_score_adj");
    long v = strtol(text, NULL, 10);
    if (v < 0)
        trial_held(t, "oom_score_adj is %ld", v);
    else if (geteuid() == 0 && !may_lower_oom_score())
        trial_not_here(t, "root lacks CAP_SYS_RESOURCE on this machine, so nobody can lower it");
    else
        trial_broke(t, "oom_score_adj is %ld: the kernel may kill it before a sandbox", v);
}

static void run_seccomp(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    pid_t pid = process_of(a, self->more, t);
    if (pid < 0)
        return;
    _cleanup_free_ char *text = proc_file(pid, "status");
    double mode = number_at(text, "\nSeccomp:", 0);
    if (mode == 2)
        trial_held(t, "it has a filter");
    else
        trial_broke(t, "it has no system call filter");
}

static void run_caps(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    pid_t pid = process_of(a, self->more, t);
    if (pid < 0)
        return;
    _cleanup_free_ char *text = proc_file(pid, "status");
    _cleanup_free_ char *mine = read_here("/proc/self/status");
    const char *at = strstr(text, "\nCapPrm:"), *all = strstr(mine, "\nCapBnd:");
    unsigned long long has = at ? strtoull(at + 8, NULL, 16) : ~0ULL;
    unsigned long long most = all ? strtoull(all + 8, NULL, 16) : 0;
    if (has == most)
        trial_broke(t, "it has every capability: %llx", has);
    else
        trial_held(t, "%llx of %llx", has, most);
}

#define SAME(name_, title_, path_, word_, n_)                                        \
    {                                                                                \
        .name = "host-" name_, .category = "host", .title = title_, .run = run_same, \
        .text = path_, .more = word_, .number = n_                                   \
    }
#define NOTHING(name_, title_, shell_)                                                  \
    {                                                                                   \
        .name = "host-" name_, .category = "host", .title = title_, .run = run_nothing, \
        .text = shell_                                                                  \
    }
#define DAEMON(kind_, name_, title_, run_, process_)                               \
    {                                                                              \
        .name = kind_ "-" name_, .category = "host", .title = title_, .run = run_, \
        .more = process_                                                           \
    }

/* clang-format off */
static const struct attempt_row rows[] = {
    { .name = "host-cmdline", .category = "host", .title = "how the host was booted", .run = run_text, .text = "/proc/cmdline" },
    { .name = "host-loadavg", .category = "host", .title = "how busy the host is", .run = run_same, .text = "/proc/loadavg", .more = "/", .number = 0 },
    { .name = "host-swaps", .category = "host", .title = "where the host swaps", .run = run_nothing, .text = "tail -n +2 /proc/swaps" },
    SAME("stat", "the host's processor time", "/proc/stat", "cpu ", 3), SAME("uptime", "how long the host runs", "/proc/uptime", NULL, 0),
    SAME("vmstat", "the host's memory events", "/proc/vmstat", "pgfault ", 0), SAME("files", "how many files the host has open", "/proc/sys/fs/file-nr", NULL, 0),
    SAME("sockets", "how many sockets the host has", "/proc/net/sockstat", "used ", 0), SAME("interrupts", "the host's interrupts", "/proc/interrupts", "LOC:", 0),
    SAME("softirqs", "the host's soft interrupts", "/proc/softirqs", "TIMER:", 0), SAME("memory", "the host's memory", "/proc/meminfo", "MemTotal:", 0),
    SAME("inodes", "how many inodes the host has", "/proc/sys/fs/inode-nr", NULL, 0),
    NOTHING("diskstats", "the host's disks", "head -c 200 /proc/diskstats 2>/dev/null"), NOTHING("partitions", "the host's partitions", "tail -n +3 /proc/partitions 2>/dev/null"),
    NOTHING("loop-files", "the files behind loop devices", "cat /sys/block/loop*/loop/backing_file 2>/dev/null"),
    NOTHING("block-devices", "the host's block devices", "ls /sys/block /sys/class/block 2>/dev/null | grep -E '^(sd|vd|nvme|loop|dm-)' | head -3"),
    NOTHING("proc-fs", "the host's file systems", "ls /proc/fs/ext4 /proc/fs/jbd2 /proc/fs/xfs /sys/fs/ext4 /sys/fs/btrfs 2>/dev/null | grep -v : | head -3"),
    { .name = "host-ids", .category = "host", .title = "count sandboxes by their host ids", .run = run_ids },
    NOTHING("mount-paths", "the host's paths in the mount table", "grep -oE 'lowerdir=/[a-oq-z][^,]*|/var/lib/warren[^ ]*|upperdir=[^,]*/pool[^,]*' /proc/self/mountinfo | head -2"),
    NOTHING("dmesg", "the kernel's log", "dmesg 2>/dev/null | head -2"), NOTHING("dmi", "the machine's maker", "cat /sys/class/dmi/id/product_name /sys/class/dmi/id/product_uuid 2>/dev/null"),
    DAEMON("oom-score", "daemon", "have the kernel end warrend", run_oom, NULL), DAEMON("oom-score", "keeper", "have the kernel end the keeper", run_oom, "warren-keeper"),
    DAEMON("oom-score", "broker", "have the kernel end the broker", run_oom, "warren-broker"),
    DAEMON("filter", "daemon", "warrend's system calls", run_seccomp, NULL), DAEMON("filter", "keeper", "the keeper's system calls", run_seccomp, "warren-keeper"),
    DAEMON("filter", "broker", "the broker's system calls", run_seccomp, "warren-broker"),
    DAEMON("caps", "keeper", "the keeper's capabilities", run_caps, "warren-keeper"), DAEMON("caps", "broker", "the broker's capabilities", run_caps, "warren-broker"),
};
/* clang-format on */

const struct attempt_table attack_host = { rows, ARRAY_LEN(rows) };
