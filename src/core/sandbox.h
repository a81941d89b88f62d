/* sandbox - an isolated computer: what a client asked for, what became of it.
 *
 * Callers get values (struct sandbox), never pointers into the table; the table's lock is held
 * for memory only, and one operation at a time changes a sandbox (the others wait for it or get
 * `sandbox_busy`). The database is written before and after each step that a crash could cut,
 * so that start-up knows what to finish. `who` is the id or the name; a caller of another owner
 * gets sandbox_not_found. Calls block for as long as the keeper takes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "core/autosave.h"
#include "core/boot.h"
#include "core/core.h"
#include "core/limits.h"

enum sandbox_state {
    SANDBOX_CREATING,
    SANDBOX_RUNNING,
    SANDBOX_FROZEN, /* running, and its work stands still: shown, never stored (frozen_ms) */
    SANDBOX_STOPPING,
    SANDBOX_STOPPED,
    SANDBOX_PAUSING,
    SANDBOX_PAUSED,   /* its processes are on disk (pause.h) */
    SANDBOX_ARCHIVED, /* stopped or paused, and its files are elsewhere: shown, never stored */
    SANDBOX_RESUMING, /* in records only: to callers it is paused until it runs */
    SANDBOX_DELETING,
    SANDBOX_GONE, /* kept as a record of how it ended */
};
const char *sandbox_state_name(enum sandbox_state s);
int sandbox_state_parse(const char *name, enum sandbox_state *ret_s); /* -EINVAL */

enum sandbox_cause { /* why it stopped or ended */
                     CAUSE_NONE,
                     CAUSE_STOPPED, /* asked for */
                     CAUSE_DELETED, /* asked for */
                     CAUSE_TIMEOUT,
                     CAUSE_IDLE,
                     CAUSE_CRASHED,  /* its init died by itself */
                     CAUSE_FAILED,   /* could not be made */
                     CAUSE_SHUTDOWN, /* all sandboxes of the daemon were ended */
                     CAUSE_REBOOT,   /* the host was restarted */
};
const char *sandbox_cause_name(enum sandbox_cause c);
bool sandbox_cause_died(enum sandbox_cause c); /* the sandbox ended without anybody asking */

enum sandbox_end { /* what a time-out does */
                   END_DELETE,
                   END_STOP,
                   END_PAUSE,      /* to disk, with its memory; where that cannot be: stop */
                   END_CHECKPOINT, /* take one, then stop */
};
extern const char *const sandbox_ends[]; /* their names; NULL-terminated */

enum sandbox_preview {
    PREVIEW_PUBLIC,  /* who knows its id may reach its ports */
    PREVIEW_PRIVATE, /* only with a key or a token */
};

enum sandbox_wake {
    WAKE_AUTO,   /* a request starts it again if it fell asleep: by idleness or timeout */
    WAKE_ALWAYS, /* however it was stopped */
    WAKE_NEVER,
};

enum sandbox_restart { /* whether it is started again when nobody stopped it (restart.h) */
                       RESTART_NO,
                       RESTART_ON_BOOT, /* after a restart of the host, or a shutdown of all */
                       RESTART_ALWAYS,  /* and after a crash */
};

/* A list of "NAME=value" or of name/value pairs, as text; owned by whoever holds the struct. */
struct pairs {
    char **names;
    char **values;
    size_t n;
};
int pairs_add(struct pairs *p, const char *name, const char *value); /* replaces a same name */
const char *pairs_get(const struct pairs *p, const char *name);
int pairs_copy(const struct pairs *from, struct pairs *ret_to);
void pairs_done(struct pairs *p);
char *pairs_text(const struct pairs *p);               /* as JSON; NULL: no memory */
int pairs_read(const char *text, struct pairs *ret_p); /* -EPROTO; adds to what is there */

#define MOUNTS_MAX 16       /* volumes of one sandbox */
#define MOUNT_PATH_SIZE 256 /* and the NUL */

/* A volume that a sandbox sees. */
struct sandbox_mount {
    char volume[ID_SIZE];        /* its id: looked up when the sandbox is made */
    char name[NAME_MAX_LEN + 1]; /* its name; from a client, its id will do */
    char path[MOUNT_PATH_SIZE];  /* where; cleaned by spec_add_mount */
    bool read_only;
};

struct sandbox_spec {
    char *image, *name, *user, *workdir; /* NULL where not given */
    char *network;                       /* what it may reach (network.h); NULL: nothing */
    char *bindings;                      /* secrets its requests carry (grant.h); NULL: none */
    struct network_limits network_limits;
    char *template;              /* the template it was made from; NULL: none */
    char template_id[ID_SIZE];   /* whose ready sandboxes would do; only while it is made */
    char image_owner[OWNER_MAX]; /* whose image it is; empty: the sandbox's owner; likewise */
    uint32_t cpu_millis;
    uint64_t memory_bytes, disk_bytes;
    uint32_t pids, nofile;
    struct pairs env, metadata;
    struct pairs
        notes; /* what dialects remember of it, each by names of its own; no client sees them */
    struct pairs image_env; /* the image's own: below env, and not changed by an update */
    int64_t timeout_ms, idle_timeout_ms; /* 0: none */
    enum sandbox_end on_timeout, on_idle;
    int64_t freeze_after_ms; /* of idleness; 0: never */
    struct autosave autosave;
    enum sandbox_preview preview;
    enum sandbox_wake wake;
    enum sandbox_restart restart;
    uint64_t revision;        /* counts its updates; not the client's to say */
    struct boot boot;         /* the template's, as it was then */
    char checkpoint[ID_SIZE]; /* its files were last the same as that one's; "": never */
    char paused[ID_SIZE];     /* whose memory it goes on from when it next runs; "": none */
    bool archived;            /* stopped, and it has no files here: they are that checkpoint's */
    char origin[ID_SIZE];     /* the sandbox whose checkpoint it was made from; "": none */
    struct sandbox_mount *mounts;
    size_t n_mounts;
};
void sandbox_spec_init(struct sandbox_spec *spec); /* the documented defaults */
void sandbox_spec_done(struct sandbox_spec *spec);
/* Adds a volume by name or id; -EINVAL, invalid_field, or -ENOMEM. */
int spec_add_mount(struct sandbox_spec *spec, const char *volume, const char *path, bool read_only,
                   struct err *err);

struct sandbox {
    char id[ID_SIZE];
    const char *root; /* NULL, or the directory that is all its files are: a volume's cell */
    char owner[OWNER_MAX];
    enum sandbox_state state;
    enum sandbox_cause cause;
    struct sandbox_spec spec;
    int64_t created_ms, started_ms, stopped_ms, expires_ms, last_active_ms, ended_ms; /* 0: null */
    int64_t frozen_ms; /* since when its work stands still; 0: it does not */
    int64_t leased_ms; /* it counts as active until then; 0: nobody holds a lease */
};
/* Its state as users see it. */
enum sandbox_state sandbox_shown(const struct sandbox *s);
void sandbox_done(struct sandbox *s);

#define SANDBOX_VERSION_SIZE 25
/* A text that changes whenever the sandbox does; its last use is no change. -ENOMEM. */
int sandbox_version(const struct sandbox *s, char out[SANDBOX_VERSION_SIZE]);

/* Takes nothing: spec stays the caller's. *ret_s is running when this returns 0. */
int sandbox_create(struct core *core, const char *owner, const struct sandbox_spec *spec,
                   struct sandbox *ret_s, struct err *err);
/* -ENOENT with what sandbox_not_found, or sandbox_gone and *ret_s filled (state SANDBOX_GONE,
 * cause, ended_ms; the caller still calls sandbox_done). */
int sandbox_get(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                struct err *err);

struct sandbox_filter {
    unsigned states;       /* bit per enum sandbox_state; 0: all but GONE */
    const char *name;      /* NULL: any */
    const char *template;  /* made from this one, or from the image of that name; NULL: any */
    int64_t started_ms;    /* not before this */
    struct pairs metadata; /* all must match; borrowed */
    bool ascending;
    unsigned limit;
    const char *cursor; /* NULL, or what an earlier list gave */
};
struct sandbox_list {
    struct sandbox *items;
    size_t n;
    char *next_cursor; /* NULL: no more */
};
int sandbox_list(struct core *core, const char *owner, const struct sandbox_filter *filter,
                 struct sandbox_list *ret_list, struct err *err);
void sandbox_list_done(struct sandbox_list *list);

/* Which members of spec an update carries. */
enum sandbox_change {
    CHANGE_NAME = 1 << 0,
    CHANGE_METADATA = 1 << 1,
    CHANGE_ENV = 1 << 2,
    CHANGE_TIMEOUT = 1 << 3, /* counted from now */
    CHANGE_ON_TIMEOUT = 1 << 4,
    CHANGE_IDLE = 1 << 5,
    CHANGE_ON_IDLE = 1 << 6,
    CHANGE_LIMITS = 1 << 7, /* cpu_millis, memory_bytes, disk_bytes, pids; 0 leaves one as it is */
    CHANGE_NETWORK = 1 << 8,
    CHANGE_BINDINGS = 1 << 9,
    CHANGE_NETWORK_LIMITS = 1 << 10,
    CHANGE_PREVIEW = 1 << 11,
    CHANGE_WAKE = 1 << 12,
    CHANGE_FREEZE = 1 << 14,
    CHANGE_AUTOSAVE = 1 << 15,
    CHANGE_RESTART = 1 << 16,
    CHANGE_NOTES = 1 << 17,
    CHANGE_CUT = 1 << 13, /* no member: what is open must hold under the new network, too */
};
/* Each of these has a form with `_if`, which acts only on a sandbox that still has one of these
 * versions (with spaces between; NULL: any) and else fails with precondition_failed. */
int sandbox_update_if(struct core *core, const char *owner, const char *who, const char *versions,
                      const struct sandbox_spec *spec, unsigned changes, struct sandbox *ret_s,
                      struct err *err);
int sandbox_stop_if(struct core *core, const char *owner, const char *who, const char *versions,
                    struct sandbox *ret_s, struct err *err);
int sandbox_start_if(struct core *core, const char *owner, const char *who, const char *versions,
                     struct sandbox *ret_s, struct err *err);
/* To paused, with its processes; -EBUSY, cannot_dump: says which resource of which process, and it goes
 * on. Start resumes it, stop forgets the memory. */
int sandbox_pause_if(struct core *core, const char *owner, const char *who, const char *versions,
                     struct sandbox *ret_s, struct err *err);
/* The same as start; without `memory` a paused one forgets its processes and boots anew. */
int sandbox_resume(struct core *core, const char *owner, const char *who, bool memory,
                   struct sandbox *ret_s, struct err *err);
int sandbox_delete_if(struct core *core, const char *owner, const char *who, const char *versions,
                      struct err *err);

static inline int sandbox_update(struct core *core, const char *owner, const char *who,
                                 const struct sandbox_spec *spec, unsigned changes,
                                 struct sandbox *ret_s, struct err *err)
{
    return sandbox_update_if(core, owner, who, NULL, spec, changes, ret_s, err);
}

static inline int sandbox_stop(struct core *core, const char *owner, const char *who,
                               struct sandbox *ret_s, struct err *err)
{
    return sandbox_stop_if(core, owner, who, NULL, ret_s, err);
}

static inline int sandbox_start(struct core *core, const char *owner, const char *who,
                                struct sandbox *ret_s, struct err *err)
{
    return sandbox_start_if(core, owner, who, NULL, ret_s, err);
}

static inline int sandbox_pause(struct core *core, const char *owner, const char *who,
                                struct sandbox *ret_s, struct err *err)
{
    return sandbox_pause_if(core, owner, who, NULL, ret_s, err);
}

static inline int sandbox_delete(struct core *core, const char *owner, const char *who,
                                 struct err *err)
{
    return sandbox_delete_if(core, owner, who, NULL, err);
}

/* The ids of all that are not gone, whoever owns them; free(*ret_ids). */
int sandbox_ids(struct core *core, char (**ret_ids)[ID_SIZE], size_t *ret_n);

/* A request is at work in a sandbox: it counts as active until sandbox_leave, and its work goes on if
 * it stood still. Fills *ret_s (the caller's, sandbox_done). One that is paused is resumed first, which may
 * take as long as that takes, unless it says never (spec.wake); one that is stopped is refused. */
int sandbox_enter(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                  struct err *err);
/* The same for those who only look on, or whose rights are not known yet: wakes nothing. */
int sandbox_enter_awake(struct core *core, const char *owner, const char *who,
                        struct sandbox *ret_s, struct err *err);
void sandbox_leave(struct core *core, const char *id);

/* The same for a request from outside, which may find it asleep: then it is started first, if it
 * says so (spec.wake), and *ret_woken is true. Blocks for as long as that takes. */
int sandbox_wake(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                 bool *ret_woken, struct err *err);

/* A process of it was killed for want of memory: told by process.c. */
void sandbox_note_oom(struct core *core, const char *id);

/* What it has used, and uses now. */
struct sandbox_usage {
    uint64_t cpu_us, memory_bytes, memory_peak_bytes, disk_bytes, oom_kills;
    uint32_t pids;
};
int sandbox_usage(struct core *core, const char *owner, const char *who,
                  struct sandbox_usage *ret_usage, struct err *err);
