#include <string.h>

#include "cli/colour.h"
#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/units.h"
#include "cli/xmem.h"

static const char *mark_text(enum finding_mark mark)
{
    switch (mark) {
    case FINDING_OK: return "\xe2\x9c\x93"; /* a check mark */
    case FINDING_WARN: return "!";
    case FINDING_FAIL: return "\xe2\x9c\x97"; /* a cross */
    }
    return "?";
}

static const char *mark_name(enum finding_mark mark)
{
    return mark == FINDING_OK ? "ok" : mark == FINDING_WARN ? "warning" : "missing";
}

static enum colour mark_colour(enum finding_mark mark)
{
    return mark == FINDING_OK ? COLOUR_GREEN : mark == FINDING_WARN ? COLOUR_YELLOW : COLOUR_RED;
}

static void print_line(enum finding_mark mark, const char *name, const char *detail,
                       const char *how)
{
    enum colour colour = mark_colour(mark);
    _cleanup_free_ char *label = text_line(name);
    _cleanup_free_ char *text = text_line(detail);
    (void)printf("%s%s%s %-16s %s\n", colour_on(stdout, colour), mark_text(mark),
                 colour_off(stdout, colour), label, text);
    if (*how)
        (void)printf("  %-16s -> %s\n", "", how);
}

static json_t *finding_json(const char *name, const struct finding *f)
{
    return json_pack("{s:s,s:s,s:s,s:s?}", "name", name, "status", mark_name(f->mark), "detail",
                     f->detail, "fix", f->fix[0] ? f->fix : NULL);
}

/* What the daemon says of its host: members are its own to choose, so show what there is. */
static void print_host(const json_t *host, const char *prefix)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)host, name, v) {
        char size[UNIT_TEXT_MAX];
        _cleanup_free_ char *label = xasprintf("%s%s%s", prefix, *prefix ? "." : "", name);
        _cleanup_free_ char *json =
            json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
        const char *end = strstr(label, "_bytes");
        const char *text = json_is_string(v) ? json_string_value(v) : json;
        if (json_is_object(v)) {
            print_host(v, label);
            continue;
        }
        if (end && !end[strlen("_bytes")] && json_is_integer(v)) {
            label[end - label] = '\0';
            text = size_text(json_integer_value(v), size);
        } else if (json_is_boolean(v)) {
            text = json_is_true(v) ? "yes" : "no";
        }
        _cleanup_free_ char *left = text_line(label);
        _cleanup_free_ char *right = text_line(text);
        (void)printf("  %-24s %s\n", left, right);
    }
}

/* A daemon without its keeper answers with a failing status, and still says what it knows. */
static int health_get(struct cli *cli, const char *path, json_t **ret_health, struct err *err)
{
    struct client *client = cli_client(cli, err);
    _cleanup_(
        request_done) struct request call = { .method = "GET", .path = path, .timeout_s = 10 };
    int r = client ? client_perform(client, &call, err) : -1;
    if (r < 0 && !json_object_get(call.json, "keeper"))
        return r;
    *ret_health = take_ptr(call.json);
    return 0;
}

/* A check's line, and its place in the report. */
static void tell(struct cli *cli, const char *name, const struct finding *f, json_t *out)
{
    (void)json_array_append_new(out, finding_json(name, f));
    if (!cli->json)
        print_line(f->mark, name, f->detail, f->fix);
}

/* Run each check of a list and tell; false: something essential is missing. */
static bool look_at_all(struct cli *cli, const struct check *list, size_t n, json_t *out)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        struct finding f = { .mark = FINDING_OK };
        list[i].look(&f);
        ok = ok && f.mark != FINDING_FAIL;
        tell(cli, list[i].name, &f, out);
    }
    return ok;
}

static bool ask_all(struct cli *cli, const json_t *host, bool here, json_t *out)
{
    bool ok = true;
    for (size_t i = 0; i < doctor_daemon_checks_n; i++) {
        const struct daemon_check *c = &doctor_daemon_checks[i];
        struct finding f = { .mark = FINDING_OK };
        if (c->remote && here)
            continue;
        c->look(&f, host);
        ok = ok && f.mark != FINDING_FAIL;
        tell(cli, c->name, &f, out);
    }
    return ok;
}

static void judge_health(struct cli *cli, const json_t *health, struct finding *f)
{
    bool keeper = !json_is_false(json_object_get(health, "keeper"));
    const char *version = member_text(health, "version");
    struct err err = ERR_INIT;
    const struct client *client = cli_client(cli, &err);
    f->mark = keeper ? FINDING_OK : FINDING_FAIL;
    (void)snprintf(f->detail, sizeof(f->detail),
                   "version %.40s at %.80s, %lld sandboxes, keeper %s", version,
                   client ? client_where(client) : "?", (long long)member_int(health, "sandboxes"),
                   keeper ? "running" : "not running");
    if (!keeper) {
        (void)snprintf(f->fix, sizeof(f->fix),
                       "restart the daemon: `sudo ./dev up` or `systemctl restart warren`");
    } else if (strcmp(version, WARREN_VERSION) != 0) {
        f->mark = FINDING_WARN;
        (void)snprintf(f->fix, sizeof(f->fix),
                       "this command is version " WARREN_VERSION
                       ": install the same on both sides");
    }
}

struct daemon_says {
    json_t *health, *host; /* NULL: no answer */
    bool here;             /* on this machine, as far as its address shows */
};

static bool ask_daemon(struct cli *cli, struct daemon_says *says, json_t *checks)
{
    _cleanup_free_ char *health_path = api_path("health", NULL);
    _cleanup_free_ char *host_path = api_path("host", NULL);
    struct err err = ERR_INIT;
    struct finding f = { .mark = FINDING_OK };
    const struct client *client = cli_client(cli, &err);
    says->here = !client || client_is_here(client);
    if (health_get(cli, health_path, &says->health, &err) < 0) {
        f.mark = FINDING_WARN;
        (void)snprintf(f.detail, sizeof(f.detail), "not answering");
        (void)snprintf(f.fix, sizeof(f.fix), "%.*s", FINDING_TEXT_MAX - 1, err.msg);
    } else {
        judge_health(cli, says->health, &f);
        if (cli_call(cli, "GET", host_path, NULL, &says->host, &err) < 0 && f.mark == FINDING_OK) {
            f.mark = FINDING_WARN;
            (void)snprintf(f.fix, sizeof(f.fix), "it does not say more: %.*s",
                           FINDING_TEXT_MAX - 32, err.msg);
        }
    }
    tell(cli, "daemon", &f, checks);
    return f.mark != FINDING_FAIL;
}

/* The kernel, its walls and programs: this command can look at them only here. */
static bool look_here(struct cli *cli, json_t *checks, json_t *walls)
{
    bool ok = look_at_all(cli, doctor_checks, doctor_checks_n, checks);
    if (!cli->json)
        (void)printf("\nThe walls, each with what holds it:\n");
    return look_at_all(cli, doctor_walls, doctor_walls_n, walls) && ok;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_json_ json_t *report = json_object();
    json_t *checks = json_array(), *walls = json_array();
    struct daemon_says says = { .here = true };
    (void)json_object_set_new(report, "checks", checks);
    (void)json_object_set_new(report, "walls", walls);
    bool ok = ask_daemon(cli, &says, checks);
    if (says.host)
        ok = ask_all(cli, says.host, says.here, checks) && ok;
    else if (says.here)
        ok = look_at_all(cli, doctor_future_checks, doctor_future_checks_n, checks) && ok;
    if (says.here)
        ok = look_here(cli, checks, walls) && ok;
    else if (!cli->json)
        (void)printf(
            "\nWhat the daemon cannot see (the walls between sandboxes, what weakens them, "
            "programs) is\nchecked by `warren doctor` on its machine.\n");
    if (says.host) {
        (void)json_object_set(report, "host", says.host);
        if (!cli->json) {
            (void)printf("\nThe daemon reports:\n");
            print_host(says.host, "");
        }
    }
    (void)json_object_set_new(report, "ok", json_boolean(ok));
    if (cli->json)
        cli_print_json(report);
    else
        (void)printf("\n%s\n", ok ? "Nothing essential is missing."
                                  : "Something essential is missing: see the lines with a cross.");
    json_decref(says.health);
    json_decref(says.host);
    return ok ? 0 : 1;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "Check what this machine offers, lacks, and how to get it",
    .synopsis = "",
    .description =
        "Asks the daemon how it is, how full its disk is and which CRIU it found; then looks at the "
        "kernel, its namespaces, control groups and filesystems, at users and programs, at the walls "
        "between sandboxes and what weakens them (processor leaks, SMT, KSM, swap, the kernel's "
        "age). Of a daemon on another machine (--url) it shows what the daemon itself can tell. "
        "Each line is "
        "marked: a check mark for what is there, ! for what is missing but can be done without, a "
        "cross for what is essential and missing; the line below says how to get it. Changes "
        "nothing, and needs no daemon.",
    .exit_status = "0  nothing essential is missing\n"
                   "1  something is\n"
                   "2  the command line makes no sense",
    .examples =
        (const struct example[]){
            { "All checks", "sudo warren doctor" },
            { "What is missing, for a script",
              "warren doctor --json | jq '.checks[] | select(.status != \"ok\")'" },
            { "What weakens the walls",
              "warren doctor --json | jq '.walls[] | select(.status != \"ok\")'" },
            { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run,
};
