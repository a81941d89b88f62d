#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/table.h"
#include "cli/units.h"

static void line(const char *what, const char *value)
{
    _cleanup_free_ char *safe = text_line(value);
    if (*safe)
        (void)printf("%-13s %s\n", what, safe);
}

static void words(const json_t *config, const char *name)
{
    _cleanup_free_ char *all = member_words(config, name, " ");
    line(name, all);
}

static void pairs(const char *what, const json_t *map)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)map, name, v) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1u << 20);
        (void)buf_printf(&b, "%s=%s", name, json_string_value(v) ? json_string_value(v) : "");
        line(what, b.data ? b.data : "");
    }
}

static void put_layer(struct listing *t, const json_t *l)
{
    cell_text(t, l, "digest");
    cell_size(t, l, "size_bytes");
    cell_size(t, l, "compressed_bytes");
    cell_text(t, l, "created_by");
}

static void layers(const json_t *list)
{
    static const struct column columns[] = {
        { "LAYER", false },
        { "SIZE", true },
        { "PACKED", true },
        { "MADE BY", false },
    };
    static const struct table table = TABLE(columns, put_layer);
    (void)putchar('\n');
    table_print(&table, list, SIZE_MAX);
}

static void print_image(const json_t *image)
{
    const json_t *config = json_object_get(image, "config");
    char text[UNIT_TEXT_MAX];
    line("name", member_text(image, "name"));
    line("id", member_text(image, "id"));
    line("digest", member_text(image, "digest"));
    line("size", size_text(member_int(image, "size_bytes"), text));
    line("shared", size_text(member_int(image, "shared_bytes"), text));
    line("os", member_text(image, "os"));
    line("architecture", member_text(image, "architecture"));
    line("created", member_text(image, "created_at"));
    line("public", member_true(image, "public") ? "yes" : "no");
    line("user", member_text(config, "user"));
    line("workdir", member_text(config, "workdir"));
    words(config, "entrypoint");
    words(config, "cmd");
    words(config, "ports");
    pairs("env", json_object_get(config, "env"));
    pairs("label", json_object_get(config, "labels"));
    layers(json_object_get(image, "layer_list"));
}

static int run_inspect(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_free_ char *path = api_path("images", argv[0], NULL);
    _cleanup_json_ json_t *image = NULL;
    struct err err = ERR_INIT;
    if (cli_call(cli, "GET", path, NULL, &image, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(image);
    else
        print_image(image);
    return 0;
}

static void put_step(struct listing *t, const json_t *step)
{
    cell_age(t, step, "created_at");
    if (member_true(step, "empty"))
        listing_text(t, NULL);
    else
        cell_size(t, step, "size_bytes");
    cell_text(t, step, "created_by");
}

static int run_history(struct cli *cli, const void *opts, int argc, char **argv)
{
    static const struct column columns[] = {
        { "AGE", true },
        { "SIZE", true },
        { "MADE BY", false },
    };
    static const struct table table = TABLE(columns, put_step);
    _cleanup_free_ char *path = api_path("images", argv[0], "history", NULL);
    _cleanup_json_ json_t *answer = NULL;
    struct err err = ERR_INIT;
    if (cli_call(cli, "GET", path, NULL, &answer, &err) < 0)
        return cli_fail(cli, &err);
    const json_t *list = json_object_get(answer, "history");
    if (cli->json)
        cli_print_json(list);
    else
        table_print(&table, list, SIZE_MAX);
    return 0;
}

const struct command cmd_image_inspect = {
    .name = "image inspect",
    .summary = "Show all there is to know about an image",
    .synopsis = "IMAGE",
    .description = "Shows an image: its digests, what it takes and shares, what sandboxes take "
                   "from it (environment, user, directory), and its layers, lowest first.",
    .examples = (const struct example[]){ { "For reading", "warren image inspect base" },
                                          { "One member, for a script",
                                            "warren image inspect --json base | jq -r .digest" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@image",
    .run = run_inspect,
};

const struct command cmd_image_history = {
    .name = "image history",
    .alias = "history",
    .summary = "Show the steps that made an image",
    .synopsis = "IMAGE",
    .description = "Shows what made an image, newest first, and what each step added; a step "
                   "without a size changed only settings.",
    .examples =
        (const struct example[]){ { "All steps", "warren image history app:v2" }, { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@image",
    .run = run_history,
};
