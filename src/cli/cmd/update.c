#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/shape.h"

struct update_opts {
    struct shape shape;
    struct opt_list unset_metadata, unset_env;
    bool no_name, no_bindings;
};

#define AT(member_) offsetof(struct update_opts, member_)
static const struct opt update_table[] = {
    { 'n', "name", OPT_TEXT, AT(shape.name), "NAME", "A new name.", NULL },
    { 0, "no-name", OPT_FLAG, AT(no_name), NULL, "Take its name away.", NULL },
    { 0, "metadata", OPT_PAIRS, AT(shape.metadata), "NAME=VALUE",
      "Set a label; the others stay. May be given again.", NULL },
    { 0, "unset-metadata", OPT_LIST, AT(unset_metadata), "NAME", "Take a label away.", NULL },
    { 'e', "env", OPT_PAIRS, AT(shape.env), "NAME=VALUE",
      "Set a variable for commands started from now on; the others stay.", NULL },
    { 0, "unset-env", OPT_LIST, AT(unset_env), "NAME", "Take a variable away.", NULL },
    SHAPE_LIMIT_ROWS(struct update_opts, "", "", "", ""),
    SHAPE_NET_OPTS(struct update_opts),
    { 0, "no-bindings", OPT_FLAG, AT(no_bindings), NULL, "Take all its bindings away.", NULL },
    SHAPE_LIFE_OPTS(struct update_opts),
};

/* The API replaces a map as a whole: change the present one. */
static int merge(json_t *body, const json_t *now, const char *member, const struct opt_list *set,
                 const struct opt_list *unset, struct err *err)
{
    if (set->n == 0 && unset->n == 0)
        return 0;
    json_t *map = json_deep_copy(json_object_get(now, member));
    if (!json_is_object(map)) {
        json_decref(map);
        map = json_object();
    }
    (void)json_object_set_new(body, member, map);
    for (size_t i = 0; i < unset->n; i++)
        (void)json_object_del(map, unset->items[i]);
    return object_pairs(body, member, set->items, set->n, err);
}

static int change(struct cli *cli, const struct update_opts *o, const char *path,
                  json_t **ret_sandbox, struct err *err)
{
    _cleanup_json_ json_t *body = NULL;
    _cleanup_json_ json_t *now = NULL;
    struct shape plain = o->shape;
    plain.env = plain.metadata = (struct opt_list){ 0 };
    int r = shape_body(&plain, &body, err);
    if (r < 0)
        return r;
    if (o->no_name)
        (void)json_object_set_new(body, "name", json_null());
    if (o->no_bindings)
        (void)json_object_set_new(body, "bindings", json_array());
    if (o->shape.metadata.n || o->shape.env.n || o->unset_metadata.n || o->unset_env.n) {
        r = cli_call(cli, "GET", path, NULL, &now, err);
        if (r == 0)
            r = merge(body, now, "metadata", &o->shape.metadata, &o->unset_metadata, err);
        if (r == 0)
            r = merge(body, now, "env", &o->shape.env, &o->unset_env, err);
        if (r < 0)
            return r;
    }
    return cli_call(cli, "PATCH", path, body, ret_sandbox, err);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct update_opts *o = opts;
    _cleanup_free_ char *path = api_path("sandboxes", argv[0], NULL);
    _cleanup_json_ json_t *sandbox = NULL;
    struct err err = ERR_INIT;
    if (!*argv[0])
        return cli_usage(cli, "an empty word names no sandbox");
    if (o->no_bindings && o->shape.bindings.n)
        return cli_usage(cli, "--bind replaces all bindings: --no-bindings is not needed");
    if (change(cli, o, path, &sandbox, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, sandbox, "id");
    return 0;
}

const struct command cmd_update = {
    .name = "update",
    .summary = "Change a sandbox: name, labels, limits, end of life",
    .synopsis = "OPTIONS SANDBOX",
    .description =
        "Changes what the options say and nothing else, also while the sandbox runs. A --timeout "
        "counts from now; --timeout none takes the end of life away.",
    .examples =
        (const struct example[]){
            { "Another hour", "warren update --timeout 1h box" },
            { "More memory", "warren update --memory 2g box" },
            { "Another key, from the next request on (--bind replaces them all)",
              "warren update --bind 'github@github.com/my-org/* as=git' box" },
            { "Relabel", "warren update --metadata stage=done --unset-metadata owner box" },
            { NULL, NULL } },
    COMMAND_OPTS(update_table, struct update_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@sandbox",
    .run = run,
};
