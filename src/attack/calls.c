/* System calls that a sandbox has no business with. Each has arguments that would be fine without
 * the filter, or that fail late: an answer such as EINVAL means that the kernel's own code ran. */
#include "attack/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM 512
#define NR_PAST_ALL 700             /* higher than any kernel's newest call */
#define PERSONALITY_FIXED 0x0040000 /* ADDR_NO_RANDOMIZE */

static char room[ROOM]; /* memory for a call to read or write */
#define ROOM_AT ((long)(void *)room)
#define TEXT_AT(text_) ((long)(void *)(text_))

static void run_new_call(const struct attempt *self, struct outcome *o)
{
    for (long nr = NR_PAST_ALL; nr < NR_PAST_ALL + 8; nr++)
        if (syscall(nr, 0, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS)
            broke(o, "call %ld: %s, where ENOSYS lets programs go on without it", nr,
                  strerror(errno));
    held(o, "a call that no kernel has: %s", strerror(ENOSYS));
}

/* The filter must refuse the other ways into the kernel: 32-bit calls and x32's. */
static void run_x32(const struct attempt *self, struct outcome *o)
{
    refused(o, syscall(0x40000000 | SYS_getpid), "getpid by x32's number");
}

static void run_int80(const struct attempt *self, struct outcome *o)
{
#ifdef __x86_64__
    long r = 21; /* mount */
    pid_t child = fork();
    if (child == 0) {
        __asm__ volatile("int $0x80" : "+a"(r) : "b"(0), "c"(0), "d"(0), "S"(0), "D"(0) : "memory");
        _exit(r == -EPERM || r == -ENOSYS || r == -EACCES ? 0 : 1);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
        broke(o, "mount by a 32-bit call got past the filter");
    held(o, "a 32-bit mount is refused, or there are no 32-bit calls");
#else
    not_here(o, "another processor");
#endif
}

static void run_suspend_seccomp(const struct attempt *self, struct outcome *o)
{
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    long r = syscall(SYS_ptrace, PTRACE_SEIZE, child, 0, PTRACE_O_SUSPEND_SECCOMP);
    int e = errno;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    errno = e;
    failed(o, r, "ptrace with the filter suspended");
}

static void run_set_mm(const struct attempt *self, struct outcome *o)
{
    failed(o, prctl(PR_SET_MM, PR_SET_MM_START_BRK, 0x1000, 0, 0), "prctl(PR_SET_MM)");
}

/* A second filter must not lift the first. */
static void run_own_filter(const struct attempt *self, struct outcome *o)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog prog = { .len = 1, .filter = &allow };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0) {
        held(o, "another filter: %s", strerror(errno));
        return;
    }
    refused(o, syscall(SYS_swapoff, "/none"), "swapoff below a filter of one's own");
}

/* TIOCSTI types into a terminal as its user would. */
static void run_tiocsti(const struct attempt *self, struct outcome *o)
{
    int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        not_here(o, "no terminal: %s", strerror(errno));
        return;
    }
    failed(o, syscall(SYS_ioctl, fd, 0x5412UL, "x"), "TIOCSTI");
    /* The kernel looks at 32 bits of a request; a filter that looks at 64 can be fooled. */
    failed(o, syscall(SYS_ioctl, fd, 0x100005412UL, "x"), "TIOCSTI with a high bit");
    (void)close(fd);
}

#define CALL(name_, title_, ...)                                             \
    {                                                                        \
        .name = "call-" name_, .title = title_, .run = run_call, __VA_ARGS__ \
    }

/* clang-format off */
static const struct attempt calls[] = {
    CALL("bpf", "load a BPF program", .nr = SYS_bpf, .args = { 5, ROOM_AT, 128 }),
    CALL("perf", "watch the processor's counters", .nr = SYS_perf_event_open, .args = { ROOM_AT, 0, -1, -1, 0 }),
    CALL("userfaultfd", "answer page faults", .nr = SYS_userfaultfd),
    CALL("io-uring", "set up a ring that seccomp does not see", .nr = SYS_io_uring_setup, .args = { 8, ROOM_AT }),
    CALL("io-uring-enter", "enter a ring", .nr = SYS_io_uring_enter, .args = { 0, 1, 1, 0 }),
    CALL("io-uring-register", "register with a ring", .nr = SYS_io_uring_register, .args = { 0, 0, ROOM_AT, 1 }),
    CALL("keyctl", "name the session's keyring", .nr = SYS_keyctl, .args = { 0, -3, 0 }),
    CALL("add-key", "add a key", .nr = SYS_add_key, .args = { TEXT_AT("user"), TEXT_AT("x"), TEXT_AT("y"), 1, -3 }),
    CALL("request-key", "ask for a key", .nr = SYS_request_key, .args = { TEXT_AT("user"), TEXT_AT("x"), 0, -3 }),
    CALL("init-module", "load a kernel module", .nr = SYS_init_module, .args = { ROOM_AT, 1, TEXT_AT("") }),
    CALL("finit-module", "load a kernel module from a file", .nr = SYS_finit_module, .args = { 0, TEXT_AT(""), 0 }),
    CALL("delete-module", "unload a kernel module", .nr = SYS_delete_module, .args = { TEXT_AT("none"), 0 }),
    CALL("kexec", "load another kernel", .nr = SYS_kexec_load),
#ifdef SYS_kexec_file_load
    CALL("kexec-file", "load another kernel from a file", .nr = SYS_kexec_file_load, .args = { 0, 0, 0, TEXT_AT(""), 0 }),
#endif
    CALL("reboot", "turn control-alt-delete off", .nr = SYS_reboot, .args = { 0xfee1dead, 672274793, 0 }),
    CALL("swapon", "add swap", .nr = SYS_swapon, .args = { TEXT_AT("/none"), 0 }),
    CALL("swapoff", "take swap away", .nr = SYS_swapoff, .args = { TEXT_AT("/none") }),
    CALL("syslog", "read the kernel's log", .nr = SYS_syslog, .args = { 3, ROOM_AT, 64 }),
    CALL("settimeofday", "set the clock", .nr = SYS_settimeofday, .args = { ROOM_AT, 0 }),
    CALL("clock-settime", "set the clock, another way", .nr = SYS_clock_settime, .args = { 0, ROOM_AT }),
    CALL("adjtimex", "bend the clock", .nr = SYS_adjtimex, .args = { ROOM_AT }),
    CALL("clock-adjtime", "bend the clock, another way", .nr = SYS_clock_adjtime, .args = { 0, ROOM_AT }),
#ifdef SYS_iopl
    CALL("iopl", "reach the ports of devices", .nr = SYS_iopl, .args = { 3 }),
    CALL("ioperm", "reach one port", .nr = SYS_ioperm, .args = { 0, 1, 1 }),
    CALL("modify-ldt", "change the processor's segments", .nr = SYS_modify_ldt, .args = { 1, ROOM_AT, 16 }),
#endif
    CALL("quotactl", "ask for disk quotas", .nr = SYS_quotactl, .args = { 0x80000700, TEXT_AT("/"), 0, 0 }),
    CALL("acct", "write accounts of all processes", .nr = SYS_acct, .args = { TEXT_AT("/tmp/none") }),
    CALL("open-by-handle", "open a file by its number", .nr = SYS_open_by_handle_at, .args = { AT_FDCWD, ROOM_AT, 0 }),
    CALL("vhangup", "hang the terminal up", .nr = SYS_vhangup),
    CALL("personality", "turn address randomisation off", .nr = SYS_personality, .args = { PERSONALITY_FIXED }),
    CALL("fanotify", "watch all of a file system", .nr = SYS_fanotify_init, .args = { 0, 0 }),
    CALL("process-vm-write", "write another process's memory", .nr = SYS_process_vm_writev, .args = { 1, 0, 0, 0, 0, 0 }),
    CALL("move-pages", "move init's pages", .nr = SYS_move_pages, .args = { 1, 0, 0, 0, 0, 0 }),
    CALL("migrate-pages", "move init to another node", .nr = SYS_migrate_pages, .args = { 1, 0, 0, 0 }),
    CALL("kcmp", "compare the kernel's pointers with init's", .nr = SYS_kcmp, .args = { 1, 1, 0, 0, 0 }),
    CALL("nfsservctl", "speak to the NFS server", .nr = 180, .args = { 0, 0, 0 }),
    { .name = "call-unknown", .title = "a system call newer than the filter", .run = run_new_call },
    { .name = "call-x32", .title = "calls by x32's numbers", .run = run_x32 },
    { .name = "call-32-bit", .title = "calls by the 32-bit door", .run = run_int80 },
    { .name = "suspend-seccomp", .title = "ptrace a child without the filter", .run = run_suspend_seccomp },
    { .name = "set-mm", .title = "rewrite the map of one's memory", .run = run_set_mm },
    { .name = "own-filter", .title = "a second filter that allows everything", .run = run_own_filter },
    { .name = "tty-input", .title = "type into a terminal for its owner", .run = run_tiocsti },
};
/* clang-format on */

const struct group group_calls = { "calls", calls, sizeof(calls) / sizeof(calls[0]) };
