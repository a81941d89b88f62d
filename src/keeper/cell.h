/* cell - one running cell, as the files that follow its life see it. cells.c: the table, what is
 * heard of a cell, its end; cells_make.c and cells_revive.c: how it begins; cells_adopt.c: as a new
 * keeper finds it; cells_ask.c: what is asked of it; cell_run.c: its run directory. Nobody else
 * looks inside. */
#pragma once
#include "keeper/keeper.h"
#include "keeper/record.h"

struct revival;

enum cell_state { CELL_STARTING, CELL_RUNNING, CELL_ENDING, CELL_LINGERING };

struct cell {
    struct keeper *k;
    struct cell *next;
    char id[ID_SIZE];
    enum cell_state state;
    bool delete_storage;
    unsigned pauses; /* who has it stand still for a moment: its files are read */
    bool asleep;     /* KEEPER_FREEZE */
    unsigned tries;
    struct record record;
    uint64_t shown_cpu_us, shown_bytes; /* at the last reading that it was shown */
    struct keeper_usage last;           /* what it had used when it ended */
    uint64_t frozen_us, memory_bytes;   /* of the checkpoint that ended it */
    char kept[ID_SIZE];                 /* that checkpoint; "": it was not ended so */
    int pidfd, status_fd;
    int root_fd; /* while ending: keeps the root filesystem until the sweeper lets go of it */
    struct watch exit_watch, status_watch;
    struct revival *revival; /* while its processes are brought back */
    struct conn *asker;      /* NULL, or who waits for the present state to end */
};

/* One more in the table: starting, nothing open. NULL: no memory. */
struct cell *cell_add(struct keeper *k, const char *id);
void cell_forget(struct cell *c); /* out of the table; closes what it has open */
struct cell *cell_find(struct keeper *k, const char *id);
void cell_answer(struct cell *c, int r, const struct err *err); /* whoever asked; nobody is fine */
void cell_bury(struct cell *c);                                 /* the last process is gone */
void cell_kill(struct cell *c);

/* ---- cell_run.c ---- */
int cell_open_run_dir(struct keeper *k, const char *id, struct err *err);
int cell_make_socket(struct keeper *k, const char *id, int run_dir, int *ret_fd, struct err *err);
void cell_remove_run_dir(struct keeper *k, const char *id);
int cell_mark_asleep(struct keeper *k, const char *id, bool asleep); /* for the next keeper */
bool cell_is_marked_asleep(struct keeper *k, const char *id);

/* ---- cells_revive.c ---- */
/* Bring a new cell's processes back from a checkpoint's memory; answers when they run. */
int cell_revive(struct cell *c, const struct keeper_request *req, struct err *err);
/* One that a former keeper, or a story that was cut, left parked; and with its work frozen. */
void cell_rescue(struct cell *c);
void cell_drop_revival(struct cell *c); /* give up either */
