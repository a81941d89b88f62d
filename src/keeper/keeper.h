/* keeper - the privileged half's world, shared by its few files.
 *
 * cells*.c: the life of cells (cell.h); ports.c: the way to what listens in one; volumes.c: files that outlive
 * cells, and how a cell sees them; buckets.c: those that lie in object storage; points.c, volume_points.c:
 * checkpoints; images.c: trees, and the jobs of warren-unpack; server.c: the socket and the table of
 * operations. A request comes in as a struct conn; an operation either answers at once or keeps
 * the conn until its cell has got where it should, and answers then. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "cell/ns.h"
#include "keeper/storage.h"
#include "keeper/sweeper.h"
#include "kernel/starter.h"
#include "wire/keeper.h"

struct uidrange_pool;
struct cell;
struct unpack_job;
struct execs;
struct bucket;

#define CELL_BUCKETS 1024
#define CONN_FDS_MAX 2

struct keeper {
    struct loop *loop;
    struct storage *storage;
    struct uidrange_pool *uids;
    struct cgroup_host *cgroups;
    struct ns_host *ns;
    struct execs *execs; /* NULL: this machine does not count programs */
    bool fenced;         /* unix sockets cannot connect two cells (kernel/fence.h) */
    struct sweeper sweeper;
    struct starter starter;
    int cells_dir;       /* <run>/cells */
    uint32_t client_uid; /* who may connect: warrend */
    struct cell *cells[CELL_BUCKETS];
    struct conn *conns;
    struct unpack_job *jobs;
    int unpack_exe;  /* warren-unpack, to be executed */
    int bucket_exe;  /* warren-bucket; -1: not installed */
    int buckets_dir; /* <run>/buckets */
    struct bucket *buckets;
    unsigned lingering; /* dead cells whose groups were not empty yet */
};

struct conn {
    struct keeper *k;
    struct watch watch;
    int fd;
    bool watching;         /* hears of every cell that dies by itself */
    struct conn **kept_by; /* whoever answers later; told when the client goes away first */
    struct conn *next;     /* among all of them */
    struct keeper_request req;
    int passed[CONN_FDS_MAX]; /* with the request, or -1 */
};

/* ---- server.c ---- */
void conn_answer(struct conn *c, struct keeper_reply *reply);      /* sends, closes, frees */
void conn_answer_fds(struct conn *c, const int *fds, size_t nfds); /* success; fds stay ours */
void conn_result(struct conn *c, int r, const struct err *err);
/* The same with the counters of a cell that has ended. */
void conn_result_usage(struct conn *c, int r, const struct err *err,
                       const struct keeper_usage *usage);
void conn_send_more(struct conn *c, struct keeper_reply *reply); /* one of several */
/* Answers with a row for each id there is of a kind; `what` they are, if that fails. */
void conn_list_ids(struct conn *c, enum storage_kind kind, const char *what);
void conn_keep(struct conn *c, struct conn **where); /* answer later through *where */
/* Until parent_fd (-1: none) is closed at its other end. */
int server_run(struct keeper *k, int listen_fd, int parent_fd, struct err *err);
void server_notify_exit(struct keeper *k, const char *id, const struct keeper_usage *last);
void server_notify_bucket(struct keeper *k, const char *id, const char *volume); /* it is gone */

/* ---- cells*.c ---- */
int cells_adopt(struct keeper *k, struct err *err); /* what a former keeper left running */
struct record;
/* Find the control groups of a cell that a former keeper left running. */
void cells_find_groups(struct keeper *k, const char *id, const struct record *rec);
void cells_make(struct conn *c);
void cells_end(struct conn *c); /* STOP and DELETE */
void cells_limits(struct conn *c);
void cells_freeze(struct conn *c); /* FREEZE and THAW */
/* Stop its clock for a moment, or let it go on; one that does not run is fine. Several may do so at
 * the same time: it goes on after the last, if it is not asleep (KEEPER_FREEZE). */
int cells_pause(struct keeper *k, const char *id, bool on, struct err *err);
/* A running one's work stands still and its init may be parked: bring it back (memory.h). */
void cells_rescue(struct keeper *k, const char *id);
/* What its checkpoint holds is to be all that there is of it; answers when it has ended. */
void cells_end_kept(struct conn *c, uint64_t frozen_us, uint64_t memory_bytes);
void cells_stat(struct conn *c);
void cells_programs(struct conn *c);
void cells_list(struct conn *c);
pid_t cells_pid(struct keeper *k, const char *id); /* of a running one's init; -ESRCH */
int cells_pidfd(struct keeper *k, const char *id); /* of a running one's init, borrowed; -ESRCH */
bool cells_come_back(struct keeper *k, const char *id); /* its processes are being brought back */
void cells_tick(struct keeper *k);
int cells_kill_all(struct keeper *k); /* for --teardown: blocks until they are gone */

uint32_t cells_uid_base(struct keeper *k, const char *id); /* root's id there; 0: does not run */

/* ---- buckets.c ---- */
void buckets_attach(struct conn *c);
void buckets_end(struct keeper *k, const char *cell); /* with the cell, before its processes */
int buckets_open(struct keeper *k, const char *run_dir, struct err *err);
int buckets_adopt(struct keeper *k, struct err *err);
bool buckets_have(struct keeper *k, const char *id); /* is that the group of one? */
void buckets_tick(struct keeper *k);
void buckets_kill_all(struct keeper *k); /* for --teardown */

/* ---- ports.c ---- */
void ports_sockets(struct conn *c);
void ports_steer(struct conn *c);

/* ---- volumes.c ---- */
void volumes_put(struct conn *c);
void volumes_remove(struct conn *c);
void volumes_stat(struct conn *c);
void volumes_list(struct conn *c);
void volumes_attach(struct conn *c);

/* ---- volume_points.c ---- */
void volume_points_put(struct conn *c);
void volume_points_restore(struct conn *c);
void volume_points_remove(struct conn *c);
void volume_points_list(struct conn *c);

/* ---- points.c ---- */
void points_put(struct conn *c);
void points_box(struct conn *c);
void points_remove(struct conn *c);
void points_list(struct conn *c);
/* Cancel the checkpoint of a cell that ends, instead of waiting until its processes stand still. */
void points_cancel(struct keeper *k, const char *id);
/* Its memory is on disk some time soon. */
void points_write_out(struct keeper *k, const char *point);
/* Whether a box may hold something else than a point of it. */
bool points_changed(struct keeper *k, const char *id, const char *point);

/* ---- images.c ---- */
void images_layer(struct conn *c);
void images_diff(struct conn *c);
void images_cancel(struct keeper *k, const char *id); /* cancel the DIFF of a cell that ends */
void images_split(struct conn *c);
void images_changes(struct conn *c);
void images_point_read(struct conn *c);
void images_point_lay(struct conn *c);
void images_compare(struct conn *c);
void images_remove(struct conn *c);
void images_list(struct conn *c);
