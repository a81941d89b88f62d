#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/attack/attack.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/term.h"
#include "cli/xmem.h"

struct attack_opts {
    struct opt_list only;
    const char *image, *at;
    bool list, keep, harmful;
};

static const struct opt attack_table[] = {
    { 0, "only", OPT_LIST, offsetof(struct attack_opts, only), "WORD",
      "Attempts of this name or category; may be given again.",
      "calls namespaces mounts proc devices init sockets network identity limits disk volumes shared "
      "http api tenants files archives life egress host previews" },
    { 0, "image", OPT_TEXT, offsetof(struct attack_opts, image), "IMAGE",
      "The image of the throw-away sandboxes. Default base.", "@image" },
    { 0, "at", OPT_TEXT, offsetof(struct attack_opts, at), "URL",
      "Where the API listens by TCP, if not http://127.0.0.1:7070: some attempts need that port.",
      NULL },
    { 0, "harmful", OPT_FLAG, offsetof(struct attack_opts, harmful), NULL,
      "Also make attempts that could harm a vulnerable daemon. Not where others work.", NULL },
    { 0, "keep", OPT_FLAG, offsetof(struct attack_opts, keep), NULL,
      "Keep the teams and sandboxes afterwards.", NULL },
    { 0, "list", OPT_FLAG, offsetof(struct attack_opts, list), NULL,
      "Show the attempts and try none; needs no daemon.", NULL },
};

static const struct attempt_table *const tables[] = {
    &attack_http,     &attack_api,      &attack_tenants, &attack_files,
    &attack_archives, &attack_volumes,  &attack_life,    &attack_egress,
    &attack_host,     &attack_previews, &attack_absent,
};

static bool wanted(const struct attack_opts *o, const char *name, const char *category)
{
    for (size_t i = 0; i < o->only.n; i++)
        if (strcmp(o->only.items[i], name) == 0 || strcmp(o->only.items[i], category) == 0)
            return true;
    return o->only.n == 0;
}

static size_t count(const struct attack_opts *o, const struct inside_list *inside)
{
    size_t n = 0;
    for (size_t i = 0; i < inside->n; i++)
        n += wanted(o, inside->rows[i].name, inside->rows[i].category);
    for (size_t k = 0; k < ARRAY_LEN(tables); k++)
        for (size_t i = 0; i < tables[k]->n; i++)
            n += wanted(o, tables[k]->rows[i].name, tables[k]->rows[i].category);
    return n;
}

static void put_listed(struct listing *l, json_t *all, const char *name, const char *category,
                       const char *title, bool harmful)
{
    listing_text(l, name);
    listing_text(l, category);
    listing_text(l, harmful ? "--harmful" : "");
    listing_text(l, title);
    (void)json_array_append_new(all, json_pack("{s:s,s:s,s:s,s:b}", "name", name, "category",
                                               category, "title", title, "harmful", harmful));
}

static int print_list(const struct cli *cli, const struct attack_opts *o,
                      const struct inside_list *inside)
{
    static const struct column columns[] = {
        { "ATTEMPT", false }, { "CATEGORY", false }, { "NEEDS", false }, { "WHAT", false }
    };
    _cleanup_json_ json_t *all = json_array();
    struct listing l;
    listing_init(&l, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < inside->n; i++)
        if (wanted(o, inside->rows[i].name, inside->rows[i].category))
            put_listed(&l, all, inside->rows[i].name, inside->rows[i].category,
                       inside->rows[i].title, false);
    for (size_t k = 0; k < ARRAY_LEN(tables); k++)
        for (size_t i = 0; i < tables[k]->n; i++) {
            const struct attempt_row *row = &tables[k]->rows[i];
            if (wanted(o, row->name, row->category))
                put_listed(&l, all, row->name, row->category, row->title, row->harmful);
        }
    if (cli->json)
        cli_print_json(all);
    else
        listing_print(&l, stdout, 0);
    listing_done(&l);
    return 0;
}

/* On Ctrl-C, remove what was made and show the results so far. */
static bool stopped(struct attack *a)
{
    a->stopped = a->stopped || signals_next() != 0;
    return a->stopped;
}

static void try_inside(struct attack *a, const struct attack_opts *o,
                       const struct inside_list *list, bool shared, struct report *report)
{
    for (size_t i = 0; i < list->n && !stopped(a); i++) {
        const struct inside_row *row = &list->rows[i];
        struct trial t = { 0 };
        int64_t began = clock_mono_ms();
        if (!wanted(o, row->name, row->category) || shared != (strchr(row->flags, 'h') != NULL))
            continue;
        report_now(report, row->name);
        if (shared)
            shared_run(a, row, &t);
        else
            inside_run(a, row, &t);
        t.took_ms = clock_mono_ms() - began;
        report_add(report, row->name, row->category, row->title, &t);
    }
}

/* Try the rows that could do harm, or those that could not. */
static void try_table(struct attack *a, const struct attack_opts *o,
                      const struct attempt_table *table, bool harmful, struct report *report)
{
    for (size_t i = 0; i < table->n && !stopped(a); i++) {
        const struct attempt_row *row = &table->rows[i];
        struct trial t = { 0 };
        int64_t began = clock_mono_ms();
        if (!wanted(o, row->name, row->category) || row->harmful != harmful)
            continue;
        report_now(report, row->name);
        if (row->harmful && !o->harmful)
            trial_not_here(&t, "not run: needs --harmful");
        else
            row->run(a, row, &t);
        if (!t.said)
            trial_error(&t, "the attempt gave no verdict");
        t.took_ms = clock_mono_ms() - began;
        report_add(report, row->name, row->category, row->title, &t);
    }
}

static int run_on(struct cli *cli, const struct attack_opts *o, const struct inside_list *inside,
                  size_t planned)
{
    struct err err = ERR_INIT;
    struct report report;
    struct attack a = { .cli = cli,
                        .admin = cli_client(cli, &err),
                        .image = o->image ? o->image : "base",
                        .harmful = o->harmful,
                        .url = o->at ? xstrdup(o->at) : NULL };
    if (!a.admin || signals_catch(false, &err) < 0 || stage_set(&a, &err) < 0) {
        stage_strike(&a, false);
        (void)cli_fail(cli, &err);
        return STATUS_USAGE;
    }
    report_begin(&report, cli->json, planned);
    try_inside(&a, o, inside, false, &report);
    for (size_t k = 0; k < ARRAY_LEN(tables); k++)
        try_table(&a, o, tables[k], false, &report);
    try_inside(&a, o, inside, true, &report);
    for (size_t k = 0; k < ARRAY_LEN(tables); k++) /* last, since the daemon may not survive them */
        try_table(&a, o, tables[k], true, &report);
    stage_strike(&a, o->keep);
    int status = report_end(&report);
    return status == 0 && a.stopped ? STATUS_USAGE : status;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct attack_opts *o = opts;
    struct inside_list inside = { NULL, 0 };
    struct err err = ERR_INIT;
    int status = STATUS_USAGE;
    if (inside_list(&inside, &err) < 0) {
        (void)cli_fail(cli, &err);
        return status;
    }
    size_t planned = count(o, &inside);
    if (planned == 0)
        status = cli_usage(cli, "no attempt has that name or category; --list shows them");
    else
        status = o->list ? print_list(cli, o, &inside) : run_on(cli, o, &inside, planned);
    inside_list_done(&inside);
    return status;
}

const struct command cmd_attack = {
    .name = "attack",
    .summary = "Try the walls of this daemon as an attacker would",
    .synopsis = "[OPTIONS]",
    .description =
        "Makes two throw-away teams with sandboxes, tries several hundred attacks from inside and "
        "from outside, and says of each whether the wall held, broke, or does not apply here, and "
        "why. Everything it made is removed afterwards. Other sandboxes are not touched; attempts "
        "that could harm a vulnerable daemon run with --harmful only. Takes some minutes.\n\n"
        "While one sandbox takes all of something that sandboxes share, a sandbox of the other "
        "team must still get its part, and the table shows how much slower its commands were.\n\n"
        "Needs the operator's rights: root on the admin socket, or an admin's key.",
    .exit_status = "0  every wall held\n"
                   "1  a wall broke\n"
                   "2  some or all attempts could not be made",
    .examples =
        (const struct example[]){
            { "All of it", "sudo warren attack" },
            { "One attempt, one category", "sudo warren attack --only mount-proc --only http" },
            { "What broke, for a script",
              "warren attack --json | jq '.attempts[] | select(.verdict == \"broke\")'" },
            { "What would be tried", "warren attack --list" },
            { NULL, NULL } },
    COMMAND_OPTS(attack_table, struct attack_opts),
    .stop_after = OPTS_ALL,
    .fail_status = STATUS_USAGE,
    .run = run,
};
