#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/keep.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define DEFAULT_URL "http://127.0.0.1:7070"
#define E2B_MOUNT "/e2b"
#define E2B_KEY_NAME "e2b" /* of a key that is issued here */

struct env_opts {
    const char *at;
    bool renew;
};

static const struct opt env_table[] = {
    { 0, "at", OPT_TEXT, offsetof(struct env_opts, at), "URL",
      "The address that programs shall use, where it is not the one this command uses.", NULL },
    { 0, "renew", OPT_FLAG, offsetof(struct env_opts, renew), NULL,
      "Take the key back that was issued before, and issue another.", NULL },
};

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

/* Where the daemon of the socket listens, without TLS if it does; one for all addresses is here, too. */
static char *listens_at(struct cli *cli)
{
    _cleanup_free_ char *path = api_path("host", NULL);
    _cleanup_json_ json_t *host = NULL;
    struct err ignored = ERR_INIT;
    (void)cli_call(cli, "GET", path, NULL, &host, &ignored); /* one of old does not tell */
    const json_t *list = json_object_get(host, "listen");
    const char *url = json_string_value(json_array_get(list, 0));
    url = url ? url : DEFAULT_URL;
    static const char *const any[] = { "http://0.0.0.0:", "http://[::]:" };
    for (size_t i = 0; i < ARRAY_LEN(any); i++)
        if (strncmp(url, any[i], strlen(any[i])) == 0)
            return xasprintf("http://127.0.0.1:%s", url + strlen(any[i]));
    return xstrdup(url);
}

/* The daemon's address without a slash behind it. Whoever asks on the socket has not said any. */
static char *address(struct cli *cli, struct client *client, const char *at)
{
    const char *url = at ? at : client_where(client);
    if (*url == '/')
        return listens_at(cli);
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/')
        n--;
    return xasprintf("%s%.*s", strstr(url, "://") ? "" : "http://", (int)n, url);
}

static int issue(struct cli *cli, char **ret_key, char **ret_id, struct err *err)
{
    _cleanup_free_ char *path = api_path("keys", NULL);
    _cleanup_json_ json_t *body = json_pack("{s:s}", "name", E2B_KEY_NAME);
    _cleanup_json_ json_t *made = NULL;
    int r = cli_call(cli, "POST", path, body, &made, err);
    if (r < 0)
        return err_wrap(err, r, "no key is given, and none could be issued");
    *ret_key = xstrdup(member_text(made, "key"));
    *ret_id = xstrdup(member_text(made, "id"));
    return 0;
}

static void take_back(struct cli *cli, const char *id)
{
    _cleanup_free_ char *path = api_path("keys", id, NULL);
    struct err ignored = ERR_INIT;
    (void)cli_call(cli, "DELETE", path, NULL, NULL, &ignored);
}

/* A key that opens nothing (-EACCES), or an address where nobody is, had better show here. */
static int try_them(const char *url, const char *key, struct err *err)
{
    char code[REQUEST_CODE_MAX] = "";
    struct client_config config = { .url = url, .key = key };
    _cleanup_(client_freep) struct client *client = NULL;
    _cleanup_free_ char *path = api_query(api_path("sandboxes", NULL), "limit", "1");
    _cleanup_json_ json_t *list = NULL;
    int r = client_new(&config, &client, err);
    if (r == 0)
        r = client_call(client, "GET", path, NULL, &list, code, err);
    if (r < 0)
        r = err_wrap(err, r, "'%s' does not answer to this key; --at names another address", url);
    return r < 0 && strcmp(code, "unauthorized") == 0 ? -EACCES : r;
}

/* A key that was issued here before for that team (NULL: the caller's own) and still works, else a new
 * one, which is kept. */
static int kept_key(struct cli *cli, const struct env_opts *o, const char *url, const char *team,
                    char **ret_key, struct err *err)
{
    _cleanup_(keep_freep) struct keep *keep = NULL;
    _cleanup_free_ char *of = team ? xasprintf("%s %s", url, team) : xstrdup(url);
    _cleanup_free_ char *key = NULL, *id = NULL;
    struct err why = ERR_INIT;
    const char *old_id, *old_key;
    int r = keep_open(&keep, &why);
    if (r >= 0 && keep_find(keep, of, &old_id, &old_key)) {
        r = o->renew ? -EACCES : try_them(url, old_key, err);
        if (r >= 0)
            *ret_key = xstrdup(old_key);
        if (r != -EACCES)
            return r;
        if (o->renew)
            take_back(cli, old_id);
    }
    r = issue(cli, &key, &id, err);
    if (r < 0)
        return r;
    r = try_them(url, key, err);
    if (r < 0) {
        take_back(cli, id); /* nobody will ever know it */
        return r;
    }
    if (keep && keep_put(keep, of, id, key, &why) >= 0)
        cli_note("issued a key for this, '%s', and kept it in %s; `warren key rm` takes it back",
                 id, keep_file(keep));
    else
        cli_note("issued a key for this, '%s', which cannot be kept: %s; `warren key rm` takes it "
                 "back",
                 id, why.msg);
    *ret_key = take_ptr(key);
    return 0;
}

/* The caller's own, which works: what --key or WARREN_API_KEY say must; E2B_API_KEY may be of E2B's. A team
 * that is named gets a key of its own: E2B's clients cannot name one. */
static int find_key(struct cli *cli, const struct env_opts *o, const char *url, const char *team,
                    char **ret_key, struct err *err)
{
    if (team)
        return kept_key(cli, o, url, team, ret_key, err);
    const char *own = cli->key ? cli->key : env("WARREN_API_KEY");
    const char *key = own ? own : o->renew ? NULL : env("E2B_API_KEY");
    int r = key ? try_them(url, key, err) : -EACCES;
    if (!key || (!own && r == -EACCES))
        return kept_key(cli, o, url, NULL, ret_key, err);
    if (r >= 0)
        *ret_key = xstrdup(key);
    return r;
}

/* What E2B's clients want to see: "e2b_" and hexadecimal digits. What stands before the last "_" of
 * a key is decoration to the daemon. */
static json_t *variables(const char *url, const char *key)
{
    const char *last = strrchr(key, '_');
    const char *secret = last ? last + 1 : key;
    _cleanup_free_ char *shown = xasprintf("e2b_%s", secret);
    _cleanup_free_ char *mount = xasprintf("%s%s", url, E2B_MOUNT);
    json_t *o = json_pack("{s:s,s:s,s:s,s:s}", "E2B_API_KEY", shown, "E2B_API_URL", mount,
                          "E2B_SANDBOX_URL", mount, "E2B_VOLUME_API_URL", mount);
    if (o && secret[strspn(secret, "0123456789abcdef")])
        (void)json_object_set_new(o, "E2B_VALIDATE_API_KEY", json_string("false"));
    return o;
}

/* In single quotes nothing means anything to a shell but the quote itself. */
static void print_export(const char *name, const char *value)
{
    (void)printf("export %s='", name);
    for (const char *p = value; *p; p++) {
        if (*p == '\'')
            (void)fputs("'\\''", stdout);
        else
            (void)fputc(*p, stdout);
    }
    (void)fputs("'\n", stdout);
}

static int run_e2b(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct env_opts *o = opts;
    _cleanup_free_ char *url = NULL, *key = NULL;
    struct err err = ERR_INIT;
    struct client *client = cli_client(cli, &err);
    if (!client)
        return cli_fail(cli, &err);
    url = address(cli, client, o->at);
    if (find_key(cli, o, url, client_team(client), &key, &err) < 0)
        return cli_fail(cli, &err);

    _cleanup_json_ json_t *set = variables(url, key);
    if (!set) /* only text that is not UTF-8 does this */
        return cli_usage(cli, "the address or the key is not UTF-8");
    if (cli->json) {
        cli_print_json(set);
        return 0;
    }
    const char *name;
    const json_t *value;
    json_object_foreach(set, name, value) {
        print_export(name, json_string_value(value));
    }
    return 0;
}

const struct command cmd_env_e2b = {
    .name = "env e2b",
    .summary = "Print the variables that point E2B's SDKs at this daemon",
    .synopsis = "[OPTIONS]",
    .description =
        "Prints what programs written for E2B need to run here, as lines for a shell, or as an "
        "object with --json. Address and key are tried first.\n\n"
        "The key is yours: --key, WARREN_API_KEY or E2B_API_KEY. Where there is none, as for root "
        "on the admin socket, one is issued, kept for the next time in "
        "~/.config/warren/keys.json (or below XDG_CONFIG_HOME), and issued anew when it works no "
        "more; likewise for a team that --team names. The address is the one this command uses; on "
        "the socket the daemon tells where it listens.",
    .examples =
        (const struct example[]){
            { "For this shell and what is started in it", "eval \"$(sudo warren env e2b)\"" },
            { "Where the daemon is behind another name",
              "warren env e2b --at https://sandboxes.example.org" },
            { "For a team, as the operator", "sudo warren --team red env e2b" },
            { "For a program to read", "warren --json env e2b" },
            { NULL, NULL } },
    COMMAND_OPTS(env_table, struct env_opts),
    .stop_after = OPTS_ALL,
    .run = run_e2b,
};
