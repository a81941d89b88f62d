#include "sdk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/fd.h"

#define SDK_WAIT_MS 300000 /* a hundred at once on two cores: slow is not broken */
#define SDK_LINE_MAX (1024u * 1024)
#define SDK_READ_SIZE (64u * 1024)

struct sdk {
    pid_t pid;
    int in, out; /* ours: answers come in, questions go out */
    struct buf line;
};

int sdk_new(char *const argv[], int log_fd, struct sdk **ret_sdk, struct err *err)
{
    _cleanup_(sdk_freep) struct sdk *s = calloc(1, sizeof(*s));
    _cleanup_fd_ int theirs_out = -1, theirs_in = -1;
    int pipes[2];

    if (!s)
        return err_set(err, ENOMEM, "cannot allocate the client");
    *s = (struct sdk){ 0, -1, -1, BUF_INIT(SDK_LINE_MAX) };
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    s->in = pipes[0];
    theirs_out = pipes[1];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    theirs_in = pipes[0];
    s->out = pipes[1];
    s->pid = fork();
    if (s->pid < 0)
        return err_set(err, errno, "cannot fork");
    if (s->pid == 0) {
        if (dup2(theirs_in, STDIN_FILENO) >= 0 && dup2(theirs_out, STDOUT_FILENO) >= 0 &&
            dup2(log_fd, STDERR_FILENO) >= 0)
            (void)execvp(argv[0], argv);
        _exit(127);
    }
    *ret_sdk = take_ptr(s);
    return 0;
}

void sdk_free(struct sdk *s)
{
    if (!s)
        return;
    if (s->out >= 0)
        (void)close(s->out); /* it ends at the end of its input */
    if (s->in >= 0)
        (void)close(s->in);
    if (s->pid > 0) {
        (void)kill(s->pid, SIGTERM);
        (void)waitpid(s->pid, NULL, 0);
    }
    buf_done(&s->line);
    free(s);
}

static int read_line(struct sdk *s)
{
    buf_clear(&s->line);
    do {
        int r = fd_wait(s->in, POLLIN, SDK_WAIT_MS);
        ssize_t n;

        if (r <= 0)
            return r < 0 ? r : -ETIMEDOUT;
        r = buf_reserve(&s->line, SDK_READ_SIZE + 1);
        if (r < 0)
            return r;
        n = read(s->in, s->line.data + s->line.len, SDK_READ_SIZE);
        if (n <= 0)
            return n < 0 ? -errno : -EPIPE;
        s->line.len += (size_t)n;
        s->line.data[s->line.len] = '\0';
    } while (s->line.data[s->line.len - 1] != '\n');
    s->line.data[s->line.len - 1] = '\0';
    return 0;
}

static int ask(struct sdk *s, const char *question, struct err *err)
{
    int r = fd_write_full(s->out, question, strlen(question));

    if (r >= 0)
        r = read_line(s);
    if (r < 0)
        return err_set(err, -r, "E2B's client under node gave no answer");
    if (strncmp(s->line.data, "error ", 6) == 0)
        return err_set(err, EPROTO, "E2B's client: %.300s", s->line.data + 6);
    return 0;
}

int sdk_once(struct sdk *s, const char *what, double *ret_us, struct err *err)
{
    char question[32];
    int r;

    (void)snprintf(question, sizeof(question), "%s\n", what);
    r = ask(s, question, err);
    if (r >= 0)
        *ret_us = strtod(s->line.data, NULL);
    return r;
}

/* The answer: how many failed, the times, and after a tab the first failure's words. */
void sdk_burst(struct sdk *s, struct e2b_burst *burst)
{
    struct err err = ERR_INIT;
    char question[64], *p, *why;

    (void)snprintf(question, sizeof(question), "burst %u %u\n", burst->clients, burst->lives);
    if (ask(s, question, &err) < 0) {
        burst->failures = burst->clients * burst->lives;
        (void)snprintf(burst->first_failure, sizeof(burst->first_failure), "%s", err.msg);
        return;
    }
    why = strchr(s->line.data, '\t');
    if (why)
        *why++ = '\0';
    burst->failures = (unsigned)strtoul(s->line.data, &p, 10);
    (void)snprintf(burst->first_failure, sizeof(burst->first_failure), "%s", why ? why : "");
    for (char *end = p;; p = end) {
        double us = strtod(p, &end);

        if (end == p)
            break;
        sample_add(&burst->times, us);
    }
}
