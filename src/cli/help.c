/* help - the command table as text a person reads: the overview, and a page for each command. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/colour.h"
#include "cli/sanitise.h"
#include "cli/term.h"
#include "cli/xmem.h"

#define PAGE_WIDTH 88 /* wider lines are hard to read */
#define SCREEN_WIDTH 80
#define INDENT 7 /* as man pages have it */
#define OPTION_INDENT 15

struct page {
    FILE *out;
    size_t width;
    bool bold; /* a terminal that may be written to in bold */
};

static struct page page_of(FILE *out)
{
    size_t width = term_width(fileno(out));
    return (struct page){ .out = out,
                          .width = width >= 40 && width < PAGE_WIDTH ? width : PAGE_WIDTH,
                          .bold = colour_wanted(out) };
}

static void heading(const struct page *p, const char *text)
{
    (void)fprintf(p->out, p->bold ? "\n\x1b[1m%s\x1b[0m\n" : "\n%s\n", text);
}

/* Fill text into lines between indent and the page's width; `at` is where the first one begins. */
static void wrap(const struct page *p, const char *text, size_t indent, size_t at)
{
    bool first = true;
    while (*text) {
        if (*text == '\n') {
            (void)fputs("\n", p->out);
            first = true;
            at = 0;
            text++;
            continue;
        }
        while (*text == ' ')
            text++;
        size_t len = strcspn(text, " \n");
        if (len == 0)
            continue;
        _cleanup_free_ char *word = xstrndup(text, len);
        if (!first && at + 1 + text_width(word) > p->width) {
            (void)fputs("\n", p->out);
            at = 0;
            first = true;
        }
        if (at < indent) {
            (void)fprintf(p->out, "%*s", (int)(indent - at), "");
            at = indent;
        } else if (!first) {
            (void)fputs(" ", p->out);
            at++;
        }
        (void)fputs(word, p->out);
        at += text_width(word);
        first = false;
        text += len;
    }
    (void)fputs("\n", p->out);
}

static void options(const struct page *p, const struct opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct opt *o = &opts[i];
        char letter[8] = "";
        if (o->letter)
            (void)snprintf(letter, sizeof(letter), "-%c, ", o->letter);
        (void)fprintf(p->out, p->bold ? "%*s%s\x1b[1m--%s\x1b[0m%s%s\n" : "%*s%s--%s%s%s\n", INDENT,
                      "", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        wrap(p, o->help, OPTION_INDENT, 0);
    }
}

/* Lines of "status  meaning". */
static void statuses(const struct page *p, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n"), word = strcspn(text, " ");
        (void)fprintf(p->out, "%*s%-*.*s", INDENT, "", OPTION_INDENT - INDENT, (int)word, text);
        _cleanup_free_ char *meaning = xstrndup(text + word, len - word);
        wrap(p, meaning, OPTION_INDENT, OPTION_INDENT);
        text += len + (text[len] == '\n');
    }
}

static void environment(const struct page *p)
{
    static const char *const vars[][2] = {
        { "WARREN_SOCKET", "The daemon's admin socket, as --socket." },
        { "WARREN_RUN", "The daemon's run directory; its socket is warren.sock there." },
        { "WARREN_URL", "The daemon's address, as --url." },
        { "WARREN_API_KEY", "The key to show it, as --key." },
        { "WARREN_CONTEXT", "A daemon that `warren login` knows, as --context." },
        { "WARREN_CA",
          "A file of authorities to trust, beside the system's, at an https address." },
    };
    heading(p, "ENVIRONMENT");
    for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
        (void)fprintf(p->out, "%*s%s\n", INDENT, "", vars[i][0]);
        wrap(p, vars[i][1], OPTION_INDENT, 0);
    }
}

/* Each of its lines is typed by itself. */
static void example(FILE *out, const struct example *e, bool first)
{
    (void)fprintf(out, "%s%*s%s:\n\n", first ? "" : "\n", INDENT, "", e->what);
    for (const char *line = e->line; *line;) {
        size_t n = strcspn(line, "\n");
        (void)fprintf(out, "%*s$ %.*s\n", INDENT + 4, "", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

void help_command(FILE *out, const struct command *c)
{
    struct page p = page_of(out);
    (void)fprintf(out, p.bold ? "\x1b[1mNAME\x1b[0m\n" : "NAME\n");
    (void)fprintf(out, "%*swarren %s - %s\n", INDENT, "", c->name, c->summary);
    heading(&p, "SYNOPSIS");
    (void)fprintf(out, "%*swarren %s%s%s\n", INDENT, "", c->name, *c->synopsis ? " " : "",
                  c->synopsis);
    if (c->alias)
        (void)fprintf(out, "%*swarren %s ...\n", INDENT, "", c->alias);
    heading(&p, "DESCRIPTION");
    wrap(&p, c->description, INDENT, 0);
    if (c->nopts > 0) {
        heading(&p, "OPTIONS");
        options(&p, c->opts, c->nopts);
    }
    heading(&p, "GLOBAL OPTIONS");
    options(&p, global_opts, global_opts_n);
    if (c->examples && c->examples[0].line) {
        heading(&p, "EXAMPLES");
        for (const struct example *e = c->examples; e->line; e++)
            example(out, e, e == c->examples);
    }
    heading(&p, "EXIT STATUS");
    statuses(&p, c->exit_status ? c->exit_status
                                : "0  all went well\n"
                                  "1  something failed; what and why is on standard error\n"
                                  "2  the command line makes no sense");
    environment(&p);
}

void help_overview(FILE *out)
{
    struct page p = page_of(out);
    (void)fprintf(out, "warren - isolated Linux computers in milliseconds\n\n"
                       "usage: warren [OPTIONS] COMMAND ...\n");
    heading(&p, "COMMANDS");
    for (size_t i = 0; i < commands_n; i++)
        if (!commands[i]->hidden)
            (void)fprintf(out, "  %-20s%s\n", commands[i]->name, commands[i]->summary);
    heading(&p, "OPTIONS OF EVERY COMMAND");
    for (size_t i = 0; i < global_opts_n; i++) {
        const struct opt *o = &global_opts[i];
        char spelled[32];
        (void)snprintf(spelled, sizeof(spelled), "--%s%s%s", o->name, o->arg ? " " : "",
                       o->arg ? o->arg : "");
        (void)fprintf(out, "  %-14s", spelled);
        wrap(&p, o->help, 16, 16);
    }
    heading(&p, "EXAMPLES");
    (void)fprintf(out, "  $ warren run echo hello          a program in a sandbox of its own\n"
                       "  $ warren run -it bash            a shell, gone afterwards\n"
                       "  $ warren create --name box       a sandbox that stays\n"
                       "  $ warren exec box python3 -V     a program in it\n"
                       "  $ warren doctor                  what this machine offers and lacks\n"
                       "\n`warren help COMMAND` explains one.\n");
}

/* A command of the screen: its summary is its row's; of a family of commands it stands here. */
struct screen_row {
    const char *word, *summary;
};

#define SCREEN_ROWS_MAX 6

struct screen_group {
    const char *title, *more; /* more commands for the same end */
    struct screen_row rows[SCREEN_ROWS_MAX];
};

static const struct screen_group screen[] = {
    { "Run a program",
      "attach kill wait",
      { { "run", NULL }, { "exec", NULL }, { "shell", NULL }, { "ps", NULL }, { "logs", NULL } } },
    { "Keep a sandbox",
      "get update rename restart pause resume lease init down",
      { { "create", NULL },
        { "up", NULL },
        { "ls", NULL },
        { "stop", NULL },
        { "start", NULL },
        { "rm", NULL } } },
    { "Copy and change files",
      "changes",
      { { "cp", NULL }, { "files", "Look at, search, change and watch files of a sandbox" } } },
    { "Choose what it starts from",
      "commit",
      { { "image", "Build, pull, import and look at images" },
        { "template", "Images with a program that is ready at once" } } },
    { "Go back in time",
      "diff restore promote archive",
      { { "checkpoint", "Keep a running sandbox as it is now" }, { "fork", NULL } } },
    { "Reach it, and let it reach",
      "bindings ports token name blast",
      { { "forward", NULL },
        { "net", "What a sandbox may reach, and what it tried to" },
        { "secret", "Values that go in and are never shown" },
        { "volume", "Files that outlive sandboxes" } } },
    { "Look after it",
      "logout context team usage events ca env version completion",
      { { "doctor", NULL },
        { "attack", NULL },
        { "login", NULL },
        { "key", "Make, list and revoke API keys" } } },
};

static const char *summary_of(const char *word)
{
    for (size_t i = 0; i < commands_n; i++)
        if (strcmp(commands[i]->name, word) == 0)
            return commands[i]->summary;
    return "";
}

void help_screen(FILE *out)
{
    (void)fputs("warren - isolated Linux computers in milliseconds: `warren COMMAND ...`\n", out);
    for (size_t g = 0; g < ARRAY_LEN(screen); g++) {
        (void)fprintf(out, "%s%s%s%s   also: %s%s\n", colour_on(out, COLOUR_BOLD), screen[g].title,
                      colour_off(out, COLOUR_BOLD), colour_on(out, COLOUR_DIM), screen[g].more,
                      colour_off(out, COLOUR_DIM));
        for (size_t i = 0; i < SCREEN_ROWS_MAX && screen[g].rows[i].word; i++) {
            const struct screen_row *row = &screen[g].rows[i];
            const char *summary = row->summary ? row->summary : summary_of(row->word);
            (void)fprintf(out, "  %-11s%.*s\n", row->word, SCREEN_WIDTH - 13, summary);
        }
    }
    (void)fputs("First: `warren run -it bash`. More: `warren help` lists every command, `warren\n"
                "help COMMAND` explains one, and `warren image` lists the commands about images.\n",
                out);
}

/* "warren image" alone: the commands that begin so. */
int help_group(int argc, char **argv)
{
    size_t len = strlen(argv[0]);
    bool any = false;
    for (size_t i = 0; i < commands_n; i++) {
        const struct command *c = commands[i];
        if (strncmp(c->name, argv[0], len) == 0 && c->name[len] == ' ') {
            if (!any && argc > 1)
                cli_note("there is no command '%s %s'", argv[0], argv[1]);
            (void)fprintf(argc > 1 ? stderr : stdout, "  warren %s %s\n      %s\n", c->name,
                          c->synopsis, c->summary);
            any = true;
        }
    }
    return any ? (argc > 1 ? STATUS_USAGE : 0) : -ENOENT;
}
