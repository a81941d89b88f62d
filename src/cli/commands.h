/* commands - the rows of the command table, each in a file of its own, and what two of them
 * share. */
#pragma once
#include "cli/cli.h"

extern const struct command cmd_run, cmd_create, cmd_ls, cmd_get, cmd_exec, cmd_shell, cmd_ps,
    cmd_logs, cmd_attach, cmd_kill, cmd_stop, cmd_start, cmd_pause, cmd_resume, cmd_rm, cmd_update,
    cmd_events, cmd_image_ls, cmd_image_build, cmd_image_import, cmd_image_rm, cmd_image_inspect,
    cmd_image_history, cmd_image_tag, cmd_image_prune, cmd_image_export, cmd_commit, cmd_image_pull,
    cmd_image_push, cmd_key_create, cmd_key_ls, cmd_key_rm, cmd_usage, cmd_template_create,
    cmd_template_ls, cmd_template_get, cmd_template_rm, cmd_team_create, cmd_team_ls,
    cmd_team_update, cmd_team_rm, cmd_env_e2b, cmd_net_log, cmd_net_set, cmd_net_usage,
    cmd_bindings, cmd_changes, cmd_blast, cmd_doctor, cmd_version, cmd_completion, cmd_complete,
    cmd_help, cmd_restart, cmd_wait, cmd_rename;

extern const struct command cmd_cp, cmd_files_ls, cmd_files_stat, cmd_files_cat, cmd_files_write,
    cmd_files_mkdir, cmd_files_mv, cmd_files_cp, cmd_files_rm, cmd_files_chmod, cmd_files_chown,
    cmd_files_ln, cmd_files_du, cmd_files_find, cmd_files_search, cmd_files_replace,
    cmd_files_watch;
extern const struct command cmd_archive, cmd_archive_fetch, cmd_archive_rm, cmd_archive_ls,
    cmd_archive_import;
extern const struct command cmd_volume_create, cmd_volume_ls, cmd_volume_get, cmd_volume_resize,
    cmd_volume_rm, cmd_secret_set, cmd_secret_ls, cmd_secret_rm;
extern const struct command cmd_volume_checkpoint, cmd_volume_checkpoints, cmd_volume_restore,
    cmd_volume_fork, cmd_volume_forget;
extern const struct command cmd_lease_take, cmd_lease_ls, cmd_lease_rm;
extern const struct command cmd_ports, cmd_token_create, cmd_token_ls, cmd_token_rm, cmd_name_add,
    cmd_name_ls, cmd_name_rm;
extern const struct command cmd_checkpoint_ls, cmd_checkpoint_get, cmd_checkpoint_rm,
    cmd_checkpoint_export, cmd_checkpoint_import, cmd_checkpoint_create, cmd_restore, cmd_fork,
    cmd_diff, cmd_promote;
extern const struct command cmd_forward, cmd_ca_show, cmd_ca_trust, cmd_attack;
extern const struct command cmd_login, cmd_logout, cmd_context_ls, cmd_context_use, cmd_context_rm;
extern const struct command cmd_init, cmd_up, cmd_down;
/* Entries of files, as paths or with details; as JSON if that was asked for. */
void files_print(const struct cli *cli, const json_t *list, bool details);

struct sandbox_query {
    const char *state;           /* NULL: any */
    const char *const *metadata; /* "NAME=value", all must match */
    size_t nmetadata;
    bool oldest;
    size_t limit; /* 0: all there are */
};
/* Every page of the list, as one array; the caller's. */
int sandboxes_list(struct cli *cli, const struct sandbox_query *q, json_t **ret_list,
                   struct err *err);

/* A directory with its Dockerfile (NULL: the usual one) as an image, which is told of on stderr. Returns the
 * exit status. */
int image_build(struct cli *cli, const char *name, const char *file, const char *dir);

/* The list as `warren ls` prints it; quiet: ids alone. Returns the exit status. */
int sandboxes_print(struct cli *cli, const struct sandbox_query *q, bool quiet);

/* The newest process of a sandbox (running: of those that run); -ENOENT and a sentence. */
int process_newest(struct cli *cli, const char *sandbox, bool running, int64_t *ret_process,
                   struct err *err);
