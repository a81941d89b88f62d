#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/units.h"

static void line(const char *name, const char *value)
{
    _cleanup_free_ char *text = text_line(value);
    if (*text)
        (void)printf("%-10s %s\n", name, text);
}

static void moment_line(const char *name, const json_t *s, const char *member, int64_t now)
{
    char age[UNIT_TEXT_MAX];
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    int64_t at = member_moment(s, member);
    if (at == 0)
        return;
    (void)duration_text(at < now ? now - at : at - now, age);
    (void)buf_printf(&b, at < now ? "%s (%s ago)" : "%s (in %s)", member_text(s, member), age);
    line(name, b.data);
}

/* A limit in time and what happens then: "30 m of idleness, then stop". */
static void timer_line(const char *name, const json_t *s, const char *member, const char *action)
{
    char text[UNIT_TEXT_MAX];
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    double seconds = member_real(s, member);
    if (seconds <= 0)
        return;
    (void)buf_printf(&b, "after %s: %s", duration_text((int64_t)(seconds * 1000), text),
                     member_text(s, action));
    line(name, b.data);
}

static void freeze_line(const json_t *s)
{
    char text[UNIT_TEXT_MAX];
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);
    int64_t ms = (int64_t)(member_real(s, "freeze_after_s") * 1000);
    if (ms > 0 && buf_printf(&b, "after %s of idleness", duration_text(ms, text)) >= 0)
        line("freeze", b.data);
}

/* Which checkpoints it takes by itself. */
static void policy_line(const json_t *policy)
{
    char text[UNIT_TEXT_MAX];
    const char *rule;
    json_t *value;
    _cleanup_(buf_done) struct buf b = BUF_INIT(1024);
    int64_t every = (int64_t)(member_real(policy, "every_s") * 1000);
    if (!json_is_object(policy))
        return;
    if (every > 0)
        (void)buf_printf(&b, "every %s, ", duration_text(every, text));
    if (json_is_true(json_object_get(policy, "before_each_command")))
        (void)buf_printf(&b, "before each command, ");
    if (json_is_true(json_object_get(policy, "on_stop")))
        (void)buf_printf(&b, "on stop, ");
    json_object_foreach(json_object_get(policy, "keep"), rule, value) {
        if (json_number_value(value) > 0)
            (void)buf_printf(&b, "keeps %s=%s, ", rule, real_text(json_number_value(value), text));
    }
    if (b.len > 2)
        b.data[b.len - 2] = '\0';
    line("saves", b.len ? b.data : "");
}

static void map_lines(const char *name, const json_t *map)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)map, key, value) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4u << 20);
        (void)buf_printf(&b, "%s=%s", key, json_is_string(value) ? json_string_value(value) : "");
        line(name, b.data);
        name = "";
    }
}

/* `warren bindings` tells more. */
static void binding_lines(const char *name, const json_t *list)
{
    const json_t *b;
    size_t i;
    json_array_foreach(list, i, b) {
        _cleanup_(buf_done) struct buf text = BUF_INIT(8192);
        const char *secret = member_text(b, "secret");
        (void)buf_printf(&text, "%s@%s:%d%s", *secret ? secret : "value", member_text(b, "host"),
                         (int)member_int(b, "port"), member_text(b, "path"));
        line(name, text.data);
        name = "";
    }
}

/* A word, or rules, one below the other; and what they go through. */
static void network_lines(const json_t *network)
{
    const char *name = "network", *proxy = member_text(network, "proxy");
    const json_t *rule;
    size_t i;
    line(name,
         json_is_string(network) ? json_string_value(network) : member_text(network, "preset"));
    json_array_foreach(member_list(network, "rules"), i, rule) {
        line(name, json_string_value(rule));
        name = "";
    }
    line("proxy", proxy);
}

static void limits_line(const json_t *limits)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1024);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)limits, key, value) {
        if (json_is_integer(value))
            (void)buf_printf(&b, "%s%s=%lld", b.len ? ", " : "", key,
                             (long long)json_integer_value(value));
    }
    line("net limits", b.len ? b.data : "");
}

static void volume_lines(const json_t *volumes)
{
    const char *name = "volumes";
    const json_t *v;
    size_t i;
    json_array_foreach(volumes, i, v) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        (void)buf_printf(&b, "%s:%s%s", member_text(v, "volume"), member_text(v, "path"),
                         member_true(v, "read_only") ? ":ro" : "");
        line(name, b.data);
        name = "";
    }
}

static void print_sandbox(const json_t *s)
{
    char text[UNIT_TEXT_MAX];
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    int64_t now = clock_now_ms();
    line("id", member_text(s, "id"));
    line("name", member_text(s, "name"));
    const char *cause = member_text(s, "stop_cause");
    if (strcmp(cause, "stopped") == 0) /* somebody asked for it: the state says as much */
        cause = "";
    (void)buf_printf(&b, "%s%s%s%s", member_text(s, "state"), *cause ? " (" : "", cause,
                     *cause ? ")" : "");
    line("state", b.data);
    line("image", member_text(s, "image"));
    line("template", member_text(s, "template"));
    line("forked", member_text(s, "forked_from"));
    line("cpus", real_text(member_real(s, "cpus"), text));
    line("memory", size_text(member_int(s, "memory_mb") << 20, text));
    line("disk", size_text(member_int(s, "disk_mb") << 20, text));
    (void)printf("%-10s %lld\n", "pids", (long long)member_int(s, "pids"));
    line("user", member_text(s, "user"));
    line("workdir", member_text(s, "workdir"));
    moment_line("created", s, "created_at", now);
    moment_line("started", s, "started_at", now);
    moment_line("stopped", s, "stopped_at", now);
    moment_line("active", s, "last_active_at", now);
    moment_line("expires", s, "expires_at", now);
    timer_line("timeout", s, "timeout_s", "on_timeout");
    timer_line("idle", s, "idle_timeout_s", "on_idle");
    freeze_line(s);
    moment_line("frozen", s, "frozen_at", now);
    moment_line("awake", s, "awake_until", now);
    policy_line(json_object_get(s, "checkpoints"));
    volume_lines(member_list(s, "volumes"));
    network_lines(json_object_get(s, "network"));
    limits_line(json_object_get(s, "network_limits"));
    binding_lines("bindings", member_list(s, "bindings"));
    line("preview", member_text(s, "preview"));
    line("wake", member_text(s, "wake"));
    line("restart", member_text(s, "restart"));
    map_lines("env", json_object_get(s, "env"));
    map_lines("metadata", json_object_get(s, "metadata"));
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_json_ json_t *all = json_array();
    int status = 0, shown = 0;
    for (int i = 0; i < argc; i++) {
        _cleanup_free_ char *path = api_path("sandboxes", argv[i], NULL);
        struct err err = ERR_INIT;
        json_t *s = NULL;
        if (!*argv[i])
            return cli_usage(cli, "an empty word names no sandbox");
        if (cli_call(cli, "GET", path, NULL, &s, &err) < 0) {
            status = cli_fail(cli, &err);
            continue;
        }
        if (!cli->json) {
            if (shown++)
                (void)putchar('\n');
            print_sandbox(s);
        }
        (void)json_array_append_new(all, s);
    }
    if (cli->json && json_array_size(all) > 0)
        cli_print_json(argc == 1 ? json_array_get(all, 0) : all);
    return status;
}

const struct command cmd_get = {
    .name = "get",
    .alias = "inspect",
    .summary = "Show all there is to know about a sandbox",
    .synopsis = "SANDBOX...",
    .description =
        "Shows each sandbox: what it was made with, its state and since when, and when it will "
        "end. With --json, the API's own object; a list of them where several are asked for.",
    .examples = (const struct example[]){ { "For reading", "warren get box" },
                                          { "One member, for a script",
                                            "warren get --json box | jq -r .state" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run,
};
