/* native - Warren's own API under /v1, as docs/api.md tells it.
 *
 * Each file is one noun's requests: JSON in, a core call, JSON out. routes.c has the whole surface
 * in one table. */
#pragma once
#include <stddef.h>

#include "core/process.h"
#include "core/sandbox.h"
#include "front/http/request.h"
#include "front/http/route.h"

extern const struct dialect native_dialect;

/* A failure with more members in its error object. */
typedef void (*native_more_fn)(struct jout *j, const void *arg);
int native_reply_error(struct request *req, const struct err *err, native_more_fn more,
                       const void *arg);

int native_sandbox_create(struct request *req, struct err *err);
int native_sandbox_list(struct request *req, struct err *err);
int native_sandbox_get(struct request *req, struct err *err);
int native_sandbox_update(struct request *req, struct err *err);
int native_sandbox_delete(struct request *req, struct err *err);
int native_sandbox_stop(struct request *req, struct err *err);
int native_sandbox_pause(struct request *req, struct err *err); /* pause.c */
int native_sandbox_resume(struct request *req, struct err *err);
/* The versions that If-Match names; *ret_versions is the caller's, NULL: any. */
int native_read_match(const struct request *req, char **ret_versions, struct err *err);
int native_sandbox_start(struct request *req, struct err *err);
int native_sandbox_usage(struct request *req, struct err *err);
int native_sandbox_changes(struct request *req, struct err *err);
int native_sandbox_blast(struct request *req, struct err *err);

int native_sandbox_restore(struct request *req, struct err *err);
int native_sandbox_fork(struct request *req, struct err *err);
int native_checkpoint_export(struct request *req, struct err *err);
int native_checkpoint_import(struct request *req, struct err *err);
extern const struct route_sink native_checkpoint_sink;
int native_sandbox_promote(struct request *req, struct err *err);
int native_checkpoint_diff(struct request *req, struct err *err);
int native_sandbox_checkpoints(struct request *req, struct err *err);
int native_checkpoint_create(struct request *req, struct err *err);
int native_checkpoint_list(struct request *req, struct err *err);
int native_checkpoint_get(struct request *req, struct err *err);
int native_checkpoint_delete(struct request *req, struct err *err);
int native_checkpoint_start(struct request *req, struct err *err);
int native_checkpoint_archive(struct request *req, struct err *err);
int native_checkpoint_unarchive(struct request *req, struct err *err);
int native_checkpoint_fetch(struct request *req, struct err *err);
int native_sandbox_archive(struct request *req, struct err *err);
int native_archive_list(struct request *req, struct err *err);
int native_archive_import(struct request *req, struct err *err);
int native_archive_collect(struct request *req, struct err *err);

int native_exec(struct request *req, struct err *err);
int native_process_start(struct request *req, struct err *err);
int native_process_list(struct request *req, struct err *err);
int native_process_get(struct request *req, struct err *err);
int native_process_output(struct request *req, struct err *err);
int native_process_wait(struct request *req, struct err *err);
int native_process_stdin(struct request *req, struct err *err);
int native_process_signal(struct request *req, struct err *err);
int native_process_resize(struct request *req, struct err *err);
int native_process_kill(struct request *req, struct err *err);

int native_image_list(struct request *req, struct err *err);
int native_image_put(struct request *req, struct err *err);
int native_image_get(struct request *req, struct err *err);
int native_image_history(struct request *req, struct err *err);
int native_image_tag(struct request *req, struct err *err);
int native_image_export(struct request *req, struct err *err);
int native_lease_take(struct request *req, struct err *err);
int native_lease_list(struct request *req, struct err *err);
int native_lease_end(struct request *req, struct err *err);
int native_sandbox_commit(struct request *req, struct err *err);
int native_image_prune(struct request *req, struct err *err);
int native_image_delete(struct request *req, struct err *err);
int native_image_pull(struct request *req, struct err *err);
int native_image_push(struct request *req, struct err *err);
extern const struct route_sink native_image_sink;

int native_file_get(struct request *req, struct err *err);
int native_file_put(struct request *req, struct err *err);
int native_file_delete(struct request *req, struct err *err);
int native_file_stat(struct request *req, struct err *err);
int native_file_list(struct request *req, struct err *err);
int native_file_mkdir(struct request *req, struct err *err);
int native_file_move(struct request *req, struct err *err);
int native_file_copy(struct request *req, struct err *err);
int native_file_chmod(struct request *req, struct err *err);
int native_file_chown(struct request *req, struct err *err);
int native_file_symlink(struct request *req, struct err *err);
int native_file_readlink(struct request *req, struct err *err);
int native_file_truncate(struct request *req, struct err *err);
int native_file_xattrs(struct request *req, struct err *err);
int native_file_xattr_set(struct request *req, struct err *err);
int native_file_xattr_remove(struct request *req, struct err *err);
int native_file_usage(struct request *req, struct err *err);
int native_file_find(struct request *req, struct err *err);
int native_file_archive(struct request *req, struct err *err);
int native_file_unpack(struct request *req, struct err *err);
int native_file_read_many(struct request *req, struct err *err);
int native_file_write_many(struct request *req, struct err *err);
int native_file_search(struct request *req, struct err *err);
int native_file_replace(struct request *req, struct err *err);
int native_file_watch(struct request *req, struct err *err);
int native_file_watch_add(struct request *req, struct err *err);
int native_file_watch_poll(struct request *req, struct err *err);
int native_file_watch_remove(struct request *req, struct err *err);
extern const struct route_sink native_file_sink, native_file_archive_sink, native_file_write_sink;

int native_image_build(struct request *req, struct err *err);
extern const struct route_sink native_build_sink;

int native_event_list(struct request *req, struct err *err);
int native_key_create(struct request *req, struct err *err);
int native_key_list(struct request *req, struct err *err);
int native_key_delete(struct request *req, struct err *err);

int native_template_put(struct request *req, struct err *err);
int native_template_list(struct request *req, struct err *err);
int native_template_get(struct request *req, struct err *err);
int native_template_delete(struct request *req, struct err *err);
int native_volume_create(struct request *req, struct err *err);
int native_volume_list(struct request *req, struct err *err);
int native_volume_get(struct request *req, struct err *err);
int native_volume_update(struct request *req, struct err *err);
int native_volume_delete(struct request *req, struct err *err);
int native_volume_restore(struct request *req, struct err *err);
int native_volume_checkpoint_create(struct request *req, struct err *err);
int native_volume_checkpoint_list(struct request *req, struct err *err);
int native_volume_checkpoint_get(struct request *req, struct err *err);
int native_volume_checkpoint_delete(struct request *req, struct err *err);
int native_volume_checkpoint_fork(struct request *req, struct err *err);
int native_secret_create(struct request *req, struct err *err);
int native_secret_list(struct request *req, struct err *err);
int native_secret_get(struct request *req, struct err *err);
int native_secret_update(struct request *req, struct err *err);
int native_secret_delete(struct request *req, struct err *err);
int native_port_list(struct request *req, struct err *err);
int native_token_create(struct request *req, struct err *err);
int native_token_list(struct request *req, struct err *err);
int native_token_delete(struct request *req, struct err *err);
int native_name_put(struct request *req, struct err *err);
int native_name_list(struct request *req, struct err *err);
int native_name_get(struct request *req, struct err *err);
int native_name_delete(struct request *req, struct err *err);
int native_usage(struct request *req, struct err *err);
int native_team_create(struct request *req, struct err *err);
int native_team_list(struct request *req, struct err *err);
int native_team_get(struct request *req, struct err *err);
int native_team_update(struct request *req, struct err *err);
int native_team_delete(struct request *req, struct err *err);

int native_log_list(struct request *req, struct err *err);
int native_sandbox_logs(struct request *req, struct err *err);
int native_health(struct request *req, struct err *err);
int native_openapi(struct request *req, struct err *err);
int native_backup(struct request *req, struct err *err);
int native_host(struct request *req, struct err *err);
int native_metrics(struct request *req, struct err *err);

/* ---- shared by the files of this folder ---- */

/* A time among the query's parameters: 1, 0 when it is not there, or invalid_query. */
int native_param_time(const struct request *req, const char *name, int64_t *ret_ms,
                      struct err *err);
struct trace_changes;
struct image;
struct image_config;
/* An image as the API shows it. */
void native_put_image(struct jout *j, const char *key, const struct image *image,
                      const struct image_config *config);
/* The same by its name, as the whole answer. */
int native_reply_image(struct request *req, unsigned status, const struct image *image,
                       struct err *err);
/* The member `image` of an event: one that was just made. */
void native_put_made(struct core *core, struct jout *j, const struct image *image);
/* What is exported, as a stream; taken. */
struct image_export;
int native_reply_export(struct request *req, struct image_export *exp);

/* A failure in sandbox `who`: if it is gone, or is just ending, err becomes the story of that.
 * True if it is gone; then *ret_s has its cause and end (sandbox_done it in any case). */
bool native_sandbox_fate(struct core *core, const char *owner, const char *who,
                         struct sandbox *ret_s, struct err *err);
/* The same as an answer: replies to what is gone as the API has it, else gives r back. */
int native_sandbox_error(struct request *req, int r, struct err *err);
void native_put_gone(struct jout *j, const void *sandbox);

/* The sandbox of the path, or the volume's cell, entered; native_leave when done. Replies by itself
 * on failure. */
struct native_visit {
    struct core *core;
    struct sandbox s;
};
bool native_is_volume(const struct request *req); /* the path's: /v1/volumes/... */
int native_enter(struct request *req, struct native_visit *ret_visit, struct err *err);
/* The number, from 1 on, that the i-th brace of the path took; 0: it is none. */
uint64_t native_path_number(const struct request *req, size_t i);
void native_leave(struct native_visit *visit); /* fine for one that was not entered */

/* The body of a create or, with ret_changes, of an update, over what spec holds. */
int native_spec_read(struct request *req, struct sandbox_spec *spec, unsigned *ret_changes,
                     struct err *err);

struct volume;
struct bucket;
/* The member `bucket` of a volume: a decoder for a struct bucket, and the way out. */
int native_as_bucket(const json_t *v, const struct field *f, void *at, struct err *err);
void native_put_bucket(struct jout *j, const char *key, const struct bucket *b);
int native_reply_volume(struct request *req, unsigned status, const struct volume *v,
                        struct err *err);
/* The member `volumes` of a sandbox: a decoder for the spec's mounts, and the way out. */
struct field;
int native_as_mounts(const json_t *v, const struct field *f, void *at, struct err *err);
void native_put_mounts(struct jout *j, const struct sandbox_spec *spec);
/* The words of enum sandbox_preview and enum sandbox_wake. */
extern const char *const native_previews[], *const native_wakes[], *const native_restarts[];
int native_as_network(const json_t *v, const struct field *f, void *at, struct err *err);
void native_put_sandbox(struct jout *j, const char *key, const struct sandbox *s);
struct checkpoint;
void native_put_checkpoint(struct jout *j, const char *key, const struct checkpoint *c);
int native_reply_sandbox(struct request *req, unsigned status, const struct sandbox *s);
struct port;
void native_put_port(struct jout *j, const struct request *req, const char *sandbox,
                     const struct port *p);
struct checkpoint;
int native_reply_checkpoint(struct request *req, unsigned status, const struct checkpoint *c);
void native_put_changes(struct jout *j, const struct trace_changes *c);
void native_put_network(struct jout *j, const struct sandbox_spec *spec);
int native_as_autosave(const json_t *v, const struct field *f, void *at, struct err *err);
void native_put_autosave(struct jout *j, const struct sandbox_spec *spec);
int native_as_network_limits(const json_t *v, const struct field *f, void *at, struct err *err);
void native_put_network_limits(struct jout *j, const struct sandbox_spec *spec);
/* bindings.c */
int native_as_bindings(const json_t *v, const struct field *f, void *at, struct err *err);
void native_put_bindings(struct jout *j, const struct sandbox_spec *spec);
int native_network_log(struct request *req, struct err *err);
int native_network_usage(struct request *req, struct err *err);
int native_port_connect(struct request *req, struct err *err);
int native_ca(struct request *req, struct err *err);
int native_challenge(struct request *req, struct err *err);

/* Where a port is reached from outside; nothing is appended if that is nowhere. */
void native_preview_url(const struct request *req, const char *sandbox, unsigned port,
                        struct buf *out);

/* What exec and start take. */
struct native_command {
    struct process_spec spec;
    char *stdin_text;
    uint64_t output_limit;
};
int native_command_read(struct request *req, bool wait, struct native_command *ret_cmd,
                        struct err *err);
void native_command_done(struct native_command *cmd);

void native_put_process(struct jout *j, const char *key, const struct process *p);
/* Answer with the process's events as lines. Takes the visit, the stream and the text to feed
 * (NULL: none), also on failure. `until`: stop at this output offset without waiting for more;
 * UINT64_MAX: follow to the end. */
int native_stream(struct request *req, struct native_visit *visit, struct process_stream *stream,
                  const struct process *p, char *stdin_text, uint64_t until, struct err *err);
