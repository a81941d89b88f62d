#include <errno.h>
#include <signal.h>
#include <string.h>

#include "core/process.h"

#define SIGNO_MAX 64

static const struct {
    int signo;
    const char *name;
} names[] = {
    { SIGHUP, "SIGHUP" },       { SIGINT, "SIGINT" },       { SIGQUIT, "SIGQUIT" },
    { SIGILL, "SIGILL" },       { SIGTRAP, "SIGTRAP" },     { SIGABRT, "SIGABRT" },
    { SIGBUS, "SIGBUS" },       { SIGFPE, "SIGFPE" },       { SIGKILL, "SIGKILL" },
    { SIGUSR1, "SIGUSR1" },     { SIGSEGV, "SIGSEGV" },     { SIGUSR2, "SIGUSR2" },
    { SIGPIPE, "SIGPIPE" },     { SIGALRM, "SIGALRM" },     { SIGTERM, "SIGTERM" },
    { SIGSTKFLT, "SIGSTKFLT" }, { SIGCHLD, "SIGCHLD" },     { SIGCONT, "SIGCONT" },
    { SIGSTOP, "SIGSTOP" },     { SIGTSTP, "SIGTSTP" },     { SIGTTIN, "SIGTTIN" },
    { SIGTTOU, "SIGTTOU" },     { SIGURG, "SIGURG" },       { SIGXCPU, "SIGXCPU" },
    { SIGXFSZ, "SIGXFSZ" },     { SIGVTALRM, "SIGVTALRM" }, { SIGPROF, "SIGPROF" },
    { SIGWINCH, "SIGWINCH" },   { SIGIO, "SIGIO" },         { SIGPWR, "SIGPWR" },
    { SIGSYS, "SIGSYS" },
};

int process_signal_parse(const char *text, int *ret_signo)
{
    if (text[0] >= '0' && text[0] <= '9') {
        char *end;
        errno = 0;
        long v = strtol(text, &end, 10);
        if (errno || *end || v < 1 || v > SIGNO_MAX)
            return -EINVAL;
        *ret_signo = (int)v;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcasecmp(text, names[i].name) == 0 || strcasecmp(text, names[i].name + 3) == 0) {
            *ret_signo = names[i].signo;
            return 0;
        }
    return -EINVAL;
}

const char *process_signal_name(int signo)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].signo == signo)
            return names[i].name;
    return NULL;
}

const char *process_reason_name(enum wire_reason reason)
{
    switch (reason) {
    case WIRE_EXIT: return "exit";
    case WIRE_SIGNALLED: return "signal";
    case WIRE_OOM: return "oom";
    case WIRE_TIMEOUT: return "timeout";
    }
    return "exit";
}

const char *process_status_text(const struct process *p, char out[PROCESS_STATUS_MAX])
{
    static const struct {
        int signo;
        const char *word;
    } words[] = { { 9, "killed" },       { 15, "terminated" },  { 2, "interrupt" },
                  { 1, "hangup" },       { 6, "aborted" },      { 11, "segmentation fault" },
                  { 13, "broken pipe" }, { 14, "alarm clock" }, { 3, "quit" } };
    const char *word = p->exit_signal ? process_signal_name(p->exit_signal) : NULL;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (words[i].signo == p->exit_signal)
            word = words[i].word;
    if (p->reason == WIRE_OOM)
        (void)snprintf(out, PROCESS_STATUS_MAX, "signal: killed (out of memory)");
    else if (p->exit_signal)
        (void)snprintf(out, PROCESS_STATUS_MAX, "signal: %s", word ? word : "unknown");
    else
        (void)snprintf(out, PROCESS_STATUS_MAX, "exit status %d", p->exit_code);
    return out;
}
