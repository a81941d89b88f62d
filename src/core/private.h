/* private - the inside of a core, for the files of core/ only.
 *
 * Each noun has a struct with a lock of its own. A lock guards memory and is held for memory
 * only: never across the keeper, the database or an init socket, and never two at once. What
 * must not change under a longer operation is protected by its box being `busy` (table.h). */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"
#include "core/disk.h"
#include "core/image.h"
#include "core/meter.h"
#include "core/sandbox.h"
#include "state/store.h"
#include "wire/keeper.h"

#define THREAD_STACK (512 * 1024) /* our threads call SQLite and little else */

struct box; /* one sandbox in memory: table.h */

struct table {
    pthread_mutex_t lock;
    struct box **by_id, **by_name; /* chains; `buckets` is a power of two */
    size_t buckets;
    struct box **sorted; /* by (created_ms, id): the order of lists */
    int64_t newest_ms;   /* created_ms of the newest: the next one comes after it */
    size_t n, cap;
    uint64_t seed; /* of the hash: names are chosen by clients */
};

struct content;
struct image_name;
struct layer;
struct making;
struct images { /* images.h has the functions */
    pthread_mutex_t lock;
    pthread_cond_t made; /* a layer that somebody may wait for was made, or failed */
    struct image_name *names;
    struct content **contents;
    struct layer *layers;
    size_t n_names, n_contents, n_layers;
    struct image_hold *holds;
    struct making *making;
    uint64_t changes; /* counts changes to what images take; from 1 on */
};

struct stock { /* bytes of a team's that no table lists */
    char owner[OWNER_MAX];
    uint64_t uploads, left;
    uint64_t accounts;     /* of its sandboxes' networks, also of those that are gone */
    uint64_t images, seen; /* images: bytes at the change number `seen` */
};

struct rooms { /* room.h; guarded by the table's lock */
    struct room *first;
    pthread_cond_t settled;
    struct stock *stocks;
    size_t n_stocks;
};

struct blobs {
    int dir, partial; /* <data>/blobs/sha256 and partial */
};

struct team;
struct teams { /* guarded by the table's lock: a quota and what counts for it change together */
    struct team *items; /* by name */
    size_t n;
};

struct key_entry;
struct keyring {
    pthread_mutex_t lock;
    struct key_entry *items;
    size_t n;
    int64_t newest_ms; /* created_ms of the newest: the next one comes after it, also in lists */
};

struct feed {
    pthread_mutex_t lock;
    pthread_cond_t more;
    int64_t last; /* every event up to this one can be read */
    unsigned waiting;
    bool closed;
};

struct replay;
struct replays {
    pthread_mutex_t lock;
    struct replay *first;
    _Atomic int64_t pruned_ms;
};

struct template;
struct templates {
    pthread_mutex_t lock;
    struct template *items;
    size_t n;
};

struct checkpoint;
struct
    checkpoints { /* guarded by the table's lock: what they need, and who needs it, go together */
    struct checkpoint *items; /* in order of creation */
    size_t n;
};

struct s3;
struct archive_busy;
struct archives {  /* archive.h */
    struct s3 *s3; /* NULL: there is no object storage */
    char *where;
    pthread_mutex_t lock;
    pthread_cond_t changed;    /* somebody is through with one */
    struct archive_busy *busy; /* checkpoints with which somebody is at work */
    _Atomic bool garbage;      /* there may be pieces that nobody needs */
    _Atomic bool queued;       /* a collection is on its way: one is enough, workers are few */
    pthread_mutex_t collect;   /* held over a whole collection: the next sees what it left */
};

struct volume_entry;
struct volume_checkpoint;
struct volume_lost;
struct volumes { /* guarded by the table's lock: quotas, and who sees which, change together */
    struct volume_entry *items;
    size_t n;
    struct volume_checkpoint *points; /* of all volumes, in order of creation */
    size_t n_points;
    struct volume_lost *lost; /* buckets to be shown again */
    size_t n_lost;
    pthread_cond_t changed; /* a cell came up, or is gone; or there is something to do */
    pthread_t thread;       /* ends cells that nobody uses */
    bool started, stop;
    enum { VOLUME_SHARING_UNKNOWN, VOLUME_SHARING_FINE, VOLUME_SHARING_REFUSED } sharing;
};

struct template_builder;
struct template_builds { /* template_build.h */
    pthread_mutex_t lock;
    struct template_builder **items; /* the oldest first */
    size_t n;
};

struct secret_entry;
struct secrets {
    pthread_mutex_t lock;   /* of the memory */
    pthread_mutex_t change; /* held over a whole change, database and all; before `lock` */
    struct secret_entry *items;
    size_t n;
    unsigned char key[32]; /* seal.h */
};

#define PASS_BUCKETS 1024

struct pass_entry;
struct passes { /* pass.h; by sandbox */
    pthread_mutex_t lock;
    struct pass_entry *buckets[PASS_BUCKETS];
};

#define ALIAS_BUCKETS 1024

struct alias_entry;
struct aliases {            /* alias.h; by name */
    pthread_mutex_t lock;   /* of the memory */
    pthread_mutex_t change; /* held over a whole change, database and broker too; before `lock` */
    struct alias_entry *buckets[ALIAS_BUCKETS];
    size_t n;
};

struct pool_cell {
    char id[ID_SIZE];
    char tree[KEEPER_IMAGE_SIZE];
    struct keeper_limits limits;
    uint64_t cpu_us; /* used before it is handed out: nobody's */
    bool
        steered; /* made for one with a network: the broker's sockets are there, and these are they */
    int steer[KEEPER_STEER_FDS];
};

struct shelf {                    /* what is kept ready of one kind */
    char key[ID_SIZE];            /* a template's id; empty: blank cells */
    char tree[KEEPER_IMAGE_SIZE]; /* of which image; empty: nothing is kept now */
    unsigned size;                /* how many to keep ready */
    struct pool_cell *ready;      /* `size` places */
    unsigned n_ready;
    int64_t retry_ms; /* after a failure: not before this */
    unsigned failures;
    char owner[OWNER_MAX];    /* a template's: whose image */
    struct sandbox_spec spec; /* a template's: what to make */
    struct shelf_memory {     /* a template's: shelf_memory.c */
        bool looked;          /* whether one was there at the start */
        bool wanted;          /* somebody would have it */
        bool given_up;        /* it cannot be kept; the log says why */
        char point[ID_SIZE];  /* the checkpoint; "": none */
        int64_t retry_ms;     /* not before this */
        unsigned failures;    /* to make one that can be copied, in a row */
        unsigned lost;        /* copies that failed, in a row */
    } memory;
    bool by_use;      /* only for a while after each use */
    int64_t until_ms; /* that while's end; 0: it is not used */
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;    /* the thread: there is something to do */
    pthread_cond_t changed; /* others: a cell was made or removed */
    pthread_t thread;
    bool started, stop, asleep;
    struct shelf blank;
    struct pool_cell *trash; /* to be deleted; grows */
    size_t n_trash, cap_trash;
    char (*stale)[ID_SIZE]; /* templates' memory that is to be removed; grows */
    size_t n_stale;
    char other[KEEPER_IMAGE_SIZE];   /* what the last create asked for, if that was another one */
    char working[KEEPER_IMAGE_SIZE]; /* of the cell the thread is making or removing */
    int64_t last_take_ms, first_take_ms; /* monotonic; first: since the pool was last full */
    unsigned steered; /* how many of the blank ones to make for sandboxes with a network */
    /* templates' (shelf.c): a thread of their own, for making one may take as long as it boots */
    struct shelf *warm;
    size_t n_warm;
    pthread_cond_t warm_wake;
    pthread_t warmer;
    bool warmer_started, images_changed,
        memoryless;    /* the last: this host keeps none, and the log says so */
    int64_t by_use_ms; /* how long a used shelf is kept filled */
    char warming[KEEPER_IMAGE_SIZE], warming_key[ID_SIZE];
    _Atomic bool warm_cancel;
};

struct timers {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool started, stop, again;
};

#define WORKERS 4 /* ends that may be slow at the same time, each a keeper call or two */

struct job;
struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t threads[WORKERS];
    unsigned n_threads;
    struct job *head, *tail;
    bool stop;
};

struct usage_entry;
struct usage {
    pthread_mutex_t flush; /* held while entries are written; alone or before the table's lock */
    struct usage_entry *pending; /* guarded by the table's lock, as the meters are */
    size_t n, cap;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool started, stop;
    int64_t interval_ms, gap_ms;
    unsigned keep_days;
    _Atomic int64_t pruned_ms;
};

#define LEDGER_FLOWS \
    4096 /* that go on and have an entry: a later one may take an earlier's place */

struct ledger_flow {
    uint64_t flow, number;
};

struct network_counts {
    _Atomic uint64_t sent_bytes, received_bytes, connections, denied;
};

struct ledger_item;
struct denials;
struct ledger {           /* ledger.h */
    pthread_mutex_t lock; /* of the queue */
    pthread_cond_t more, settled;
    struct ledger_item *first, **last;
    size_t n_items;
    uint64_t queued, written, dropped; /* items, ever */
    bool started, stop, hurried;
    bool crowded; /* a team needs the room that accounts take */
    pthread_t thread;
    pthread_mutex_t io;                     /* held while an account is open */
    int dir;                                /* <data>/state/network; -1: none */
    struct ledger_flow flows[LEDGER_FLOWS]; /* the thread's */
    struct denials *denials;                /* the thread's */
    _Atomic int64_t broker_ms;              /* when this broker came */
    struct network_counts counts[2];        /* egress, previews */
};

struct portwatch { /* portwatch.h */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool started, stop;
};

struct watch {
    pthread_t thread;
    bool started;
    int stop_fd; /* an eventfd: readable once the thread shall end */
};

#define PROOFS_MAX 4096

struct proof {
    char owner[OWNER_MAX];
    char digest[DIGEST_SIZE];
};

struct registries {
    char *default_host, *allow; /* what the operator said of them */
    unsigned timeout_s;
    pthread_mutex_t lock;
    struct proof *proofs; /* a ring of PROOFS_MAX; proof.h */
    size_t nproofs;       /* ever added */
    _Atomic unsigned transfers;
};

struct build; /* build.h */

/* While the daemon starts (absence.h). */
struct absence {
    bool rebooted;    /* the host, since the last daemon */
    int64_t ended_ms; /* when a teardown ended all that ran; 0: never */
};

struct core {
    char *run_dir, *data_name;
    struct absence absence;
    struct certs *certs;   /* NULL: no TLS */
    int broker_fd;         /* the link to warren-broker; -1: there is none, and no network */
    pthread_mutex_t told;  /* held while the broker is told: its last word is the latest; before
                              the table's lock */
    int archive_fd;        /* the program warren-archive, held open; 0 or below: it is not there */
    _Atomic bool stopping; /* give up waiting for a keeper that is away */
    struct store *store;
    struct table table;
    struct images images;
    struct blobs blobs;
    struct rooms rooms;
    uint64_t layer_bytes; /* core.h */
    unsigned layer_ratio;
    int uploads_dir; /* upload.h */
    struct teams teams;
    uint64_t memory_promise_mb; /* of all teams together; 0: no bound */
    struct templates templates;
    struct checkpoints checkpoints;
    struct archives archives;
    struct volumes volumes;
    char *api_names;   /* "" or names: alias.h */
    char *egress_open; /* "" or ranges: bucket.h */
    struct template_builds template_builds;
    struct secrets secrets;
    struct passes passes;
    struct aliases aliases;
    char token_secret[65]; /* hex; see token.h */
    struct keyring keyring;
    struct feed feed;
    struct replays replays;
    struct pool pool;
    struct timers timers;
    struct workers workers;
    struct usage usage;
    struct disk disk;
    struct ledger ledger;
    struct network_limits limits, limits_most; /* of a sandbox that says none; of all */
    struct watch watch;
    struct portwatch portwatch;
    struct registries registries;
    struct build *builds; /* that run; guarded by the table's lock, for the quota */
    _Atomic uint64_t builds_done, build_failures;
    _Atomic uint64_t creates, create_failures, execs, exec_failures, deletes, ooms;
    _Atomic uint64_t warm_creates, freezes;
    atomic_int whos; /* questions under way: who.h */
};

/* ---- core.c ---- */
int thread_start(pthread_t *ret_thread, void *(*fn)(void *), void *ctx, struct err *err);

/* ---- team.c, key.c, token.c, event.c ---- */
int teams_load(struct core *core, struct err *err);
void teams_done(struct teams *t);
int keyring_load(struct core *core, const char *first_key, struct err *err);
void keyring_done(struct keyring *k);
void keyring_drop(struct core *core, const char *owner); /* its keys are refused from now on */
int tokens_load(struct core *core, struct err *err);
int events_load(struct core *core, struct err *err);
void events_close(struct core *core);

/* ---- template.c, template_build.c ---- */
int templates_load(struct core *core, struct err *err);
void templates_stock(struct core *core); /* once the pool is there */
void templates_done(struct templates *t);
void templates_drop(struct core *core, const char *owner);
int template_builds_load(struct core *core, struct err *err);
void template_builds_stop(struct core *core);
void template_builds_drop(struct core *core, const char *owner);

/* ---- images.c, image_old.c, prune.c, layer.c ---- */
int images_load(struct core *core, struct err *err);
void images_done(struct images *im);
int images_adopt_old(struct core *core, struct err *err);
/* At start, with the sandboxes known: removes what an end left half made. */
int images_sweep(struct core *core, struct err *err);
bool image_tree_known(struct core *core, const char *tree);
/* Removes the tree's layer if no image and no sandbox needs it any more. */
void image_tree_release(struct core *core, const char *tree);

/* ---- blob.c, upload.c, registries.c ---- */
int blobs_open(struct core *core, const char *data_dir, struct err *err);
void blobs_close(struct core *core);
int blobs_each(struct core *core,
               int (*fn)(void *ctx, const char *digest, int64_t touched_ms, uint64_t size),
               void *ctx);
/* Downloads that were left for later; the bytes that gave back. */
uint64_t blobs_drop_partial(struct core *core);
int uploads_open(struct core *core, const char *data_dir, struct err *err);
void uploads_drop(struct core *core, const char *owner);
int registries_init(struct registries *r, const struct core_config *config, struct err *err);
void registries_done(struct registries *r);

/* ---- volume*.c ---- */
int volumes_load(struct core *core, struct err *err);
/* At start: makes true what the rows say. Then the thread that ends idle cells. */
int volumes_adopt(struct core *core, bool restored,
                  struct err *err); /* restored: limits are not there */
int volumes_start(struct core *core, struct err *err);
void volumes_stop(struct core *core);
void volumes_done(struct volumes *v);
/* With the table's lock held: the ids of a new sandbox's volumes; -ENOENT, volume_not_found. */
int volumes_resolve(struct core *core, const char *owner, struct sandbox_spec *spec,
                    struct err *err);
/* volumes_learn_sharing asks the keeper once whether sandboxes may share volumes; call it
 * without the lock. volumes_admit, with the lock: whether a sandbox that is about to run may
 * have its volumes; -EBUSY, volume_in_use. */
void volumes_learn_sharing(struct core *core);
struct box;
int volumes_admit(struct core *core, const struct box *b, struct err *err);
int64_t volumes_in_use_mb(struct core *core, const char *owner);
bool volumes_any(struct core *core, const char *owner);
/* Shows a running sandbox its volumes. */
int volumes_attach(struct core *core, const char *id, const struct sandbox_spec *spec,
                   struct err *err);
/* The server of a bucket that a cell sees has ended. */
void volumes_bucket_lost(struct core *core, const char *cell, const char *volume);
struct keeper_row;
/* The cells that came up before that moment (monotonic) and are not among those that run. */
void volumes_look(struct core *core, int64_t before_ms, const struct keeper_row *rows, size_t n);

/* ---- checkpoints.c, checkpoint_use.c ---- */
int checkpoints_load(struct core *core, struct err *err);
int checkpoints_adopt(struct core *core, struct err *err); /* at start: nobody's files go */
void checkpoints_done(struct checkpoints *cs);
/* With the table's lock held. */
bool checkpoints_tree_used(struct core *core, const char *tree);
/* The bytes of the owner's checkpoints on this host, each whole: nobody knows what they share. */
uint64_t checkpoints_bytes(struct core *core, const char *owner);
/* The files of a sandbox that does not run are those of a checkpoint from now on. */
int checkpoints_fill(struct core *core, const char *sandbox, const char *checkpoint,
                     uint64_t disk_bytes, struct err *err);

/* ---- archive.c, archive_sandbox.c ---- */
struct archive_config;
int archives_init(struct core *core, const struct archive_config *config, struct err *err);
void archives_done(struct archives *a);
int archives_load(struct core *core, struct err *err); /* after the checkpoints */
/* Its files are here, fetched if they were not, until checkpoints_unpin; who uses them asks for this first. */
int checkpoints_pin(struct core *core, const struct checkpoint *c, struct archive_busy **ret_pin,
                    struct err *err);
bool checkpoints_pinned(struct core *core, const char *id); /* it stays until nobody reads it */
void checkpoints_unpin(struct core *core, struct archive_busy *pin); /* NULL is fine */
/* Before it is removed: what of it is in object storage goes. */
int archives_forget(struct core *core, const struct checkpoint *c, struct err *err);
/* If there may be something to collect, that was not possible before. */
void archives_collect_later(struct core *core);
/* A held sandbox, before it is started: its files are here again. */
int archives_wake(struct core *core, struct box *b, struct err *err);
bool archives_needs(const struct sandbox *s, const char *checkpoint); /* it has no other files */
/* What archivings of a sandbox left that is gone: soon, and now. */
void archives_drop_later(struct core *core, const char *sandbox);
void archives_drop_of(struct core *core, const char *sandbox);

/* ---- sandbox.c, sandbox_create.c ---- */
/* One that is to change, held, if it has one of these versions (NULL: any) and is not being deleted. */
int sandbox_hold(struct core *core, const char *owner, const char *who, const char *versions,
                 struct box **ret_b, struct err *err);
/* The same for one whose files are to be read or replaced: it runs, is stopped or paused. */
int sandbox_hold_settled(struct core *core, const char *owner, const char *who, struct box **ret_b,
                         struct err *err);
/* Starts one that is stopped or paused, and held. */
int sandbox_start_held(struct core *core, struct box *b, struct err *err);
/* What its template has it do when it starts. */
int sandbox_boot(struct core *core, struct box *b, struct err *err);
/* Makes one from a checkpoint, whose tree is given; NULL: from an image. */
int sandbox_create_on(struct core *core, const char *owner, const struct sandbox_spec *spec,
                      const char *tree, struct sandbox *ret_s, struct err *err);

/* ---- network.c, resolv.c ---- */
/* Gives the broker a running sandbox's network, if it has one; takes it away; changes it. */
bool networks_has(const struct sandbox_spec *spec);
int networks_attach(struct core *core, const struct sandbox *s, struct err *err);
/* The same for a sandbox that was made ahead, whose sockets these are; taken, also on failure. */
int networks_attach_made(struct core *core, const struct sandbox *s, const int *fds,
                         struct err *err);
void networks_detach(struct core *core, const char *id);
int networks_change(struct core *core, const struct sandbox *s, const struct sandbox_spec *old,
                    unsigned changes, struct err *err);
/* A secret has another value, or none: those that are bound to it learn it. */
void networks_secret_changed(struct core *core, const char *owner, const char *name,
                             const char *secret);
void networks_point(struct core *core, const char *id); /* gives it a resolver, if it has none */
/* A message to the broker, with descriptors, which stay the caller's. */
int networks_send(const struct core *core, const void *msg, size_t size, const int *fds,
                  size_t nfds);
/* The same without a descriptor; 0 where there is no broker. */
int networks_tell(struct core *core, const void *msg, size_t size);

/* ---- secret.c, pass.c, alias.c ---- */
int secrets_load(struct core *core, const char *state_dir, struct err *err);
void secrets_done(struct secrets *s);
void secrets_drop(struct core *core, const char *owner);
int passes_load(struct core *core, struct err *err);
void passes_done(struct passes *p);
void passes_drop(struct core *core, const char *sandbox); /* it has ended */
int aliases_load(struct core *core, struct err *err);
void aliases_done(struct aliases *a);
void aliases_drop(struct core *core, const char *owner);
