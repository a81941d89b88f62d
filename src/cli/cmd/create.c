#include "cli/commands.h"
#include "cli/object.h"
#include "cli/shape.h"

struct create_opts {
    struct shape shape;
};

static const struct opt create_table[] = {
    SHAPE_TEMPLATE_OPTS(struct create_opts), SHAPE_IMAGE_OPTS(struct create_opts),
    SHAPE_LIMIT_OPTS(struct create_opts),    SHAPE_MAKE_OPTS(struct create_opts),
    SHAPE_NET_OPTS(struct create_opts),      SHAPE_LIFE_OPTS(struct create_opts),
};

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct create_opts *o = opts;
    _cleanup_json_ json_t *body = NULL;
    _cleanup_json_ json_t *sandbox = NULL;
    _cleanup_free_ char *path = api_path("sandboxes", NULL);
    struct err err = ERR_INIT;
    if (shape_body(&o->shape, &body, &err) < 0 ||
        cli_call(cli, "POST", path, body, &sandbox, &err) < 0)
        return cli_fail(cli, &err);
    cli_print_answer(cli, sandbox, "id");
    return 0;
}

const struct command cmd_create = {
    .name = "create",
    .summary = "Make a sandbox and print its id",
    .synopsis = "[OPTIONS]",
    .description =
        "Makes a sandbox that runs until it is stopped, deleted, or its time is up, and prints "
        "its id. What is not said takes the daemon's defaults.",
    .examples =
        (const struct example[]){
            { "With a name", "warren create --name box" },
            { "Small, and gone in an hour", "warren create --memory 128m --cpus 0.5 --timeout 1h" },
            { "From a template, ready when its id is printed", "warren create --template web" },
            { "Stopped when nobody used it for ten minutes",
              "warren create --idle-timeout 10m --on-idle stop" },
            { "That may reach one site", "warren create --rule 'allow *.example.com 443'" },
            { "With a key that it never sees",
              "warren create --bind 'openai@api.openai.com/v1/* as=bearer'" },
            { "Remember its id", "id=$(warren create) && warren exec $id hostname" },
            { NULL, NULL } },
    COMMAND_OPTS(create_table, struct create_opts),
    .stop_after = OPTS_ALL,
    .run = run,
};
