#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"

static struct termios saved;
static volatile sig_atomic_t raw;
static int signal_pipe[2] = { -1, -1 };

/* Async-signal-safe: also called from a handler. */
void term_restore(void)
{
    if (!raw)
        return;
    raw = 0;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
}

static void on_fatal(int signo)
{
    term_restore();
    (void)raise(signo); /* its default again, by SA_RESETHAND */
}

bool term_is_raw(void)
{
    return raw;
}

int term_raw(struct err *err)
{
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
    static bool armed;
    struct termios t;
    if (raw)
        return 0;
    if (tcgetattr(STDIN_FILENO, &saved) < 0)
        return err_set(err, errno, "standard input is not a terminal");
    if (!armed) {
        struct sigaction sa = { .sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND };
        for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
            (void)sigaction(fatal[i], &sa, NULL);
        (void)atexit(term_restore);
        armed = true;
    }
    t = saved;
    cfmakeraw(&t);
    raw = 1;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &t) < 0) {
        raw = 0;
        return err_set(err, errno, "cannot set the terminal to raw mode");
    }
    return 0;
}

static int read_line(char *out, size_t size, struct err *err)
{
    size_t n = 0;
    while (n + 1 < size) {
        ssize_t r = read(STDIN_FILENO, out + n, size - 1 - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_set(err, errno, "cannot read from the terminal");
        n += (size_t)r;
        if (r == 0 || out[n - 1] == '\n')
            break;
    }
    bool whole = n + 1 < size || out[n - 1] == '\n';
    if (n > 0 && out[n - 1] == '\n')
        n--;
    out[n] = '\0';
    return whole ? 0 : err_set(err, EMSGSIZE, "the answer is too long");
}

int term_ask_hidden(const char *question, char *out, size_t size, struct err *err)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
    struct sigaction sa = { .sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND };
    struct sigaction before[ARRAY_LEN(ends)];
    struct termios t;
    if (tcgetattr(STDIN_FILENO, &saved) < 0)
        return err_set(err, errno, "standard input is not a terminal");
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        sa.sa_handler =
            ends[i] == SIGTSTP ? SIG_IGN : on_fatal; /* a shell must not get it like this */
        (void)sigaction(ends[i], &sa, &before[i]);
    }
    t = saved;
    t.c_lflag &= ~(tcflag_t)ECHO;
    t.c_lflag |= ICANON | ISIG | ECHONL;
    raw = 1;
    int r = tcsetattr(STDIN_FILENO, TCSAFLUSH, &t) < 0
                ? err_set(err, errno, "cannot keep the terminal from showing what is typed")
                : 0;
    if (r == 0) { /* who answers at once is not shown, either */
        (void)fputs(question, stderr);
        (void)fflush(stderr);
        r = read_line(out, size, err);
    }
    term_restore();
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        (void)sigaction(ends[i], &before[i], NULL);
    return r;
}

bool term_size(unsigned *ret_rows, unsigned *ret_cols)
{
    static const int fds[] = { STDOUT_FILENO, STDIN_FILENO, STDERR_FILENO };
    struct winsize ws;
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (ioctl(fds[i], TIOCGWINSZ, &ws) == 0 && ws.ws_row > 0 && ws.ws_col > 0) {
            *ret_rows = ws.ws_row;
            *ret_cols = ws.ws_col;
            return true;
        }
    }
    *ret_rows = 24;
    *ret_cols = 80;
    return false;
}

size_t term_width(int fd)
{
    struct winsize ws;
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 ? ws.ws_col : 80;
}

static void on_signal(int signo)
{
    int keep = errno;
    unsigned char byte = (unsigned char)signo;
    (void)!write(signal_pipe[1], &byte, 1);
    errno = keep;
}

int signals_catch(bool with_size, struct err *err)
{
    static const int always[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    static const int sized[] = { SIGWINCH, SIGTSTP, SIGCONT };
    /* No SA_RESTART: a blocked write must come back, so that the loop can forward an interrupt. */
    struct sigaction sa = { .sa_handler = on_signal }, ignore = { .sa_handler = SIG_IGN };
    if (signal_pipe[0] < 0 && pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_set(err, errno, "cannot make a pipe for signals");
    for (size_t i = 0; i < ARRAY_LEN(always); i++) {
        struct sigaction old;
        /* One that was ignored when we began (nohup, a background job) stays ignored. */
        if (sigaction(always[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
            continue;
        (void)sigaction(always[i], &sa, NULL);
    }
    for (size_t i = 0; with_size && i < ARRAY_LEN(sized); i++)
        (void)sigaction(sized[i], &sa, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL);
    return 0;
}

int signals_fd(void)
{
    return signal_pipe[0];
}

int signals_next(void)
{
    unsigned char byte;
    return signal_pipe[0] >= 0 && read(signal_pipe[0], &byte, 1) == 1 ? byte : 0;
}
