#include "attack/attempt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define USUAL_S 10
#define SLOW_S 30
#define TREE_DEPTH 12
#define COUNT(a_) (sizeof(a_) / sizeof((a_)[0]))

static const struct group *const groups[] = {
    &group_calls,    &group_namespaces, &group_mounts,  &group_proc,
    &group_devices,  &group_init,       &group_sockets, &group_network,
    &group_identity, &group_limits,     &group_disk,    &group_volume,
};

__attribute__((format(printf, 3, 0))) static void say(struct outcome *o, enum verdict verdict,
                                                      const char *fmt, va_list ap)
{
    if (o->verdict == VERDICT_BROKE)
        return;
    o->verdict = verdict;
    (void)vsnprintf(o->why, sizeof(o->why), fmt, ap);
}

/* clang-format off */
#define SAYS(name_, verdict_)                     \
    void name_(struct outcome *o, const char *fmt, ...) \
    {                                             \
        va_list ap;                               \
        va_start(ap, fmt);                        \
        say(o, verdict_, fmt, ap);                \
        va_end(ap);                               \
    }
SAYS(held, VERDICT_HELD)
SAYS(broke, VERDICT_BROKE)
SAYS(not_here, VERDICT_NOT_HERE)
/* clang-format on */

static bool is_refusal(int e)
{
    return e == EPERM || e == EACCES || e == ENOSYS || e == EROFS || e == EAFNOSUPPORT ||
           e == EPROTONOSUPPORT || e == ESOCKTNOSUPPORT || e == EOPNOTSUPP;
}

void refused(struct outcome *o, long r, const char *what)
{
    int e = errno;
    if (r >= 0)
        broke(o, "%s succeeded", what);
    else if (is_refusal(e))
        held(o, "%s: %s", what, strerror(e));
    else
        broke(o, "%s got past the filter: %s", what, strerror(e));
}

void failed(struct outcome *o, long r, const char *what)
{
    if (r >= 0)
        broke(o, "%s succeeded", what);
    else
        held(o, "%s: %s", what, strerror(errno));
}

long slurp(const char *path, char *out, size_t n)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t have = 0;
    ssize_t r = 0;
    while (have < n - 1 && (r = read(fd, out + have, n - 1 - have)) > 0)
        have += (size_t)r;
    int e = errno;
    (void)close(fd);
    out[have] = '\0';
    return r < 0 && have == 0 ? -e : (long)have;
}

void unwritable(struct outcome *o, const char *path)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        held(o, "%s: %s", path, strerror(errno));
        return;
    }
    (void)close(fd);
    broke(o, "%s opens for writing", path);
}

void tells_nothing(struct outcome *o, const char *path)
{
    char text[256];
    long n = slurp(path, text, sizeof(text));
    if (n > 0)
        broke(o, "%s shows %ld bytes or more", path, n);
    else
        held(o, "%s: %s", path, n < 0 ? strerror((int)-n) : "empty");
}

static unsigned walk(struct outcome *o, const char *top, int depth)
{
    char path[4096];
    unsigned tried = 0;
    struct dirent *e;
    DIR *dir = depth > 0 ? opendir(top) : NULL;
    if (!dir)
        return 0;
    while ((e = readdir(dir))) {
        struct stat st;
        if (e->d_name[0] == '.' && (!e->d_name[1] || (e->d_name[1] == '.' && !e->d_name[2])))
            continue;
        if (snprintf(path, sizeof(path), "%s/%s", top, e->d_name) >= (int)sizeof(path) ||
            lstat(path, &st) < 0)
            continue;
        if (S_ISDIR(st.st_mode)) {
            tried += walk(o, path, depth - 1);
        } else if (S_ISREG(st.st_mode)) {
            unwritable(o, path);
            tried++;
        }
    }
    (void)closedir(dir);
    return tried;
}

void tree_unwritable(struct outcome *o, const char *top)
{
    unsigned tried = walk(o, top, TREE_DEPTH);
    if (tried == 0)
        not_here(o, "nothing is shown below %s", top);
    else
        held(o, "none of %u files opens for writing", tried);
}

void run_call(const struct attempt *self, struct outcome *o)
{
    const long *a = self->args;
    refused(o, syscall(self->nr, a[0], a[1], a[2], a[3], a[4], a[5]), self->name);
}

void run_unwritable(const struct attempt *self, struct outcome *o)
{
    unwritable(o, self->path);
}

void run_tree(const struct attempt *self, struct outcome *o)
{
    tree_unwritable(o, self->path);
}

void run_silent(const struct attempt *self, struct outcome *o)
{
    tells_nothing(o, self->path);
}

/* Kill the child's process group, so that what an attempt started does not outlive it. */
static void end_group(pid_t child)
{
    (void)kill(-child, SIGKILL);
    (void)kill(child, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

static void judge_death(const struct attempt *a, int status, bool late, struct outcome *o)
{
    if (o->verdict != VERDICT_NONE && !late)
        return;
    if (late && (a->flags & ATTEMPT_DEATH_HOLDS) && o->verdict != VERDICT_BROKE)
        not_here(o, "was too slow here to come to an end");
    else if (late)
        broke(o, "had no end within its time");
    else if (WIFSIGNALED(status) && (a->flags & ATTEMPT_DEATH_HOLDS))
        held(o, "ended by signal %d", WTERMSIG(status));
    else if (WIFSIGNALED(status))
        broke(o, "the attempt was ended by signal %d", WTERMSIG(status));
    else
        broke(o, "the attempt said nothing");
}

void attempt_run(const struct attempt *a, struct outcome *ret_outcome)
{
    int limit_ms = 1000 * (a->flags & ATTEMPT_SLOW ? SLOW_S : USUAL_S), pipes[2], status = 0;
    struct outcome *o =
        mmap(NULL, sizeof(*o), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(ret_outcome, 0, sizeof(*ret_outcome));
    if (o == MAP_FAILED || pipe2(pipes, O_CLOEXEC) < 0) {
        not_here(ret_outcome, "cannot begin: %s", strerror(errno));
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        (void)setpgid(0, 0);
        (void)close(pipes[0]);
        a->run(a, o);
        _exit(0);
    }
    (void)close(pipes[1]);
    struct pollfd p = { .fd = pipes[0], .events = POLLIN };
    bool late = child > 0 && poll(&p, 1, limit_ms) == 0;
    if (child > 0) {
        if (late)
            (void)kill(child, SIGKILL);
        (void)waitpid(child, &status, 0);
        end_group(child);
    }
    *ret_outcome = *o;
    judge_death(a, status, late, ret_outcome);
    (void)close(pipes[0]);
    (void)munmap(o, sizeof(*o));
}

const struct attempt *attempt_find(const char *name, const char **ret_category)
{
    for (size_t g = 0; g < COUNT(groups); g++)
        for (size_t i = 0; i < groups[g]->n; i++)
            if (strcmp(groups[g]->attempts[i].name, name) == 0) {
                if (ret_category)
                    *ret_category = groups[g]->category;
                return &groups[g]->attempts[i];
            }
    return NULL;
}

const struct hold *hold_find(const char *name)
{
    for (size_t i = 0; i < holds_n; i++)
        if (strcmp(holds[i].name, name) == 0)
            return &holds[i];
    return NULL;
}

int attempt_list(void)
{
    for (size_t g = 0; g < COUNT(groups); g++)
        for (size_t i = 0; i < groups[g]->n; i++) {
            const struct attempt *a = &groups[g]->attempts[i];
            (void)printf("%s\t%s\t%s\t-%s%s%s%s\n", a->name, groups[g]->category, a->title,
                         a->flags & ATTEMPT_DEATH_HOLDS ? "d" : "",
                         a->flags & ATTEMPT_SPOILS ? "s" : "", a->flags & ATTEMPT_VOLUME ? "v" : "",
                         a->flags & ATTEMPT_SLOW ? "l" : "");
        }
    for (size_t i = 0; i < holds_n; i++)
        (void)printf("%s\tshared\t%s\t-h%s\n", holds[i].name, holds[i].title,
                     holds[i].get ? "g" : "");
    return fflush(stdout) == 0 ? 0 : 1;
}
