/* What CRIU's log says went wrong, for people. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "kernel/criurpc.h"

#define LOG_MAX (256 * 1024)

static bool is_noise(const char *p, size_t n)
{
    /* Said on every machine that lends less than everything, or after the real complaint. */
    static const char *const noise[] = { "rlimit: Can't setup", "Dumping FAILED",
                                         "Restoring FAILED",    "failed with -1",
                                         "exited, status=",     "killed by signal" };
    for (size_t i = 0; i < ARRAY_LEN(noise); i++)
        if (memmem(p, n, noise[i], strlen(noise[i])))
            return true;
    return false;
}

/* "(00.047802) Error (criu/files.c:1): words" -> words; NULL: not one. */
static const char *words_of(const char *line, size_t n, size_t *ret_n)
{
    const char *at = memmem(line, n, "Error (", 7);
    const char *colon = at ? memmem(at, n - (size_t)(at - line), "): ", 3) : NULL;
    if (!colon)
        return NULL;
    *ret_n = n - (size_t)(colon + 3 - line);
    return colon + 3;
}

int criurpc_complaint(const char *log, size_t n, char *out, size_t size, pid_t *ret_pid)
{
    bool found = false;
    pid_t pid = 0;
    for (const char *p = log, *end = log + n; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((nl ? nl : end) - p), words_n = 0;
        const char *words = words_of(p, len, &words_n), *at;
        if (words && !found && !is_noise(words, words_n)) {
            (void)snprintf(out, size, "%.*s", (int)(words_n < 300 ? words_n : 300), words);
            for (char *t = out; (t = strchr(t, '\t'));)
                *t = ' ';
            found = true;
        }
        at = words && !pid ? memmem(words, words_n, "(pid: ", 6) : NULL;
        if (at) /* "Dump files (pid: 123) failed with -1"; a line ends where the number does */
            (void)sscanf(at, "(pid: %d", &pid);
        p = nl ? nl + 1 : end;
    }
    *ret_pid = pid;
    return found ? 0 : -ENOENT;
}

/* What its words are about, for people. */
static const char *resource_of(const char *words)
{
    static const struct {
        const char *word, *resource;
    } table[] = {
        { "fsnotify", "an inotify or fanotify watch" },
        { "ctty", "its terminal through /dev/tty" },
        { "tty", "a terminal" },
        { "netlink", "a netlink socket" },
        { "packet", "a packet socket" },
        { "unix", "a unix socket" },
        { "inet", "a network socket" },
        { "tcp", "a TCP connection" },
        { "socket", "a socket" },
        { "io_uring", "an io_uring" },
        { "userfaultfd", "a userfaultfd" },
        { "bpf", "a BPF object" },
        { "perf", "a performance counter" },
        { "pidfd", "a pidfd" },
        { "memfd", "a memory file" },
        { "mnt", "a mount" },
        { "mount", "a file of another mount" },
        { "AIO", "asynchronous I/O under way" },
        { "link", "a deleted file" },
        { "ghost", "a deleted file that is too large" },
        { "file", "a file" },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strstr(words, table[i].word))
            return table[i].resource;
    return NULL;
}

/* Its number in the innermost pid namespace. */
static int inner_pid(pid_t pid)
{
    char path[48], status[4096];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (fd_read_file_at(AT_FDCWD, path, status, sizeof(status)) < 0)
        return 0;
    const char *at = strstr(status, "\nNSpid:"), *end = at ? strchr(at + 1, '\n') : NULL;
    while (end && end > at && end[-1] >= '0' && end[-1] <= '9')
        end--;
    return end ? (int)strtol(end, NULL, 10) : 0;
}

int criurpc_explain(const struct criurpc *c, int code, struct err *err)
{
    char words[320], comm[32] = "", path[48];
    pid_t pid = 0;
    _cleanup_free_ char *log = calloc(1, LOG_MAX);
    _cleanup_fd_ int fd = openat(c->work_fd, CRIURPC_LOG, O_RDONLY | O_CLOEXEC);
    ssize_t n = log && fd >= 0 ? read(fd, log, LOG_MAX - 1) : 0;
    code = code ? code : EIO;
    if (n <= 0 || criurpc_complaint(log, (size_t)n, words, sizeof(words), &pid) < 0)
        return err_set(err, code, "CRIU gave up without a word");
    const char *resource = resource_of(words);
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    if (pid <= 0 || fd_read_file_at(AT_FDCWD, path, comm, sizeof(comm)) <= 0)
        return err_set(err, code, "%s", words);
    comm[strcspn(comm, "\n")] = '\0';
    if (!resource)
        return err_set(err, code, "process %d (%s): %s", inner_pid(pid), comm, words);
    return err_set(err, code, "process %d (%s) holds %s, which cannot be kept (%s)", inner_pid(pid),
                   comm, resource, words);
}
