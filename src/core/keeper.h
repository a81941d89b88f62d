/* keeper - asking the privileged half, from the daemon's side.
 *
 * One connection an operation. A keeper that is away (restarting) is waited for, KEEPER_WAIT_MS
 * at most; what was sent when it died is sent again, which every operation but LAYER_PUT
 * tolerates. Then -ENOTCONN, keeper_unavailable. Blocks for as long as the keeper takes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/core.h"
#include "core/sandbox.h"
#include "wire/keeper.h"

#define KEEPER_WAIT_MS 5000

/* Fills *ret_reply (NULL is fine) on success; a refusal becomes the error, its name one of ours. */
int keeper_ask(struct core *core, const struct keeper_request *req, struct keeper_reply *ret_reply,
               struct err *err);
/* The same with the descriptors that came along, which are the caller's if this returns 0. */
struct keeper_passed {
    int fds[KEEPER_STEER_FDS]; /* the most that come at once */
    size_t n;
};
int keeper_ask_passed(struct core *core, const struct keeper_request *req,
                      struct keeper_reply *ret_reply, struct keeper_passed *ret_passed,
                      struct err *err);

/* Only whether it listens, without waiting: a busy keeper is a healthy one. */
bool keeper_listens(const struct core *core);

/* ---- keeper_ask.c ---- */
int keeper_ask_make(struct core *core, const char *id, const char *tree,
                    const struct keeper_limits *limits, struct err *err);
/* With the processes of the memory of checkpoint `point`, unless that is "": -EBUSY, cannot_restore;
 * memory_unsupported. */
int keeper_ask_make_sandbox(struct core *core, const struct sandbox *s, const char *tree,
                            const char *point, struct err *err);
int keeper_ask_limits(struct core *core, const char *id, const struct keeper_limits *limits,
                      struct err *err);
int keeper_ask_cell(struct core *core, enum keeper_op op, const char *id, struct err *err);
/* STOP or DELETE: with the last of its counters, where it ran and the answer was not lost. */
int keeper_ask_end(struct core *core, enum keeper_op op, const char *id,
                   struct keeper_usage *ret_usage, struct err *err);
int keeper_ask_stat(struct core *core, const char *id, struct keeper_usage *ret_usage,
                    struct err *err);
/* Whether its files may differ from those of a checkpoint of it, as far as they are on disk. */
int keeper_ask_changed(struct core *core, const char *id, const char *point, bool *ret_changed,
                       struct err *err);
/* Unconnected, non-blocking TCP sockets of a running cell's network namespace: IPv4's, then IPv6's or
 * -1. The caller closes them. */
int keeper_ask_sockets(struct core *core, const char *id, int ret_fds[KEEPER_SOCKETS],
                       struct err *err);
/* The way out of its network namespace; the caller owns all three. */
int keeper_ask_steer(struct core *core, const char *id, int ret_fds[KEEPER_STEER_FDS],
                     struct err *err);
/* VOLUME_PUT (size_bytes: what it may hold) or VOLUME_RM. */
int keeper_ask_volume(struct core *core, enum keeper_op op, const char *volume, uint64_t size_bytes,
                      struct err *err);
int keeper_ask_volume_used(struct core *core, const char *volume, uint64_t *ret_bytes,
                           struct err *err);
int keeper_ask_attach(struct core *core, const char *id, const char *volume, const char *path,
                      bool read_only, struct err *err);
int keeper_ask_image_rm(struct core *core, const char *tree, struct err *err);

/* ---- keeper.c ---- */
struct keeper_row {
    char id[ID_SIZE];
    char image[KEEPER_IMAGE_SIZE];
    bool running, frozen;
    uint64_t memory_bytes; /* POINT_LIST */
};
/* LIST or another of the operations that list, whole; free(*ret_rows). */
int keeper_ask_list(struct core *core, enum keeper_op op, struct keeper_row **ret_rows,
                    size_t *ret_n, struct err *err);

void keeper_rows_sort(struct keeper_row *rows, size_t n); /* by id */
/* In sorted rows; NULL: not there. */
const struct keeper_row *keeper_rows_find(const struct keeper_row *rows, size_t n, const char *id);

/* For operations that last: the caller closes *ret_fd. Waits for a keeper that is away. */
int keeper_ask_begin(struct core *core, const struct keeper_request *req, const int *fds,
                     size_t nfds, int *ret_fd, struct err *err);
/* One datagram of the answer, checked; -ECONNRESET when the keeper died. The reply's own
 * refusal is in it, not in the result. */
int keeper_ask_next(int fd, struct keeper_reply *ret_reply);
int keeper_ask_result(const struct keeper_reply *reply, struct err *err);
/* keeper_piped.c: as keeper_ask_begin for one that writes to a pipe, which it gets behind `fds`; the caller closes
 * its end, *ret_in, too. */
int keeper_ask_piped(struct core *core, const struct keeper_request *req, const int *fds,
                     size_t nfds, int *ret_in, int *ret_fd, struct err *err);
/* The one answer to what was begun, for which it has wait_s (0: as long as it takes). `doing` says
 * what failed if the keeper died: "read the sandbox". ret_reply may be NULL. */
int keeper_ask_finish(int fd, unsigned wait_s, const char *doing, struct keeper_reply *ret_reply,
                      struct err *err);
