/* keeper - the messages between warrend and warren-keeper.
 *
 * One SOCK_SEQPACKET connection to <run>/keeper.sock carries one operation: one request
 * datagram, one answer datagram (WATCH answers forever). Both are a fixed struct, so that the
 * privileged side parses nothing: it checks the size, the op, and each member against its
 * shape. Strings are NUL-terminated within their arrays. A dead keeper shows as a reset
 * connection, never as a wait. */
#pragma once
#include <stdint.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/id.h"

/* In the run directory: when a teardown ended all sandboxes, in milliseconds since 1970. */
#define KEEPER_ENDED_FILE "ended"

/* The name of the control group of all cells, where nobody chose one. Instances side by side must not meet in the
 * cgroup tree: the run directory (absolute) is theirs alone. Returns as snprintf. */
static inline int keeper_cgroup_name(const char *run, char *out, size_t size)
{
    return snprintf(out, size, "warren-%08x", hash_short(run));
}

#define KEEPER_VERSION 7
#define KEEPER_IMAGE_SIZE 65 /* an image's tree: 64 hex digits, the name of its directory */
/* The tree of a cell without an image: an empty directory, which no IMAGE_LIST tells of. */
#define KEEPER_IMAGE_NONE "0000000000000000000000000000000000000000000000000000000000000000"
#define KEEPER_MSG_SIZE 400
#define KEEPER_WHAT_SIZE 40
#define KEEPER_TEXT_SIZE 200
#define KEEPER_PATH_SIZE 256 /* where a volume is shown in a cell */
#define KEEPER_STEER_FDS 7   /* with STEER: sockets, and what leads to them (kernel/steer.h) */
#define KEEPER_SOCKETS 2     /* with SOCKETS_OF: TCP over IPv4, and over IPv6 where there is any */

enum keeper_op {
    KEEPER_MAKE = 1,  /* id, image, limits: storage if it is not there yet, then a running cell;
                          with a point, its processes are those of that checkpoint's memory */
    KEEPER_LIMITS,    /* id, limits: of a running cell; 0 leaves a limit as it is */
    KEEPER_STOP,      /* id: kill everything in it; its storage stays */
    KEEPER_DELETE,    /* id: kill everything, remove its storage; done twice is fine */
    KEEPER_FREEZE,    /* id: stop its workload's clock */
    KEEPER_THAW,      /* id */
    KEEPER_STAT,      /* id: usage; with a point, also whether its files changed since */
    KEEPER_LIST,      /* answers one datagram a cell (running or only stored), then one with OK */
    KEEPER_WATCH,     /* answers one datagram whenever a cell's init dies by itself */
    KEEPER_LAYER_PUT, /* image, parent (or ""), bounds (limits.disk_bytes, ratio; 0: none), and an fd
                          to read a layer from: makes a new tree */
    KEEPER_IMAGE_RM,  /* image */
    KEEPER_IMAGE_LIST, /* one datagram an image, then OK */
    KEEPER_PROBE,      /* what this host offers: answers in `probe` */
    KEEPER_DIFF,       /* id, and an fd to write its changes to as a layer; frozen meanwhile */
    KEEPER_SPLIT,      /* ratio, an fd to read an image archive from, one to write its members to */
    KEEPER_SOCKETS_OF, /* id: answers with unconnected sockets of its network namespace */
    KEEPER_VOLUME_PUT, /* volume, limits.disk_bytes: made if it is not there, and limited to that */
    KEEPER_VOLUME_RM,  /* volume: its files go; done twice is fine */
    KEEPER_VOLUME_STAT, /* volume: usage.disk_bytes */
    KEEPER_VOLUME_LIST, /* one datagram a volume, its id in `id`, then OK */
    KEEPER_ATTACH, /* id, volume, path, read_only: shows it in a running cell; done twice is fine */
    KEEPER_STEER,  /* id: answers with KEEPER_STEER_FDS: the way out of its network namespace */
    KEEPER_CHANGES,  /* id, image, and an fd to write its changed files' names to (unpack.h) */
    KEEPER_PROGRAMS, /* id, and an fd to write struct keeper_program to, each one it ran */
    KEEPER_POINT_PUT, /* id, point, flags: its files as they are now, frozen for a moment if it runs */
    KEEPER_POINT_RM,   /* point: files and memory; done twice is fine */
    KEEPER_POINT_LIST, /* one datagram a checkpoint, its id in `id`, then OK */
    KEEPER_BOX_PUT, /* id, point, flags, limits.disk_bytes: its storage is what the point has; must not run */
    /* volume, point, and an fd, a memory file of the ids (ID_SIZE each) of cells that see it: its files
     * as they are now; those stand still for a moment. */
    KEEPER_VOLUME_POINT_PUT,
    KEEPER_VOLUME_POINT_RM,   /* point; done twice is fine */
    KEEPER_VOLUME_POINT_LIST, /* as POINT_LIST */
    KEEPER_VOLUME_RESTORE, /* volume, point, limits.disk_bytes: its files are the point's; a volume
                                 that is not there is made; no cell may see it */
    KEEPER_POINT_READ, /* point, flags, and an fd to write all of its files, or memory, to (unpack.h) */
    KEEPER_POINT_LAY, /* point, flags, limits.disk_bytes, and an fd to read what POINT_READ wrote: a new one */
    KEEPER_COMPARE, /* id against point, on image; an fd to read a query from, one to write changes to;
                       flags: enum keeper_compare_flag */
    /* id, volume, path, read_only, and an fd with a struct bucket_config (wire/bucket.h): shows a bucket
     * in a running cell; one that is shown there already is left alone. */
    KEEPER_ATTACH_BUCKET,
    KEEPER_ROOM, /* how much room there is: answers in `room`; cheap enough to ask often */
    KEEPER_OPS_END,
};

struct keeper_limits {
    uint64_t memory_bytes;
    uint64_t disk_bytes;
    uint32_t cpu_millis; /* 1000 is one cpu */
    uint32_t pids;
};

enum keeper_point_flag {
    KEEPER_POINT_MEMORY = 1, /* and its memory, of the same moment; it must run */
    KEEPER_POINT_END = 2, /* with MEMORY: the cell is ended and never goes on after that moment */
};

enum keeper_make_flag {
    KEEPER_MAKE_APART =
        16 << 8, /* several volumes will be shown in it: files of one stay apart from another's */
};

enum keeper_compare_flag {
    KEEPER_COMPARE_BOX = 1 << 8,        /* id is a box, else a point */
    KEEPER_COMPARE_BOX_BEFORE = 2 << 8, /* point is one */
};

enum keeper_box_flag {
    KEEPER_BOX_AHEAD =
        4 << 8,               /* it may run: all is made ready that may fail, and nothing changes */
    KEEPER_BOX_MADE = 8 << 8, /* AHEAD was asked before, for this point: what it made is used */
};

struct keeper_request {
    uint32_t version;
    uint32_t op;
    uint32_t flags; /* POINT_PUT: enum keeper_point_flag; MAKE, BOX_PUT, COMPARE: their own */
    char id[ID_SIZE];
    char image[KEEPER_IMAGE_SIZE];
    char parent[KEEPER_IMAGE_SIZE]; /* LAYER_PUT: the tree it lies on, or "" */
    struct keeper_limits limits;
    char volume[ID_SIZE];
    char point[ID_SIZE];
    char path[KEEPER_PATH_SIZE]; /* ATTACH: absolute, as the cell sees it */
    uint32_t read_only;
    uint32_t ratio; /* LAYER_PUT, SPLIT: how many times its own size an archive may hold; 0: any */
};

struct keeper_usage {
    uint64_t memory_bytes;
    uint64_t memory_peak_bytes;
    uint64_t cpu_us;
    uint64_t disk_bytes;
    uint64_t oom_kills;
    uint32_t pids;
};

#define KEEPER_PROGRAMS_MAX 256 /* of one cell */
struct keeper_program {
    uint64_t count;
    int64_t first_ms, last_ms;
    char path[128]; /* what was executed, as the caller wrote it */
};

enum keeper_probe_flag {
    KEEPER_HAS_CGROUP2 = 1,       /* controllers in the unified hierarchy */
    KEEPER_HAS_CGROUP1 = 2,       /* controllers in v1 hierarchies */
    KEEPER_HAS_IDMAP = 4,         /* id-mapped mounts as overlay layers */
    KEEPER_HAS_QUOTA = 8,         /* a hard disk limit */
    KEEPER_HAS_POOL_IMAGE = 16,   /* storage is a btrfs image file of our own */
    KEEPER_HAS_SIMPLE_QUOTA = 32, /* btrfs simple quotas rather than full ones */
    KEEPER_HAS_MEMORY = 64,       /* each controller found */
    KEEPER_HAS_CPU = 128,
    KEEPER_HAS_PIDS = 256,
    KEEPER_HAS_FREEZER = 512,
    KEEPER_HAS_KILL = 1024,          /* cgroup.kill */
    KEEPER_HAS_PROGRAMS = 2048,      /* the kernel counts what cells run */
    KEEPER_HAS_MEMORY_IMAGES = 4096, /* a CRIU that works: checkpoints with memory */
    KEEPER_HAS_FENCE = 8192,         /* unix sockets cannot connect two cells */
};

struct keeper_room {                      /* in bytes; 0: not known */
    uint64_t pool_bytes, pool_free_bytes; /* free: for data */
    /* of the pool: given to data and to metadata, and used of that; where both share their pieces,
     * all counts as data */
    uint64_t data_bytes, data_used_bytes;
    uint64_t metadata_bytes, metadata_used_bytes;
    uint64_t metadata_kept_bytes;                          /* by the kernel, for its own work */
    uint64_t unallocated_bytes;                            /* given to neither yet */
    uint64_t cells_memory_bytes, cells_memory_limit_bytes; /* of all cells; limit 0: none */
};

struct keeper_reply {
    uint32_t version;
    int32_t result;              /* 0, or -errno: then what and msg say why */
    char what[KEEPER_WHAT_SIZE]; /* stable name of the failure, or empty */
    char msg[KEEPER_MSG_SIZE];
    uint32_t more;                 /* 1: another datagram follows (LIST, IMAGE_LIST, WATCH) */
    char id[ID_SIZE];              /* LIST, WATCH */
    char image[KEEPER_IMAGE_SIZE]; /* LIST, IMAGE_LIST */
    uint32_t running;              /* LIST: its init is alive */
    uint32_t frozen;               /* LIST: by KEEPER_FREEZE */
    uint32_t changed; /* STAT with a point: whether it may have other files by now; 1 if unknown */
    uint64_t size_bytes;             /* LAYER_PUT, POINT_LAY: what the files take */
    char diff_id[KEEPER_IMAGE_SIZE]; /* LAYER_PUT, POINT_LAY: sha256 of it without its packing */
    struct keeper_usage
        usage; /* STAT; STOP, DELETE, WATCH, POINT_PUT with END: the last of one that ran */
    uint64_t frozen_us;                 /* POINT_PUT: how long it stood still */
    uint64_t memory_bytes;              /* POINT_PUT, POINT_LIST: what its memory takes; 0: none */
    uint32_t probe;                     /* PROBE: enum keeper_probe_flag */
    struct keeper_room room;            /* PROBE, ROOM */
    char memory_text[KEEPER_TEXT_SIZE]; /* PROBE: which CRIU, or why memory cannot be kept */
    uint64_t init_id;                   /* PROBE: another warren-init has another one */
    char volume[ID_SIZE]; /* WATCH: the server of that bucket in cell `id` is gone, not the cell */
};
