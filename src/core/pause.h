/* pause - a sandbox's processes put away on disk, and brought back.
 *
 * What is put away is a checkpoint with memory (reason "pause"), taken in the moment in which the sandbox ends:
 * nothing runs on after it, so its files are still those of that moment when it is resumed. The
 * record names that checkpoint before the keeper is asked, and says `resuming` before processes are brought
 * back; what a crash cuts is then finished or undone, never half. All but sandbox_pause work on a
 * box that the caller holds, and block for as long as the keeper takes. */
#pragma once
#include "core/table.h"

#define PAUSE_REASON "pause"

/* Running to paused. -EOPNOTSUPP, memory_unsupported; -EBUSY, cannot_dump: it goes on unharmed. */
int pause_held(struct core *core, struct box *b, enum sandbox_cause cause, struct err *err);
/* Goes on with a pause that was cut: it is paused, or runs, or is tried again by the timers. */
int pause_settle(struct core *core, struct box *b, struct err *err);

/* Paused to running, with the processes it had. On failure it is still paused. */
int resume_held(struct core *core, struct box *b, struct err *err);
/* At start: the processes were being brought back when we died. */
int resume_settle(struct core *core, struct box *b, bool alive, struct err *err);

/* Of one that is paused: nothing of it runs, and its files are those that the memory goes with. */
int pause_files(struct core *core, struct box *b, struct err *err);
/* Paused to stopped: its files stay, brought back if they are archived; its memory is forgotten. */
int pause_stop(struct core *core, struct box *b, enum sandbox_cause cause, struct err *err);
/* Paused to stopped with the files of a checkpoint. On failure it is still paused, with all that it had. */
int pause_replace(struct core *core, struct box *b, const char *checkpoint, struct err *err);
/* Its next resume brings that checkpoint's files and memory. For one that is stopped or paused; who calls it
 * knows what it was. -ENOENT: the checkpoint is gone, and nothing has changed. */
int pause_become(struct core *core, struct box *b, const char *checkpoint, struct err *err);
/* Its record, from which a crash finds out whether its files are in place. */
int pause_record(struct core *core, struct box *b, struct err *err);
/* Removes a checkpoint that was taken for a pause and is needed no more, now or later; others stay. */
void pause_forget(struct core *core, const char *owner, const char *checkpoint);
bool pauses_need(struct core *core,
                 const char *checkpoint); /* one goes on from it, or is about to */
/* Those that a crash left: found at start, before there are other threads, and dropped by the timers. */
void pauses_find_orphans(struct core *core);
void pauses_drop_orphans(struct core *core);
