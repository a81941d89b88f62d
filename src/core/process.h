/* process - commands in a sandbox: started, watched, fed and ended through warren-init.
 *
 * Each call opens a connection of its own to the sandbox's init socket and speaks `wire`. A
 * struct process_stream is such a connection, kept: read events from it until the end. Output
 * belongs to init's ring; nothing is stored here, so a command that prints gigabytes costs the
 * daemon one frame. What init says is checked like any outside input. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/core.h"
#include "core/sandbox.h"
#include "wire/wire.h"

struct process_spec {
    char **argv; /* NULL-terminated, owned */
    size_t argc;
    struct pairs env;         /* added to the sandbox's */
    char *cwd, *user, *label; /* NULL: the sandbox's default */
    bool pty, stdin_open;
    bool no_output; /* the stream tells only of the end; output waits in the ring */
    bool together;  /* its start need not be told before its first output, or its end */
    unsigned rows, cols;
    int64_t timeout_ms; /* 0: none */
    bool own;           /* no user's: whatever a sandbox does before a command is left out */
};
void process_spec_done(struct process_spec *spec);

struct process {
    bool tracked; /* started through the API; else only pid, ppid, argv, cpu, rss mean anything */
    uint64_t proc;
    int64_t pid, ppid;
    char **argv; /* NULL-terminated, owned */
    char *label, *user;
    bool pty, ended;
    int exit_code;   /* 128 + signal when one ended it */
    int exit_signal; /* 0: none */
    enum wire_reason reason;
    int64_t started_ms, ended_ms;
    uint64_t cpu_us, rss_bytes, output_bytes;
};
void process_done(struct process *p);
const char *process_reason_name(enum wire_reason reason);
/* "SIGTERM", "TERM" or "15"; -EINVAL. And back: NULL for an unknown number. */
int process_signal_parse(const char *text, int *ret_signo);
const char *process_signal_name(int signo);
/* How it ended, as programs written in Go say it: "exit status 1", "signal: killed". Returns out. */
#define PROCESS_STATUS_MAX 64
const char *process_status_text(const struct process *p, char out[PROCESS_STATUS_MAX]);

struct process_stream;
/* The sandbox was entered by the caller (sandbox_enter) and is left by it. *ret_p may be NULL. */
int process_start(struct core *core, const struct sandbox *s, const struct process_spec *spec,
                  struct process_stream **ret_stream, struct process *ret_p, struct err *err);
int process_attach(struct core *core, const struct sandbox *s, uint64_t proc, uint64_t since,
                   bool only_exit, struct process_stream **ret_stream, struct process *ret_p,
                   struct err *err);

enum process_event_type { PROCESS_OUTPUT, PROCESS_DROPPED, PROCESS_ENDED };
struct process_event {
    enum process_event_type type;
    enum wire_stream stream; /* OUTPUT */
    uint64_t offset;
    const char *data;     /* OUTPUT: valid until the next call */
    size_t len;           /* OUTPUT; DROPPED: bytes lost */
    struct process ended; /* ENDED: process_done it */
};
/* 1 and an event; -ETIMEDOUT after timeout_ms (-1: none) without one; -ECONNRESET when the
 * sandbox died under it; -ECANCELED when hangup_fd (-1: none) was closed by its peer. */
int process_next(struct process_stream *st, int timeout_ms, int hangup_fd,
                 struct process_event *ret_ev, struct err *err);
int process_feed(struct process_stream *st, const void *p, size_t n); /* stdin; blocks */
int process_feed_end(struct process_stream *st);
/* Stdin, whole: sent and then closed while process_next waits, so that a command which prints
 * before it reads cannot lock up with its caller. Keeps p until the stream is freed. */
void process_feed_all(struct process_stream *st, const void *p, size_t n);
int process_stream_fd(const struct process_stream *st); /* to poll for input; borrowed */
void process_stream_free(struct process_stream *st);    /* detaches; the process goes on */
DEFINE_FREEP(struct process_stream *, process_stream_free)

/* Tell the change feed that a process was started, and, while this daemon lives, when it has
 * ended. Takes a stream without output, or makes one if it is NULL; a failure only means that the
 * end is not told. */
void process_watch(struct core *core, const struct sandbox *s, const struct process *p,
                   struct process_stream *stream);
void process_watch_stop(void); /* before core_free */

int process_list(struct core *core, const struct sandbox *s, bool all, struct process **ret_ps,
                 size_t *ret_n, struct err *err);
void process_list_free(struct process *ps, size_t n);
int process_get(struct core *core, const struct sandbox *s, uint64_t proc, struct process *ret_p,
                struct err *err);
int process_write(struct core *core, const struct sandbox *s, uint64_t proc, const void *p,
                  size_t n, struct err *err);
int process_close_stdin(struct core *core, const struct sandbox *s, uint64_t proc, struct err *err);
int process_signal(struct core *core, const struct sandbox *s, uint64_t proc, int signo,
                   enum wire_scope scope, struct err *err);
int process_resize(struct core *core, const struct sandbox *s, uint64_t proc, unsigned rows,
                   unsigned cols, struct err *err);
