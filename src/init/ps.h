/* ps - the processes of this pid namespace, as /proc tells them.
 *
 * What /proc says of a process is in part that process's own word (its name, its arguments), so
 * it is bounded and parsed as such. /proc is held open from the start: what is mounted over it
 * later is not believed. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PS_ARGS_MAX 64         /* of a listed process's arguments */
#define PS_ARGS_BYTES_MAX 4096 /* of their text */

struct ps_stat {
    pid_t pid, ppid, pgrp, session;
    char state;
    char comm[64];   /* as the kernel cuts it, with room for its escapes */
    uint64_t cpu_us; /* user and system, with reaped children */
    uint64_t rss_bytes;
};

int ps_open(void);
/* A line of /proc/<pid>/stat; -EPROTO. Pure. */
int ps_parse_stat(const char *p, size_t n, struct ps_stat *ret_stat);
int ps_read(pid_t pid, struct ps_stat *ret_stat);
/* The arguments, each NUL-terminated, one after the other; the length, at most size. */
ssize_t ps_args(pid_t pid, char *out, size_t size);
/* Every process but this one; the caller frees *ret_pids. */
int ps_all(pid_t **ret_pids, size_t *ret_n);

/* Signal what descends from leader, or is in its session or group: how many there were. What
 * left the session after its parent had died is not found; a control group finds it. */
int ps_signal_tree(pid_t leader, int signo);
