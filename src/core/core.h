/* core - one daemon's world: its configuration and the nouns that live in it.
 *
 * Made once by warrend's main after the rights are dropped; handed to every request. The nouns
 * (sandbox, process, image, key, event) are functions over it. Nothing here knows of HTTP. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct core;

#define OWNER_MAX 64
#define OWNER_DEFAULT "default" /* the team that is always there */

struct archive_config;
#define REGISTRY_USUAL "docker.io" /* of names without a host, unless the operator says another */

struct core_config {
    const char *data_dir;      /* <data>/state/warren.db is ours; the rest is the keeper's */
    const char *data_name;     /* how people know it; NULL: as data_dir */
    const char *run_dir;       /* <run>/keeper.sock, <run>/cells/<id>/init.sock */
    const char *first_key;     /* NULL, or a key that must work (WARREN_API_KEY) */
    unsigned pool_size;        /* blank cells kept ready for the image asked for last; 0: none */
    int64_t usage_interval_ms; /* how often each sandbox's use is read; 0: only at its end */
    unsigned usage_keep_days;  /* 0: for ever */
    int archive_fd;            /* the program warren-archive (O_PATH), kept; 0 or below: none */
    const char *network_limits, *network_limits_most; /* as limits.h reads them; NULL: none */
    int broker_fd;              /* the link to warren-broker; 0 or below: none */
    uint64_t memory_promise_mb; /* the sum of running sandboxes' limits; 0: no bound */
    /* registries of images; the texts may be NULL */
    const char *default_registry; /* the host of names that have none; NULL or "none" */
    const char *registry_allow;   /* hosts that teams may use; none: every public one */
    unsigned registry_timeout_s;  /* of silence; 0: the usual */
    uint64_t layer_bytes;         /* the most that a layer unpacks to; 0: no bound */
    unsigned layer_ratio;         /* the most an archive holds, times its size; 0: no bound */
    const char *api_names;        /* of the API, commas between: nobody's to have; NULL: none */
    const char *egress_open;      /* ranges that the operator opened, for buckets; NULL: none */
    uint64_t disk_reserve_mb;     /* kept for sandboxes that run (disk.h); 0: the usual */
    bool share_volumes;           /* even where sockets in a volume lead to another sandbox */
    const struct archive_config *archive; /* archive.h; NULL: no object storage */
};

/* Opens the state, adopts what runs, finishes what was half done, starts the timers. The strings
 * of config are copied. */
int core_new(const struct core_config *config, struct core **ret_core, struct err *err);
void core_free(struct core *core); /* stops threads; sandboxes go on */
DEFINE_FREEP(struct core *, core_free)

/* A copy of the state for a backup, <data>/state/warren.db.copy; blocks for as long as that takes. */
int core_copy_state(struct core *core, struct err *err);
const char *core_run_dir(const struct core *core);
const char *core_data_name(const struct core *core);

struct core_counts {
    uint64_t creates, create_failures, execs, exec_failures, deletes, ooms;
    uint64_t builds, build_failures;
    uint64_t warm_creates; /* of the creates: from a cell that was ready */
    uint64_t freezes;
    struct {
        uint64_t sent_bytes, received_bytes, connections, denied;
    } egress, previews;  /* since the daemon's start; connections: or requests */
    unsigned states[16]; /* by enum sandbox_state */
    unsigned running, stopped, pool_ready, pool_size;
    uint64_t promised_memory_bytes, promised_cpu_millis; /* limits of those that run */
    uint64_t promised_disk_bytes, used_disk_bytes;       /* of all; used: as last read */
    size_t images, volumes, checkpoints;
};
void core_counts(struct core *core, struct core_counts *ret_counts);
void core_count_exec(struct core *core, int result); /* told by process.c */
