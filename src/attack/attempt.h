/* attempt - one thing that a hostile program in a sandbox tries, and how the wall answered.
 *
 * An attempt is a row of its category's table. It runs in a child with a time limit and says
 * what it saw: held, broke, or that there is nothing to try here. A hold takes as much as it can
 * get of something that the kernel counts for all, and keeps it while a second sandbox asks for
 * a little of the same. Knows libc and the kernel, nothing of Warren: it is the enemy's program. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define WHY_MAX 240
#define CALL_ARGS 6

enum verdict { VERDICT_NONE, VERDICT_HELD, VERDICT_BROKE, VERDICT_NOT_HERE };

struct outcome {
    enum verdict verdict;
    char why[WHY_MAX];
};

/* `list` prints these letters. */
enum attempt_flag {
    ATTEMPT_DEATH_HOLDS = 1, /* 'd': being killed by the kernel counts as held */
    ATTEMPT_SPOILS = 2,      /* 's': the sandbox is not used again */
    ATTEMPT_VOLUME = 4,      /* 'v': needs a volume at /attack-volume */
    ATTEMPT_SLOW = 8,        /* 'l': may take 30 s rather than 10 */
};

#define VOLUME_PATH "/attack-volume"

struct attempt {
    const char *name, *title;
    void (*run)(const struct attempt *self, struct outcome *o);
    unsigned flags;
    long nr, args[CALL_ARGS]; /* of a system call, or as `run` reads them */
    const char *path, *text;  /* likewise */
};

struct hold {
    const char *name, *title;
    long (*take)(void);               /* how many it got; below zero: -errno */
    bool (*get)(char *why, size_t n); /* does a little still work? NULL: any exec does */
};

struct group {
    const char *category;
    const struct attempt *attempts;
    size_t n;
};

extern const struct group group_calls, group_namespaces, group_mounts, group_proc, group_devices,
    group_init, group_sockets, group_network, group_limits, group_disk, group_volume,
    group_identity;
extern const struct hold holds[];
extern const size_t holds_n;

/* Run an attempt with its time limit, in a child. */
void attempt_run(const struct attempt *a, struct outcome *ret_outcome);
const struct attempt *attempt_find(const char *name, const char **ret_category);
int attempt_list(void);
const struct hold *hold_find(const char *name);

/* The verdict of an attempt. The first `broke` stays: a later `held` does not hide it. */
void held(struct outcome *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void broke(struct outcome *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void not_here(struct outcome *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Judge a call's result: success broke the wall, a refusal held, and so did a call that the
 * kernel lacks. Any other error means that the call got past the filter: broke. */
void refused(struct outcome *o, long r, const char *what);
/* The call must have failed, with any error. */
void failed(struct outcome *o, long r, const char *what);
/* The file must not open for writing; a missing one holds. */
void unwritable(struct outcome *o, const char *path);
/* The file must not open, or must give no bytes. */
void tells_nothing(struct outcome *o, const char *path);
/* Try every file below `top` for writing. Holds only if there was at least one. */
void tree_unwritable(struct outcome *o, const char *top);

/* `run` functions for rows: a system call that must be refused, a file that must not be written,
 * and so on. */
void run_call(const struct attempt *self, struct outcome *o);
void run_unwritable(const struct attempt *self, struct outcome *o);
void run_tree(const struct attempt *self, struct outcome *o);
void run_silent(const struct attempt *self, struct outcome *o);
/* Read up to n - 1 bytes; below zero: -errno. */
long slurp(const char *path, char *out, size_t n);
