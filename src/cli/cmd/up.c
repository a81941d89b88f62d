#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/pages.h"
#include "cli/place.h"
#include "cli/project.h"
#include "cli/transfer.h"
#include "cli/xmem.h"

#define LABEL "up" /* of the process that `start` is */
#define MARK \
    "warren.project" /* of a sandbox that `warren up` made: the label of what it was made from */
#define END_TIMEOUT_S 10L /* for the start command to end when it is asked to */
#define LISTEN_MS 60000   /* for its ports to be there */
#define LOOK_MS 100

struct up_opts {
    const char *file;
    bool recreate, restart;
};

#define AT(member_) offsetof(struct up_opts, member_)
static const struct opt up_table[] = {
    { 'f', "file", OPT_TEXT, AT(file), "FILE", "The project file. Default: warren.toml.", "@file" },
    { 0, "recreate", OPT_FLAG, AT(recreate), NULL,
      "Make the sandbox anew, without the files it has; volumes stay.", NULL },
    { 0, "restart", OPT_FLAG, AT(restart), NULL, "Start the start command again.", NULL },
};

struct up {
    struct cli *cli;
    const struct project *p;
    const struct up_opts *o;
    json_t *sandbox; /* as it is by now */
    const char *id;  /* of it */
};

/* ---- what it is made from ---- */

static int make_volume(struct cli *cli, const char *text, struct err *err)
{
    _cleanup_free_ char *name = xstrndup(text, strcspn(text, ":"));
    _cleanup_free_ char *one = api_path("volumes", name, NULL), *all = api_path("volumes", NULL);
    char code[REQUEST_CODE_MAX] = "";
    int r = cli_call_code(cli, "GET", one, NULL, NULL, code, err);
    if (r == 0 || strcmp(code, "volume_not_found") != 0)
        return r;
    _cleanup_json_ json_t *body = json_object();
    r = object_text(body, "name", name, err);
    if (r == 0)
        r = cli_call(cli, "POST", all, body, NULL, err);
    if (r == 0)
        cli_note("made volume '%s'", name);
    return r;
}

/* One word for all that cannot be changed in a sandbox that is there: another word, another sandbox. */
static int describe(const struct up *up, const json_t *body, char out[17], struct err *err)
{
    static const char *const fixed[] = { "volumes", "user", "workdir" };
    _cleanup_free_ char *path = api_path("images", up->p->image ? up->p->image : "base", NULL);
    _cleanup_json_ json_t *image = NULL;
    _cleanup_json_ json_t *all = json_object();
    int r = cli_call(up->cli, "GET", path, NULL, &image, err);
    if (r < 0)
        return r;
    (void)json_object_set(all, "image", json_object_get(image, "id"));
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        (void)json_object_set(all, fixed[i], json_object_get(body, fixed[i]));
    _cleanup_free_ char *text = json_dumps(all, JSON_SORT_KEYS | JSON_COMPACT);
    (void)snprintf(out, 17, "%016" PRIx64, hash_text(text ? text : ""));
    return 0;
}

/* ---- the sandbox ---- */

static int find_sandbox(struct up *up, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", up->p->name, NULL);
    char code[REQUEST_CODE_MAX] = "";
    int r = cli_call_code(up->cli, "GET", path, NULL, &up->sandbox, code, err);
    if (r < 0 && (strcmp(code, "sandbox_not_found") == 0 || strcmp(code, "sandbox_gone") == 0)) {
        *err = (struct err)ERR_INIT;
        return 0;
    }
    if (r == 0 && !*member_text(json_object_get(up->sandbox, "metadata"), MARK))
        return err_set(err, EEXIST,
                       "a sandbox '%s' is there already that `warren up` did not make; give the "
                       "project another name",
                       up->p->name);
    return r;
}

static int delete_sandbox(struct up *up, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", member_text(up->sandbox, "id"), NULL);
    int r = cli_call(up->cli, "DELETE", path, NULL, NULL, err);
    if (r == 0) {
        json_decref(up->sandbox);
        up->sandbox = NULL;
    }
    return r;
}

static int create(struct up *up, json_t *body, const char *mark, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", NULL);
    (void)json_object_set_new(body, "metadata", json_pack("{s:s}", MARK, mark));
    return cli_call(up->cli, "POST", path, body, &up->sandbox, err);
}

/* What the file says and a sandbox can still become. */
static int change(struct up *up, json_t *body, const char *mark, struct err *err)
{
    static const char *const made_with[] = { "name", "image", "user", "workdir", "volumes" };
    _cleanup_free_ char *path = api_path("sandboxes", member_text(up->sandbox, "id"), NULL);
    const json_t *labels = json_object_get(up->sandbox, "metadata");
    if (strcmp(member_text(labels, MARK), mark) != 0)
        cli_note("image, volumes, user or workdir are others now; `warren up --recreate` makes the "
                 "sandbox anew, without the files it has");
    for (size_t i = 0; i < ARRAY_LEN(made_with); i++)
        (void)json_object_del(body, made_with[i]);
    if (!json_object_get(body, "env"))
        (void)json_object_set_new(body, "env", json_object());
    json_t *now = NULL;
    int r = cli_call(up->cli, "PATCH", path, body, &now, err);
    if (r < 0)
        return r;
    json_decref(up->sandbox);
    up->sandbox = now;
    return 0;
}

static int wake(struct up *up, struct err *err)
{
    const char *state = member_text(up->sandbox, "state"), *verb;
    verb = strcmp(state, "stopped") == 0 ? "start" : strcmp(state, "paused") == 0 ? "resume" : NULL;
    if (!verb)
        return 0;
    _cleanup_free_ char *path = api_path("sandboxes", member_text(up->sandbox, "id"), verb, NULL);
    return cli_call(up->cli, "POST", path, NULL, NULL, err);
}

static int bring_up(struct up *up, struct err *err)
{
    _cleanup_json_ json_t *body = NULL;
    char mark[17];
    int r = shape_body(&up->p->shape, &body, err);
    if (r < 0)
        return err_wrap(err, r, "%s", up->p->file);
    for (size_t i = 0; i < up->p->shape.volumes.n && r == 0; i++)
        r = make_volume(up->cli, up->p->shape.volumes.items[i], err);
    if (r == 0)
        r = describe(up, body, mark, err);
    if (r == 0)
        r = find_sandbox(up, err);
    if (r == 0 && up->sandbox && up->o->recreate)
        r = delete_sandbox(up, err);
    if (r == 0)
        r = up->sandbox ? change(up, body, mark, err) : create(up, body, mark, err);
    if (r == 0)
        r = wake(up, err);
    up->id = member_text(up->sandbox, "id");
    return r;
}

/* ---- files ---- */

static int copy_one(const struct up *up, const char *text, struct err *err)
{
    const struct transfer t = { .cli = up->cli };
    const char *to = strrchr(text, ':') + 1;
    _cleanup_free_ char *from = xstrndup(text, (size_t)(to - 1 - text));
    _cleanup_free_ char *here = *from == '/' ? xstrdup(from) : place_join(up->p->dir, from);
    _cleanup_free_ char *name = place_name(from);
    bool into = to[strlen(to) - 1] == '/' && *name && strcmp(name, ".") != 0;
    _cleanup_free_ char *target = into ? place_join(to, name) : xstrdup(to);
    return transfer_put_path(&t, here, up->id, target, err);
}

/* ---- the start command ---- */

static int find_started(const struct up *up, json_t **ret_process, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", up->id, "processes", NULL);
    _cleanup_json_ json_t *list = NULL;
    json_t *one;
    size_t i;
    *ret_process = NULL;
    int r = pages_read(up->cli, path, "processes", &list, err);
    json_array_foreach(list, i, one) {
        if (strcmp(member_text(one, "label"), LABEL) == 0 &&
            strcmp(member_text(one, "state"), "running") == 0 && !*ret_process)
            *ret_process = json_incref(one);
    }
    return r;
}

/* Asked to end, and killed with all it started where it does not. */
static int end_process(const struct up *up, const json_t *process, struct err *err)
{
    static const char *const signals[] = { "SIGTERM", "SIGKILL" };
    _cleanup_free_ char *number = xasprintf("%" PRId64, member_int(process, "process"));
    _cleanup_free_ char *signal_path =
        api_path("sandboxes", up->id, "processes", number, "signal", NULL);
    _cleanup_free_ char *wait_path =
        api_path("sandboxes", up->id, "processes", number, "wait", NULL);
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        _cleanup_json_ json_t *body = json_pack("{s:s,s:s}", "signal", signals[i], "scope", "tree");
        _cleanup_(request_done) struct request call = { .method = "GET",
                                                        .path = wait_path,
                                                        .timeout_s = END_TIMEOUT_S };
        *err = (struct err)ERR_INIT;
        (void)cli_call(up->cli, "POST", signal_path, body, NULL, NULL); /* it may have ended */
        r = client_perform(cli_client(up->cli, err), &call, err);
        if (r == 0)
            return 0;
    }
    return err_wrap(err, r, "the start command that runs does not end");
}

static int start(const struct up *up, json_t **ret_process, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", up->id, "processes", NULL);
    _cleanup_json_ json_t *running = NULL;
    int r = find_started(up, &running, err);
    if (r < 0)
        return r;
    if (running && up->p->start && !up->o->restart &&
        json_equal(json_object_get(running, "argv"), up->p->start)) {
        *ret_process = take_ptr(running);
        return 0;
    }
    if (running)
        r = end_process(up, running, err);
    if (r < 0 || !up->p->start)
        return r;
    _cleanup_json_ json_t *body = json_pack("{s:O,s:s}", "argv", up->p->start, "label", LABEL);
    return cli_call(up->cli, "POST", path, body, ret_process, err);
}

/* ---- its ports ---- */

static const json_t *find_port(const json_t *list, int64_t port)
{
    const json_t *one;
    size_t i;
    json_array_foreach(list, i, one) {
        if (member_int(one, "port") == port)
            return one;
    }
    return NULL;
}

static int check_alive(const struct up *up, const json_t *process, struct err *err)
{
    _cleanup_free_ char *number = xasprintf("%" PRId64, member_int(process, "process"));
    _cleanup_free_ char *path = api_path("sandboxes", up->id, "processes", number, NULL);
    _cleanup_json_ json_t *now = NULL;
    int r = cli_call(up->cli, "GET", path, NULL, &now, err);
    if (r == 0 && strcmp(member_text(now, "state"), "ended") == 0)
        return err_set(err, ECHILD,
                       "the start command ended; `warren logs %s` shows what it printed",
                       up->p->name);
    return r;
}

/* Waits until all listen, while the start command runs; without one, tells what is there. */
static int tell_ports(const struct up *up, const json_t *process, struct err *err)
{
    _cleanup_free_ char *path = api_path("sandboxes", up->id, "ports", NULL);
    int64_t until = clock_mono_ms() + LISTEN_MS;
    for (size_t next = 0; next < up->p->nports;) {
        _cleanup_json_ json_t *list = NULL;
        int r = pages_read(up->cli, path, "ports", &list, err);
        if (r < 0)
            return r;
        const json_t *port;
        for (; next < up->p->nports && (port = find_port(list, up->p->ports[next])); next++)
            cli_note("port %" PRId64 " answers at %s", up->p->ports[next],
                     member_text(port, "url"));
        if (next == up->p->nports)
            break;
        r = process ? check_alive(up, process, err) : 0;
        if (r < 0)
            return r;
        if (!process || clock_mono_ms() >= until)
            return err_set(err, ETIMEDOUT, "nothing listens on port %" PRId64 " yet",
                           up->p->ports[next]);
        (void)poll(NULL, 0, LOOK_MS);
    }
    return 0;
}

/* ---- the commands ---- */

static int do_up(struct up *up, struct err *err)
{
    _cleanup_json_ json_t *process = NULL;
    int r = bring_up(up, err);
    for (size_t i = 0; i < up->p->copy.n && r == 0; i++)
        r = copy_one(up, up->p->copy.items[i], err);
    if (r == 0)
        r = start(up, &process, err);
    if (r == 0)
        cli_print_answer(up->cli, up->sandbox, "id");
    return r < 0 ? r : tell_ports(up, process, err);
}

static int run_up(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct up_opts *o = opts;
    _cleanup_(project_freep) struct project *p = NULL;
    struct up up = { .cli = cli, .o = o };
    struct err err = ERR_INIT;
    if (project_read(o->file, &p, &err) < 0)
        return cli_fail(cli, &err);
    up.p = p;
    if (p->build) {
        _cleanup_free_ char *dir =
            *p->build == '/' ? xstrdup(p->build) : place_join(p->dir, p->build);
        _cleanup_free_ char *file = p->dockerfile ? place_join(dir, p->dockerfile) : NULL;
        int status = image_build(cli, p->image, file, dir);
        if (status != 0)
            return status;
    }
    int r = do_up(&up, &err);
    json_decref(up.sandbox);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_up = {
    .name = "up",
    .summary = "Make or update the sandbox that warren.toml describes",
    .synopsis = "[OPTIONS]",
    .description =
        "Reads warren.toml and has its sandbox be what it says: builds the image, makes volumes that "
        "are missing, makes the sandbox or changes the one there is, starts it, copies files in, "
        "starts its command unless that runs already, waits until its ports listen, and prints the "
        "sandbox's id. Done again, it changes what the file says otherwise now; settings that the "
        "file no longer names stay, but for env.\n\n"
        "Image, volumes, user and workdir are a sandbox's for life: when they are others, it says so, "
        "and --recreate makes a new sandbox without the old one's files. A sandbox of that name which "
        "it did not make is left alone.\n\n"
        "`warren init` writes a file with every key explained; docs/cli.md lists them.",
    .examples =
        (const struct example[]){ { "A new project", "warren init && warren up" },
                                  { "After a change of the Dockerfile", "warren up --recreate" },
                                  { "Look around in it", "warren shell NAME" },
                                  { NULL, NULL } },
    COMMAND_OPTS(up_table, struct up_opts),
    .stop_after = OPTS_ALL,
    .run = run_up,
};

/* ---- down ---- */

struct down_opts {
    const char *file;
    bool volumes;
};

static const struct opt down_table[] = {
    { 'f', "file", OPT_TEXT, offsetof(struct down_opts, file), "FILE",
      "The project file. Default: warren.toml.", "@file" },
    { 0, "volumes", OPT_FLAG, offsetof(struct down_opts, volumes), NULL,
      "Delete its volumes, too, with all that is in them.", NULL },
};

static int remove_volume(struct cli *cli, const char *text, struct err *err)
{
    _cleanup_free_ char *name = xstrndup(text, strcspn(text, ":"));
    _cleanup_free_ char *path = api_path("volumes", name, NULL);
    char code[REQUEST_CODE_MAX] = "";
    int r = cli_call_code(cli, "DELETE", path, NULL, NULL, code, err);
    return r < 0 && strcmp(code, "volume_not_found") == 0 ? 0 : r;
}

static int run_down(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct down_opts *o = opts;
    _cleanup_(project_freep) struct project *p = NULL;
    struct up down = { .cli = cli };
    struct err err = ERR_INIT;
    int r = project_read(o->file, &p, &err);
    down.p = p;
    if (r == 0)
        r = find_sandbox(&down, &err);
    bool there = r == 0 && down.sandbox;
    if (there)
        r = delete_sandbox(&down, &err);
    for (size_t i = 0; r == 0 && o->volumes && i < p->shape.volumes.n; i++)
        r = remove_volume(cli, p->shape.volumes.items[i], &err);
    json_decref(down.sandbox);
    if (r < 0)
        return cli_fail(cli, &err);
    if (there && !cli->json)
        (void)printf("%s\n", p->name);
    return 0;
}

const struct command cmd_down = {
    .name = "down",
    .summary = "Delete the sandbox that warren.toml describes",
    .synopsis = "[OPTIONS]",
    .description =
        "Deletes the sandbox that `warren up` made, with its files, whatever it is doing. "
        "Volumes and the image stay, unless --volumes is given. It is no failure if the "
        "sandbox is gone already.",
    .examples = (const struct example[]){ { "Away with it", "warren down" },
                                          { "And with what it kept", "warren down --volumes" },
                                          { NULL, NULL } },
    COMMAND_OPTS(down_table, struct down_opts),
    .stop_after = OPTS_ALL,
    .run = run_down,
};
