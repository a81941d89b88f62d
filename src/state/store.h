/* store - what must outlive the daemon: sandboxes, images, keys, events.
 *
 * One interface in nouns; an engine (sqlite*.c) keeps the rows. Rows are plain text and numbers:
 * what a state or a spec means is the caller's business, except that a sandbox with an ended_ms
 * is a record of one that is gone. Safe from any thread; every call is a short blocking write or
 * read. A commit survives the daemon's death at once, and the machine's within seconds. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct store;

/* `dir` is made if it is missing. Only one process at a time may have it open. */
int store_open(const char *dir, struct store **ret_store, struct err *err);
void store_close(struct store *store);
/* A copy of all of it as it is at this moment, warren.db.copy beside it; an earlier one goes. Others read
 * and write meanwhile. */
int store_copy(struct store *store, struct err *err);
DEFINE_FREEP(struct store *, store_close)

/* Moves the write-ahead log into the database when it has grown. Slow: call from a thread that
 * may wait. */
int store_tidy(struct store *store, struct err *err);

/* ---- sandboxes ---- */

struct store_sandbox {
    const char *id, *owner;
    const char *name; /* NULL: none; unique per owner among those that are not gone */
    const char *state, *cause;
    const char *tree; /* the image tree it was made from */
    const char *spec;
    int64_t created_ms, started_ms, stopped_ms, expires_ms, last_active_ms, ended_ms;
};

/* Called with a row that is valid until it returns; anything but 0 ends the walk and is its
 * result. Must not call the store again. */
typedef int store_sandbox_fn(void *ctx, const struct store_sandbox *row);

int store_sandbox_add(struct store *store, const struct store_sandbox *row, struct err *err);
/* All columns but id, owner and created_ms. Both give -EEXIST for a taken name. */
int store_sandbox_save(struct store *store, const struct store_sandbox *row, struct err *err);
/* Only state, cause and the times: the cheap one. */
int store_sandbox_mark(struct store *store, const struct store_sandbox *row, struct err *err);
int store_sandbox_active(struct store *store, const char *id, int64_t last_active_ms,
                         struct err *err);
int store_sandbox_live(struct store *store, store_sandbox_fn *fn, void *ctx, struct err *err);
/* The newest record of one that is gone, by id or else by name; calls fn at most once. owner NULL:
 * whoever's, by its id. */
int store_sandbox_gone(struct store *store, const char *owner, const char *who,
                       store_sandbox_fn *fn, void *ctx, struct err *err);
/* Records in order of (created_ms, id), from behind that place. */
int store_sandbox_gone_list(struct store *store, const char *owner, bool ascending,
                            int64_t after_ms, const char *after_id, store_sandbox_fn *fn, void *ctx,
                            struct err *err);
/* Forget the records that ended before that moment, and the oldest beyond `keep`. */
int store_sandbox_prune(struct store *store, int64_t ended_before_ms, unsigned keep,
                        struct err *err);

/* ---- images ---- */

/* A layer, by its chain. */
struct store_layer {
    const char *chain, *parent, *diff_id, *tree, *digest, *media_type, *owner;
    int64_t compressed_bytes, size_bytes, kept, created_ms;
};
typedef int store_layer_fn(void *ctx, const struct store_layer *row);
int store_layer_put(struct store *store, const struct store_layer *row, struct err *err);
/* Only while its tree is this one: another may have been made in its place meanwhile. */
int store_layer_remove(struct store *store, const char *chain, const char *tree, struct err *err);
int store_layer_each(struct store *store, store_layer_fn *fn, void *ctx, struct err *err);

/* What an image is, by its manifest's digest. */
struct store_content {
    const char *digest, *chain, *manifest, *config;
    int64_t created_ms;
};
typedef int store_content_fn(void *ctx, const struct store_content *row);
int store_content_put(struct store *store, const struct store_content *row, struct err *err);
int store_content_remove(struct store *store, const char *digest, struct err *err);
int store_content_each(struct store *store, store_content_fn *fn, void *ctx, struct err *err);

/* What owners call it. */
struct store_name {
    const char *owner, *name, *digest;
    int64_t public, created_ms;
};
typedef int store_name_fn(void *ctx, const struct store_name *row);
int store_name_put(struct store *store, const struct store_name *row, struct err *err);
int store_name_remove(struct store *store, const char *owner, const char *name, struct err *err);
int store_name_each(struct store *store, store_name_fn *fn, void *ctx, struct err *err);

/* Images of a state from before there were layers: read once, then removed. */
struct store_image {
    const char *name, *tree, *digest;
    int64_t size_bytes, created_ms;
};
typedef int store_image_fn(void *ctx, const struct store_image *row);
int store_image_each(struct store *store, store_image_fn *fn, void *ctx, struct err *err);
int store_image_remove(struct store *store, const char *name, struct err *err);

/* ---- keys ---- */

struct store_key {
    const char *id, *owner, *name, *role;
    const char *hash; /* hex; never the key itself */
    int64_t created_ms, last_used_ms;
};
typedef int store_key_fn(void *ctx, const struct store_key *row);

int store_key_add(struct store *store, const struct store_key *row, struct err *err);
int store_key_used(struct store *store, const char *id, int64_t last_used_ms, struct err *err);
int store_key_role(struct store *store, const char *id, const char *role, struct err *err);
int store_key_remove(struct store *store, const char *id, struct err *err);
int store_key_each(struct store *store, store_key_fn *fn, void *ctx, struct err *err);

/* ---- teams ---- */

struct store_team {
    const char *name;
    int64_t created_ms;
    int64_t sandboxes, cpu_millis, memory_mb, disk_mb; /* the quotas; -1: none */
};
typedef int store_team_fn(void *ctx, const struct store_team *row);

int store_team_put(struct store *store, const struct store_team *row, struct err *err);
/* And its keys, events and records: a later team of that name is another one. */
int store_team_remove(struct store *store, const char *name, struct err *err);
int store_team_each(struct store *store, store_team_fn *fn, void *ctx, struct err *err);

/* ---- templates ---- */

struct store_template {
    const char *owner, *name, *id, *spec, *ports;
    bool public;
    int64_t warm, created_ms, updated_ms;
};
typedef int store_template_fn(void *ctx, const struct store_template *row);

int store_template_put(struct store *store, const struct store_template *row, struct err *err);
int store_template_remove(struct store *store, const char *owner, const char *name,
                          struct err *err);
int store_template_each(struct store *store, store_template_fn *fn, void *ctx, struct err *err);

/* ---- volumes ---- */

struct store_volume {
    const char *id, *owner, *name, *bucket; /* bucket: "" or its text */
    int64_t size_bytes, created_ms;
};
typedef int store_volume_fn(void *ctx, const struct store_volume *row);

int store_volume_put(struct store *store, const struct store_volume *row, struct err *err);
int store_volume_remove(struct store *store, const char *id, struct err *err);
/* In order of creation; must not call the store from fn. */
int store_volume_each(struct store *store, store_volume_fn *fn, void *ctx, struct err *err);

struct store_volume_checkpoint {
    const char *id, *owner, *volume, *name, *comment;
    int64_t created_ms, bytes;
};
typedef int store_volume_checkpoint_fn(void *ctx, const struct store_volume_checkpoint *row);

int store_volume_checkpoint_put(struct store *store, const struct store_volume_checkpoint *row,
                                struct err *err);
int store_volume_checkpoint_remove(struct store *store, const char *id, struct err *err);
int store_volume_checkpoint_each(struct store *store, store_volume_checkpoint_fn *fn, void *ctx,
                                 struct err *err);

/* ---- checkpoints ---- */

struct store_checkpoint {
    const char *id, *owner, *sandbox, *parent, *name, *comment, *metadata, *reason, *tree, *spec;
    int64_t created_ms, bytes;
    int64_t memory_bytes; /* 0: files only */
};
typedef int store_checkpoint_fn(void *ctx, const struct store_checkpoint *row);

int store_checkpoint_put(struct store *store, const struct store_checkpoint *row, struct err *err);
int store_checkpoint_remove(struct store *store, const char *id, struct err *err);
/* In order of creation; must not call the store from fn. */
int store_checkpoint_each(struct store *store, store_checkpoint_fn *fn, void *ctx, struct err *err);

/* ---- archives of checkpoints ---- */

struct store_archive {
    const char *checkpoint, *manifest;
    int64_t archived_ms, bytes, away;
};
typedef int store_archive_fn(void *ctx, const struct store_archive *row);

int store_archive_put(struct store *store, const struct store_archive *row, struct err *err);
int store_archive_remove(struct store *store, const char *checkpoint, struct err *err);
int store_archive_each(struct store *store, store_archive_fn *fn, void *ctx, struct err *err);

/* ---- secrets ---- */

struct store_secret {
    const char *id, *owner, *name;
    int64_t version, created_ms, updated_ms;
    const char *metadata; /* a JSON object */
    const char *value;    /* sealed, as text */
};
typedef int store_secret_fn(void *ctx, const struct store_secret *row);

int store_secret_put(struct store *store, const struct store_secret *row, struct err *err);
int store_secret_remove(struct store *store, const char *id, struct err *err);
/* In order of creation; must not call the store from fn. */
int store_secret_each(struct store *store, store_secret_fn *fn, void *ctx, struct err *err);

/* ---- core/lease.h ---- */

struct store_lease {
    const char *id, *sandbox, *reason;
    int64_t created_ms, until_ms;
};
typedef int store_lease_fn(void *ctx, const struct store_lease *row);

int store_lease_put(struct store *store, const struct store_lease *row, struct err *err);
int store_lease_remove(struct store *store, const char *id, struct err *err);
int store_lease_prune(struct store *store, int64_t before_ms, struct err *err); /* that are over */
/* In order of creation. fn returns 0 to go on. */
int store_lease_each(struct store *store, store_lease_fn *fn, void *ctx, struct err *err);

/* ---- who may come in (core/pass.h), and names of clients' own (core/alias.h) ---- */

struct store_pass {
    const char *id, *sandbox, *owner;
    const char *hash; /* hex; never the token itself */
    const char *data; /* NULL: none */
    int64_t port, created_ms, expires_ms;
};
typedef int store_pass_fn(void *ctx, const struct store_pass *row);

int store_pass_put(struct store *store, const struct store_pass *row, struct err *err);
int store_pass_remove(struct store *store, const char *id, struct err *err);
int store_pass_prune(struct store *store, int64_t before_ms, struct err *err);
/* In order of creation; must not call the store from fn. */
int store_pass_each(struct store *store, store_pass_fn *fn, void *ctx, struct err *err);

struct store_alias {
    const char *name, *owner, *sandbox;
    int64_t port, created_ms;
};
typedef int store_alias_fn(void *ctx, const struct store_alias *row);

int store_alias_put(struct store *store, const struct store_alias *row, struct err *err);
int store_alias_remove(struct store *store, const char *name, struct err *err);
int store_alias_each(struct store *store, store_alias_fn *fn, void *ctx, struct err *err);

/* ---- builds of templates ---- */

struct store_template_build {
    const char *id, *owner, *template, *tags, *step, *message;
    int64_t state, cpu_millis, memory_bytes, disk_bytes, created_ms, updated_ms, finished_ms;
};
typedef int store_template_build_fn(void *ctx, const struct store_template_build *row);

int store_template_build_put(struct store *store, const struct store_template_build *row,
                             struct err *err);
int store_template_build_remove(struct store *store, const char *id, struct err *err);
/* The oldest first. */
int store_template_build_each(struct store *store, store_template_build_fn *fn, void *ctx,
                              struct err *err);

/* ---- usage: how much of what, by sandbox and hour ---- */

struct store_usage {
    const char *owner, *sandbox;
    const char *name; /* of the sandbox, where it is known; reading only */
    int64_t hour;     /* since 1970 */
    int64_t cpu_us, rx_bytes, tx_bytes;
    double memory_gib_s, disk_gib_s;
};
typedef int store_usage_fn(void *ctx, const struct store_usage *row);

/* How far a sandbox has been counted. */
struct store_meter {
    const char *sandbox;
    int64_t at_ms, life_ms, cpu_us;
    int64_t memory_bytes, disk_bytes; /* -1: not known */
    int64_t rx_bytes, tx_bytes;
};
typedef int store_meter_fn(void *ctx, const struct store_meter *row);

/* What was used and how far that counts belong together: begin, add and put, end. All of it is
 * written, or with ok false or after a failure, nothing. Others' writes wait meanwhile. */
int store_usage_begin(struct store *store, struct err *err);
int store_usage_add(struct store *store, const struct store_usage *row, struct err *err);
int store_meter_put(struct store *store, const struct store_meter *row, struct err *err);
int store_meter_remove(struct store *store, const char *sandbox, struct err *err);
int store_usage_end(struct store *store, bool ok, struct err *err);

int store_meter_each(struct store *store, store_meter_fn *fn, void *ctx, struct err *err);

struct store_usage_query {
    const char *owner;
    const char *sandbox; /* NULL: all */
    int64_t from_hour, to_hour;
};
/* One row: the sum. */
int store_usage_total(struct store *store, const struct store_usage_query *query,
                      store_usage_fn *fn, void *ctx, struct err *err);
/* One row a sandbox, by id, from behind `after`. */
int store_usage_sandboxes(struct store *store, const struct store_usage_query *query,
                          const char *after, unsigned limit, store_usage_fn *fn, void *ctx,
                          struct err *err);
/* One row for every `step` hours in which something was used. */
int store_usage_steps(struct store *store, const struct store_usage_query *query, unsigned step,
                      store_usage_fn *fn, void *ctx, struct err *err);
int store_usage_prune(struct store *store, int64_t before_hour, struct err *err);

/* ---- events ---- */

struct store_event {
    int64_t seq; /* given by the store: later ones are greater, none is used twice */
    int64_t time_ms;
    const char *owner, *sandbox, *type, *data;
};
typedef int store_event_fn(void *ctx, const struct store_event *row);

int store_event_add(struct store *store, const struct store_event *row, int64_t *ret_seq,
                    struct err *err);
/* Those with seq > since, in order; sandbox NULL: of all. */
int store_event_each(struct store *store, const char *owner, const char *sandbox, int64_t since,
                     unsigned limit, store_event_fn *fn, void *ctx, struct err *err);
int store_event_last(struct store *store, int64_t *ret_seq, struct err *err); /* 0: none yet */
int store_event_prune(struct store *store, unsigned keep, struct err *err);

/* ---- replays: requests that may come twice, and what they were answered ---- */

struct store_replay {
    const char *owner, *key;
    const char *hash;        /* of the request */
    const char *made;        /* what it made, "" while it has made nothing */
    int64_t status;          /* 0: not answered yet */
    const char *etag, *body; /* NULL: none */
    int64_t created_ms;
};
typedef int store_replay_fn(void *ctx, const struct store_replay *row);

int store_replay_put(struct store *store, const struct store_replay *row, struct err *err);
int store_replay_made(struct store *store, const char *owner, const char *key, const char *made,
                      struct err *err);
int store_replay_done(struct store *store, const struct store_replay *row, struct err *err);
/* Calls fn at most once; must not call the store from it. */
int store_replay_get(struct store *store, const char *owner, const char *key, store_replay_fn *fn,
                     void *ctx, struct err *err);
int store_replay_remove(struct store *store, const char *owner, const char *key, struct err *err);
/* Those from before that moment, and the owner's oldest beyond `keep`. */
int store_replay_prune(struct store *store, int64_t before_ms, const char *owner, unsigned keep,
                       struct err *err);

/* ---- build steps: a cache ---- */

/* 1, the chain (malloc'd), which is then used at that moment, and when the step was done (0:
 * unknown); 0 when there is none. */
int store_build_get(struct store *store, const char *key, int64_t now_ms, char **ret_chain,
                    int64_t *ret_made_ms, struct err *err);
int store_build_put(struct store *store, const char *key, const char *owner, const char *chain,
                    int64_t now_ms, struct err *err);
int store_build_forget(struct store *store, const char *owner, struct err *err);
/* 1 and another owner (malloc'd) in whose cache the chain is; 0 when there is none. */
int store_build_other(struct store *store, const char *chain, const char *owner, char **ret_other,
                      struct err *err);

/* ---- meta: a few facts about the store itself ---- */

/* 1 and a value (malloc'd), 0 when there is none. */
int store_meta_get(struct store *store, const char *key, char **ret_value, struct err *err);
int store_meta_set(struct store *store, const char *key, const char *value, struct err *err);
