#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/object.h"
#include "cli/term.h"
#include "cli/xmem.h"

#define KEY_BYTES_MAX 512 /* twice the longest key */

struct login_opts {
    const char *name, *key_file, *ca;
};

static const struct opt login_table[] = {
    { 0, "name", OPT_TEXT, offsetof(struct login_opts, name), "NAME",
      "What the context is called. Default: the host.", NULL },
    { 0, "key-file", OPT_TEXT, offsetof(struct login_opts, key_file), "FILE",
      "Read the key from this file, - for standard input, instead of asking.", "@file" },
    { 0, "ca", OPT_TEXT, offsetof(struct login_opts, ca), "FILE",
      "Authorities to trust at this address beside the system's, as `warren ca show` prints them.",
      "@file" },
};

/* ---- the address ---- */

static bool is_near(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost", 9) == 0 ||
           strncmp(host, "[::1]", 5) == 0;
}

/* With its scheme and without a slash behind it; without a scheme a far one is taken to speak TLS. */
static int read_url(const char *word, char **ret_url, struct err *err)
{
    size_t n = strlen(word);
    while (n > 0 && word[n - 1] == '/')
        n--;
    const char *scheme = strstr(word, "://") ? "" : is_near(word) ? "http://" : "https://";
    _cleanup_free_ char *url = xasprintf("%s%.*s", scheme, (int)n, word);
    size_t prefix = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    if (prefix == 0 || !url[prefix] || strpbrk(url, "@?# \t"))
        return err_set(err, EINVAL, "'%s' is not an address; it looks like https://host:7071",
                       word);
    *ret_url = take_ptr(url);
    return 0;
}

/* ---- the key ---- */

static int read_key_fd(int fd, char key[KEY_BYTES_MAX], struct err *err)
{
    size_t n = 0;
    while (n < KEY_BYTES_MAX) {
        ssize_t r = read(fd, key + n, KEY_BYTES_MAX - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_set(err, errno, "cannot read the key: %s", strerror(errno));
        if (r == 0)
            break;
        n += (size_t)r;
    }
    if (n == KEY_BYTES_MAX)
        return err_set(err, EINVAL, "a key has fewer than %d bytes", KEY_BYTES_MAX);
    key[n] = '\0';
    return 0;
}

static int read_key_file(const char *file, char key[KEY_BYTES_MAX], struct err *err)
{
    if (strcmp(file, "-") == 0)
        return read_key_fd(STDIN_FILENO, key, err);
    _cleanup_fd_ int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s': %s", file, strerror(errno));
    return read_key_fd(fd, key, err);
}

static int ask_key(const char *url, char key[KEY_BYTES_MAX], struct err *err)
{
    _cleanup_free_ char *question = xasprintf("API key for %s: ", url);
    return term_ask_hidden(question, key, KEY_BYTES_MAX, err);
}

/* One word of what was read: blanks around it are how it was written down. */
static int trim_key(char *key, struct err *err)
{
    size_t before = strspn(key, " \t\r\n");
    memmove(key, key + before, strlen(key) + 1 - before);
    size_t n = strlen(key);
    while (n > 0 && strchr(" \t\r\n", key[n - 1]))
        key[--n] = '\0';
    if (n == 0)
        return err_set(err, EINVAL,
                       "there is no key; `warren key create NAME` on the daemon's host "
                       "makes one");
    for (const char *p = key; *p; p++)
        if (*p <= ' ' || *p > '~')
            return err_set(err, EINVAL, "a key is one word of printable characters");
    return 0;
}

static int find_key(const struct cli *cli, const struct login_opts *o, const char *url,
                    char key[KEY_BYTES_MAX], struct err *err)
{
    int r = 0;
    if (cli->key)
        r = snprintf(key, KEY_BYTES_MAX, "%s", cli->key) < KEY_BYTES_MAX
                ? 0
                : err_set(err, EINVAL, "a key has fewer than %d bytes", KEY_BYTES_MAX);
    else if (o->key_file)
        r = read_key_file(o->key_file, key, err);
    else if (isatty(STDIN_FILENO))
        r = ask_key(url, key, err);
    else
        r = read_key_fd(STDIN_FILENO, key, err);
    return r < 0 ? r : trim_key(key, err);
}

/* ---- the login ---- */

/* The daemon must be there and take the key, before anything is kept. */
static int try_key(const struct client_config *config, struct err *err)
{
    _cleanup_(client_freep) struct client *client = NULL;
    _cleanup_free_ char *path = api_query(api_path("sandboxes", NULL), "limit", "1");
    _cleanup_json_ json_t *list = NULL;
    int r = client_new(config, &client, err);
    if (r == 0)
        r = client_call(client, "GET", path, NULL, &list, NULL, err);
    if (r == 0 && !json_is_array(json_object_get(list, "sandboxes")))
        r = err_set(err, EPROTO, "what answers at %s is not warrend", config->url);
    return r == -EACCES ? err_set(err, EACCES, "warrend at %s does not take this key", config->url)
                        : r;
}

static int keep(const char *name, const struct client_config *config, bool named, struct err *err)
{
    _cleanup_(contexts_freep) struct contexts *all = NULL;
    int r = contexts_read_to_change(&all, err);
    if (r < 0)
        return r;
    const json_t *there = contexts_get(all, name);
    if (there && !named && strcmp(member_text(there, "url"), config->url) != 0)
        return err_set(err, EEXIST,
                       "the context '%s' is for %s; --name gives this one another name", name,
                       member_text(there, "url"));
    json_t *c = json_object();
    r = object_text(c, "url", config->url, err);
    if (r == 0)
        r = object_text(c, "key", config->key, err);
    if (r == 0 && config->ca)
        r = object_text(c, "ca", config->ca, err);
    if (r == 0 && config->team)
        r = object_text(c, "team", config->team, err);
    if (r < 0) {
        json_decref(c);
        return r;
    }
    r = contexts_put(all, name, c, err);
    if (r == 0)
        r = contexts_use(all, name, err);
    if (r == 0)
        r = contexts_write(all, err);
    if (r == 0)
        cli_note("logged in to %s; context '%s' is kept in %s", config->url, name,
                 contexts_file(all));
    return r;
}

/* Where the command is run later from another directory, the file is still the same. */
static int find_ca(const char *file, char **ret_ca, struct err *err)
{
    const char *env = getenv("WARREN_CA");
    if (!file && env && *env)
        file = env;
    *ret_ca = file ? realpath(file, NULL) : NULL;
    if (file && !*ret_ca)
        return err_set(err, errno, "cannot open '%s': %s", file, strerror(errno));
    return 0;
}

static void say_what_replaces_it(void)
{
    static const char *const first[] = { "WARREN_URL", "WARREN_SOCKET", "WARREN_RUN",
                                         "WARREN_API_KEY", "WARREN_CONTEXT" };
    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        const char *v = getenv(first[i]);
        if (v && *v)
            cli_note("%s is set in this shell and comes before the context", first[i]);
    }
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct login_opts *o = opts;
    _cleanup_free_ char *url = NULL, *ca = NULL, *name = NULL;
    char key[KEY_BYTES_MAX] = "";
    struct err err = ERR_INIT;
    if (read_url(argv[0], &url, &err) < 0)
        return cli_usage(cli, "%s", err.msg);
    name = o->name ? xstrdup(o->name) : context_name_of(url);
    if (!name)
        name = xstrdup("remote");
    if (context_name_check(name, &err) < 0)
        return cli_usage(cli, "%s", err.msg);
    if (strncmp(url, "http://", 7) == 0 && !is_near(url))
        cli_note("%s is not encrypted: whoever is on the way can read the key", url);
    int r = find_ca(o->ca, &ca, &err);
    if (r == 0)
        r = find_key(cli, o, url, key, &err);
    const struct client_config config = { .url = url, .key = key, .ca = ca, .team = cli->team };
    if (r == 0)
        r = try_key(&config, &err);
    if (r == 0)
        r = keep(name, &config, o->name != NULL, &err);
    explicit_bzero(key, sizeof(key));
    if (r < 0)
        return cli_fail(cli, &err);
    say_what_replaces_it();
    return 0;
}

const struct command cmd_login = {
    .name = "login",
    .summary = "Remember a daemon and a key, and use them from now on",
    .synopsis = "[OPTIONS] URL",
    .description =
        "Asks for an API key without showing it, tries it, and keeps address and key as a "
        "context, in contexts.json under $XDG_CONFIG_HOME/warren or ~/.config/warren, which only "
        "you can read. The context is the current one then: commands go to that daemon unless "
        "--url, --socket, --context or a variable such as WARREN_URL says otherwise.\n\n"
        "On a terminal the key is asked for; else, or with --key-file -, it is read from standard "
        "input. `warren key create NAME` on the daemon's host makes one. With --team an operator "
        "works for that team there.",
    .examples =
        (const struct example[]){
            { "A daemon on another machine", "warren login https://sandboxes.example.org:7071" },
            { "In a script", "printf %s \"$KEY\" | warren login --name ci https://10.0.0.5:7071" },
            { "One with a local authority",
              "warren login --ca warren.pem https://sandboxes.example.org:7443" },
            { NULL, NULL } },
    COMMAND_OPTS(login_table, struct login_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};

/* ---- logout ---- */

static int run_logout(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_(contexts_freep) struct contexts *all = NULL;
    struct err err = ERR_INIT;
    if (contexts_read_to_change(&all, &err) < 0)
        return cli_fail(cli, &err);
    const char *current = contexts_current(all);
    if (argc == 0 && !current)
        return cli_usage(cli, "there is no current context; `warren context ls` lists all");
    _cleanup_free_ char *name = xstrdup(argc > 0 ? argv[0] : current);
    if (contexts_remove(all, name, &err) < 0 || contexts_write(all, &err) < 0)
        return cli_fail(cli, &err);
    (void)printf("%s\n", name);
    return 0;
}

const struct command cmd_logout = {
    .name = "logout",
    .summary = "Forget a daemon's key",
    .synopsis = "[CONTEXT]",
    .description =
        "Removes a context, the current one unless another is named, and the key with it. "
        "The daemon still takes the key: `warren key rm` revokes it there.",
    .examples = (const struct example[]){ { "The current one", "warren logout" },
                                          { "Another", "warren logout staging" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .max_args = 1,
    .operands = "@context",
    .run = run_logout,
};
