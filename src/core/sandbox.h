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
#include "core/boot.h"
#include "core/core.h"

enum sandbox_state {
    SANDBOX_CREATING,
    SANDBOX_RUNNING,
    SANDBOX_STOPPING,
    SANDBOX_STOPPED,
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
                     CAUSE_CRASHED, /* its init died by itself */
                     CAUSE_FAILED,  /* could not be made */
};
const char *sandbox_cause_name(enum sandbox_cause c);

enum sandbox_end { END_DELETE, END_STOP };

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
    char *template;                      /* the template it was made from; NULL: none */
    char template_id[ID_SIZE];           /* whose ready sandboxes would do; only while it is made */
    char image_owner[OWNER_MAX]; /* whose image it is; empty: the sandbox's owner; likewise */
    uint32_t cpu_millis;
    uint64_t memory_bytes, disk_bytes;
    uint32_t pids, nofile;
    struct pairs env, metadata;
    struct pairs image_env; /* the image's own: below env, and not changed by an update */
    int64_t timeout_ms, idle_timeout_ms; /* 0: none */
    enum sandbox_end on_timeout, on_idle;
    uint64_t revision; /* counts its updates; not the client's to say */
    struct boot boot;  /* the template's, as it was then */
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
};
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
    CHANGE_NAME = 1,
    CHANGE_METADATA = 2,
    CHANGE_ENV = 4,
    CHANGE_TIMEOUT = 8, /* counted from now */
    CHANGE_ON_TIMEOUT = 16,
    CHANGE_IDLE = 32,
    CHANGE_ON_IDLE = 64,
    CHANGE_NETWORK = 256,
    CHANGE_LIMITS = 128, /* cpu_millis, memory_bytes, disk_bytes, pids; 0 leaves one as it is */
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

static inline int sandbox_delete(struct core *core, const char *owner, const char *who,
                                 struct err *err)
{
    return sandbox_delete_if(core, owner, who, NULL, err);
}

/* The ids of all that are not gone, whoever owns them; free(*ret_ids). */
int sandbox_ids(struct core *core, char (**ret_ids)[ID_SIZE], size_t *ret_n);

/* A request is at work in a sandbox: it counts as active until sandbox_leave. Fills *ret_s
 * (the caller's, sandbox_done) and refuses one that is not running. */
int sandbox_enter(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                  struct err *err);
void sandbox_leave(struct core *core, const char *id);

/* A process of it was killed for want of memory: told by process.c. */
void sandbox_note_oom(struct core *core, const char *id);

struct keeper_usage;
int sandbox_usage(struct core *core, const char *owner, const char *who,
                  struct keeper_usage *ret_usage, struct err *err);
