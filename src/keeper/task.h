/* task - a process of the keeper's that does one long step, and says how that went.
 *
 * The loop goes on meanwhile. Before the step the process may ask for something to stand still
 * (task_ready) and waits until the keeper says so (task_go); other words (task_say) it does not wait
 * for. What it says comes over a socket: the watch's function is called, and task_hear reads it. It
 * dies with the keeper. */
#pragma once
#include "keeper/keeper.h"

enum task_word {
    TASK_READY = 1,
    TASK_BACK,   /* what stood still may go on; the process has more to do */
    TASK_ADRIFT, /* what it took hold of could not be brought back; told before the end */
};

struct task {
    struct keeper *k;
    struct watch watch; /* { -1, fn } before task_start */
    int fd;
    pid_t pid;
};

/* In the process, `work` gets the job and its end of the socket, and does not come back. */
int task_start(struct task *t, void (*work)(void *job, int fd), void *job, struct err *err);
/* Reads what the process said: a word; 0 and the bytes that task_end told; or why it failed. -ECHILD: the process
 * died. */
int task_hear(const struct task *t, uint64_t *ret_bytes, struct err *err);
int task_go(const struct task *t);
/* Ends the process if it has not ended, and has swept away what it left. */
void task_done(struct task *t);

/* ---- in the process ---- */
int task_ready(int fd, struct err *err);
void task_say(int fd, enum task_word word);
_Noreturn void task_end(int fd, int r, uint64_t bytes, const struct err *err);
