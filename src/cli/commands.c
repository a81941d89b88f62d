#include "cli/commands.h"

#include <string.h>

const struct opt global_opts[] = {
    { 0, "json", OPT_FLAG, offsetof(struct cli, json), NULL,
      "Print the API's own objects instead of text for people.", NULL },
    { 0, "socket", OPT_TEXT, offsetof(struct cli, socket), "PATH",
      "The daemon's admin socket. Default /run/warren/warren.sock.", "@file" },
    { 0, "url", OPT_TEXT, offsetof(struct cli, url), "URL",
      "The daemon's address instead of its socket, such as http://127.0.0.1:7070.", NULL },
    { 0, "key", OPT_TEXT, offsetof(struct cli, key), "KEY",
      "An API key. WARREN_API_KEY is better: other users can read your command lines.", NULL },
    { 0, "context", OPT_TEXT, offsetof(struct cli, context), "NAME",
      "A daemon that `warren login` knows, or local for this machine's. WARREN_CONTEXT says the same.",
      "@context" },
    { 0, "team", OPT_TEXT, offsetof(struct cli, team), "NAME",
      "For the operator: work for this team. WARREN_TEAM says the same.", "@team" },
    { 0, "color", OPT_TEXT, offsetof(struct cli, color), "WHEN",
      "Colour: auto (on a terminal, unless NO_COLOR is set), always or never.",
      "auto always never" },
    { 'h', "help", OPT_FLAG, offsetof(struct cli, help), NULL, "Explain the command.", NULL },
    { 'V', "version", OPT_FLAG, offsetof(struct cli, version), NULL, "Show the version.", NULL },
};
const size_t global_opts_n = ARRAY_LEN(global_opts);

/* In the order that help lists them. */
const struct command *const commands[] = {
    &cmd_run,
    &cmd_create,
    &cmd_ls,
    &cmd_get,
    &cmd_init,
    &cmd_up,
    &cmd_down,
    &cmd_exec,
    &cmd_shell,
    &cmd_ps,
    &cmd_logs,
    &cmd_attach,
    &cmd_kill,
    &cmd_wait,
    &cmd_stop,
    &cmd_start,
    &cmd_restart,
    &cmd_pause,
    &cmd_resume,
    &cmd_rm,
    &cmd_checkpoint_ls,
    &cmd_checkpoint_get,
    &cmd_checkpoint_rm,
    &cmd_checkpoint_export,
    &cmd_checkpoint_import,
    &cmd_checkpoint_create,
    &cmd_restore,
    &cmd_fork,
    &cmd_diff,
    &cmd_promote,
    &cmd_update,
    &cmd_rename,
    &cmd_lease_take,
    &cmd_lease_ls,
    &cmd_lease_rm,
    &cmd_usage,
    &cmd_net_log,
    &cmd_net_set,
    &cmd_net_usage,
    &cmd_bindings,
    &cmd_changes,
    &cmd_blast,
    &cmd_forward,
    &cmd_events,
    &cmd_cp,
    &cmd_files_ls,
    &cmd_files_stat,
    &cmd_files_cat,
    &cmd_files_write,
    &cmd_files_mkdir,
    &cmd_files_mv,
    &cmd_files_cp,
    &cmd_files_rm,
    &cmd_files_chmod,
    &cmd_files_chown,
    &cmd_files_ln,
    &cmd_files_du,
    &cmd_files_find,
    &cmd_files_search,
    &cmd_files_replace,
    &cmd_files_watch,
    &cmd_image_ls,
    &cmd_image_build,
    &cmd_image_import,
    &cmd_image_rm,
    &cmd_image_inspect,
    &cmd_image_history,
    &cmd_image_tag,
    &cmd_image_prune,
    &cmd_image_export,
    &cmd_commit,
    &cmd_image_pull,
    &cmd_image_push,
    &cmd_key_create,
    &cmd_key_ls,
    &cmd_key_rm,
    &cmd_template_create,
    &cmd_template_ls,
    &cmd_template_get,
    &cmd_template_rm,
    &cmd_volume_create,
    &cmd_volume_ls,
    &cmd_volume_get,
    &cmd_volume_resize,
    &cmd_volume_rm,
    &cmd_volume_checkpoint,
    &cmd_volume_checkpoints,
    &cmd_volume_restore,
    &cmd_volume_fork,
    &cmd_volume_forget,
    &cmd_archive_fetch,
    &cmd_archive_rm,
    &cmd_archive_ls,
    &cmd_archive_import,
    &cmd_archive, /* after those whose names begin with it */
    &cmd_secret_set,
    &cmd_secret_ls,
    &cmd_secret_rm,
    &cmd_ports,
    &cmd_token_create,
    &cmd_token_ls,
    &cmd_token_rm,
    &cmd_name_add,
    &cmd_name_ls,
    &cmd_name_rm,
    &cmd_team_create,
    &cmd_team_ls,
    &cmd_team_update,
    &cmd_team_rm,
    &cmd_ca_show,
    &cmd_ca_trust,
    &cmd_env_e2b,
    &cmd_login,
    &cmd_logout,
    &cmd_context_ls,
    &cmd_context_use,
    &cmd_context_rm,
    &cmd_doctor,
    &cmd_attack,
    &cmd_version,
    &cmd_completion,
    &cmd_complete,
    &cmd_help,
};
const size_t commands_n = ARRAY_LEN(commands);

/* Does name, of one or two words, stand at the start of argv? How many words, or 0. */
static int matches(const char *name, int argc, char **argv)
{
    const char *space = strchr(name, ' ');
    if (!space)
        return strcmp(name, argv[0]) == 0;
    size_t len = (size_t)(space - name);
    if (argc < 2 || strlen(argv[0]) != len || strncmp(name, argv[0], len) != 0)
        return 0;
    return strcmp(space + 1, argv[1]) == 0 ? 2 : 0;
}

const struct command *command_find(int argc, char **argv, int *ret_words)
{
    for (size_t i = 0; argc > 0 && i < commands_n; i++) {
        *ret_words = matches(commands[i]->name, argc, argv);
        if (*ret_words == 0 && commands[i]->alias)
            *ret_words = matches(commands[i]->alias, argc, argv);
        if (*ret_words > 0)
            return commands[i];
    }
    return NULL;
}
