/* keeper - asking the privileged half, from the daemon's side.
 *
 * One connection an operation. A keeper that is away (restarting) is waited for, KEEPER_WAIT_MS
 * at most; what was sent when it died is sent again, which every operation but LAYER_PUT
 * tolerates. Then -ENOTCONN, keeper_unavailable. Blocks for as long as the keeper takes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/core.h"
#include "wire/keeper.h"

#define KEEPER_WAIT_MS 5000

/* Fills *ret_reply (NULL is fine) on success; a refusal becomes the error, its name one of ours. */
int keeper_ask(struct core *core, const struct keeper_request *req, struct keeper_reply *ret_reply,
               struct err *err);
int keeper_ask_make(struct core *core, const char *id, const char *tree,
                    const struct keeper_limits *limits, struct err *err);
int keeper_ask_limits(struct core *core, const char *id, const struct keeper_limits *limits,
                      struct err *err);
int keeper_ask_cell(struct core *core, enum keeper_op op, const char *id, struct err *err);
/* STOP or DELETE: with the last of its counters, where it ran and the answer was not lost. */
int keeper_ask_end(struct core *core, enum keeper_op op, const char *id,
                   struct keeper_usage *ret_usage, struct err *err);
int keeper_ask_stat(struct core *core, const char *id, struct keeper_usage *ret_usage,
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

struct keeper_row {
    char id[ID_SIZE];
    char image[KEEPER_IMAGE_SIZE];
    bool running;
};
/* LIST, IMAGE_LIST or VOLUME_LIST, whole; free(*ret_rows). */
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
