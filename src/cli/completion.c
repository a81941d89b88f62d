/* completion - the command table as scripts for bash, zsh and fish.
 *
 * Commands, options and fixed values are written into the script; ids and names are asked for
 * when needed, through the hidden `warren __complete`. Each script first finds which command
 * stands on the line (`image` and `key` have a second word), then offers what its row says. */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/xmem.h"

/* Text within single quotes of a shell; ':' is escaped as well where `colon` says so. */
static void quoted(FILE *out, const char *text, bool fish, bool colon)
{
    for (; *text; text++) {
        if (*text == '\'')
            (void)fputs(fish ? "\\'" : "'\\''", out);
        else if (fish && *text == '\\')
            (void)fputs("\\\\", out);
        else if (colon && *text == ':')
            (void)fputs("\\:", out);
        else
            (void)fputc(*text, out);
    }
}

/* The first words of two-word commands, each once: "image key". */
static void groups(FILE *out, const char *before, const char *between)
{
    const char *last = "";
    bool first = true;
    for (size_t i = 0; i < commands_n; i++) {
        size_t len = strcspn(commands[i]->name, " ");
        if (!commands[i]->name[len] || strncmp(last, commands[i]->name, len + 1) == 0)
            continue;
        (void)fprintf(out, "%s%s%.*s", first ? "" : between, before, (int)len, commands[i]->name);
        last = commands[i]->name;
        first = false;
    }
}

/* What may stand as a word after `prefix` ("" or "image "): first words, or second ones. */
typedef void (*word_fn)(FILE *out, const char *word, const char *summary);

static void each_word(FILE *out, const char *prefix, word_fn fn)
{
    const char *last = "";
    size_t skip = strlen(prefix);
    for (size_t i = 0; i < commands_n; i++) {
        const struct command *c = commands[i];
        if (c->hidden || strncmp(c->name, prefix, skip) != 0)
            continue;
        size_t len = strcspn(c->name + skip, " ");
        _cleanup_free_ char *word = xstrndup(c->name + skip, len);
        if (c->name[skip + len] && strncmp(last, c->name, skip + len + 1) == 0)
            continue; /* another of the same group */
        fn(out, word, c->name[skip + len] ? "Several commands about this" : c->summary);
        last = c->name;
    }
}

/* ---- bash and zsh: one script, two spellings ---- */

struct spelling {
    const char *head;            /* up to the names of the groups */
    const char *unless_found;    /* how the second case begins */
    const char *list, *list_end; /* around the candidates */
    const char *files;           /* offer files and be done */
    const char *ask, *ask_end;   /* around a kind of name to ask `__complete` for */
    const char *tail;
    word_fn word;
    bool files_for_commands; /* after a command that takes another program's words */
};

static void put_plain(FILE *out, const char *word, const char *summary)
{
    (void)fprintf(out, " %s", word);
}

static void put_told(FILE *out, const char *word, const char *summary)
{
    (void)fprintf(out, " '%s:", word);
    quoted(out, summary, false, true);
    (void)fputc('\'', out);
}

static const struct spelling bash_spelling = {
    .head = "# bash completion for warren, made by `warren completion bash`.\n"
            "_warren()\n{\n"
            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
            "    local cmd='' words='' i\n"
            "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
            "        case ${COMP_WORDS[i]} in\n"
            "        (--socket | --url | --key | --context | --team | --color) ((i++)) ;;\n"
            "        (-*) ;;\n"
            "        (*)\n"
            "            cmd=${cmd:+$cmd }${COMP_WORDS[i]}\n"
            "            [[ $cmd == @(",
    .unless_found = "    [[ -z $words ]] && case \"$cmd ${cur:0:1}\" in\n",
    .list = "words='",
    .list_end = "'",
    .files = "COMPREPLY=($(compgen -f -- \"$cur\")); return",
    .ask = "words=$(warren __complete ",
    .ask_end = " 2>/dev/null)",
    .tail = "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
            "complete -o bashdefault -F _warren warren\n",
    .word = put_plain,
};

static const struct spelling zsh_spelling = {
    .head = "#compdef warren\n"
            "# zsh completion for warren, made by `warren completion zsh`.\n"
            "_warren()\n{\n"
            "    local cur=$words[CURRENT] prev=$words[CURRENT-1] cmd='' i\n"
            "    local -a list\n"
            "    for ((i = 2; i < CURRENT; i++)); do\n"
            "        case $words[i] in\n"
            "        (--socket|--url|--key|--context|--team|--color) ((i++)) ;;\n"
            "        (-*) ;;\n"
            "        (*)\n"
            "            cmd=${cmd:+$cmd }$words[i]\n"
            "            [[ $cmd == (",
    .unless_found = "    (( $#list )) || case \"$cmd ${cur[1]}\" in\n",
    .list = "list=(",
    .list_end = ")",
    .files = "_files; return",
    .ask = "list=(${(f)\"$(warren __complete ",
    .ask_end = " 2>/dev/null)\"})",
    .tail = "    esac\n    _describe warren list\n}\n"
            "if [ \"$funcstack[1]\" = _warren ]; then\n    _warren \"$@\"\n"
            "else\n    compdef _warren warren\nfi\n",
    .word = put_told,
    .files_for_commands = true,
};

/* The candidates that a row's `values` stand for, as a statement. */
static void put_values(FILE *out, const struct spelling *s, const char *values)
{
    if (!values)
        (void)fputs("return", out);
    else if (strcmp(values, "@file") == 0)
        (void)fputs(s->files, out);
    else if (values[0] == '@')
        (void)fprintf(out, "%s%s%s", s->ask, values + 1, s->ask_end);
    else
        (void)fprintf(out, "%s%s%s", s->list, values, s->list_end);
}

static void put_option_values(FILE *out, const struct spelling *s, const char *command,
                              const struct opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (opts[i].kind == OPT_FLAG)
            continue;
        (void)fprintf(out, "    ('%s--%s'", command, opts[i].name);
        if (opts[i].letter)
            (void)fprintf(out, "|'%s-%c'", command, opts[i].letter);
        (void)fputs(") ", out);
        put_values(out, s, opts[i].values);
        (void)fputs(" ;;\n", out);
    }
}

static void put_options(FILE *out, const struct spelling *s, const struct opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        _cleanup_free_ char *word = xasprintf("--%s", opts[i].name);
        s->word(out, word, opts[i].help);
    }
}

/* What may follow a whole command: its options, or what it works on. */
static void put_command(FILE *out, const struct spelling *s, const struct command *c)
{
    (void)fprintf(out, "    ('%s -') %s", c->name, s->list);
    put_options(out, s, c->opts, c->nopts);
    put_options(out, s, global_opts, global_opts_n);
    (void)fprintf(out, "%s ;;\n    ('%s '*) ", s->list_end, c->name);
    if (!c->operands && c->stop_after != OPTS_ALL && s->files_for_commands)
        (void)fputs(s->files, out);
    else
        put_values(out, s, c->operands);
    (void)fputs(" ;;\n", out);
}

/* The words that may follow `prefix`, as a branch of the case. */
static void put_words(FILE *out, const struct spelling *s, const char *prefix)
{
    (void)fprintf(out, "    ('%s'*) %s", *prefix ? prefix : " ", s->list);
    each_word(out, prefix, s->word);
    (void)fprintf(out, "%s ;;\n", s->list_end);
}

static void put_script(FILE *out, const struct spelling *s)
{
    (void)fputs(s->head, out);
    groups(out, "", "|");
    (void)fputs(") ]] || break\n            ;;\n        esac\n    done\n"
                "    case \"$cmd $prev\" in\n",
                out);
    for (size_t i = 0; i < commands_n; i++) {
        _cleanup_free_ char *prefix = xasprintf("%s ", commands[i]->name);
        put_option_values(out, s, prefix, commands[i]->opts, commands[i]->nopts);
    }
    (void)fputs("    (*) case $prev in\n", out);
    put_option_values(out, s, "", global_opts, global_opts_n);
    (void)fprintf(out, "    esac ;;\n    esac\n%s    (' -') %s", s->unless_found, s->list);
    put_options(out, s, global_opts, global_opts_n);
    (void)fprintf(out, "%s ;;\n", s->list_end);
    put_words(out, s, "");
    for (size_t i = 0; i < commands_n; i++)
        if (!commands[i]->hidden)
            put_command(out, s, commands[i]);
    for (size_t i = 0; i < commands_n; i++) {
        size_t len = strcspn(commands[i]->name, " ");
        if (!commands[i]->name[len] ||
            (i > 0 && strncmp(commands[i - 1]->name, commands[i]->name, len + 1) == 0))
            continue;
        _cleanup_free_ char *prefix = xstrndup(commands[i]->name, len + 1);
        put_words(out, s, prefix);
    }
    (void)fputs(s->tail, out);
}

static void bash(FILE *out)
{
    put_script(out, &bash_spelling);
}

static void zsh(FILE *out)
{
    put_script(out, &zsh_spelling);
}

/* ---- fish ---- */

static void fish_arg(FILE *out, const char *values)
{
    if (!values)
        return;
    if (strcmp(values, "@file") == 0)
        (void)fputs(" -F", out);
    else if (values[0] == '@')
        (void)fprintf(out, " -a '(warren __complete %s 2>/dev/null)'", values + 1);
    else
        (void)fprintf(out, " -a '%s'", values);
}

static void fish_option(FILE *out, const char *condition, const struct opt *o)
{
    (void)fputs("complete -c warren", out);
    if (condition)
        (void)fprintf(out, " -n '__warren_is \"%s\"'", condition);
    if (o->letter)
        (void)fprintf(out, " -s %c", o->letter);
    /* -x is "a value, and no files"; fish refuses it beside -F. */
    const char *value = o->values && strcmp(o->values, "@file") == 0 ? " -r" : " -x";
    (void)fprintf(out, " -l %s%s -d '", o->name, o->kind == OPT_FLAG ? "" : value);
    quoted(out, o->help, true, false);
    (void)fputc('\'', out);
    fish_arg(out, o->values);
    (void)fputc('\n', out);
}

static const char *fish_condition;

static void put_fish(FILE *out, const char *word, const char *summary)
{
    (void)fprintf(out, "complete -c warren -n '__warren_is \"%s\"' -a %s -d '", fish_condition,
                  word);
    quoted(out, summary, true, false);
    (void)fputs("'\n", out);
}

static void fish(FILE *out)
{
    (void)fputs(
        "# fish completion for warren, made by `warren completion fish`.\n"
        "function __warren_is\n"
        "    set -l cmd\n    set -l skip 0\n"
        "    for word in (commandline -opc)[2..-1]\n"
        "        if test $skip = 1\n            set skip 0\n            continue\n        end\n"
        "        switch $word\n"
        "            case --socket --url --key --context --team --color\n                set skip 1\n"
        "            case '-*'\n"
        "            case '*'\n                set -a cmd $word\n"
        "                if not contains -- \"$cmd\"",
        out);
    groups(out, " ", "");
    (void)fputs("\n                    break\n                end\n        end\n    end\n"
                "    test \"$cmd\" = \"$argv[1]\"\nend\n"
                "complete -c warren -f\n",
                out);
    for (size_t i = 0; i < global_opts_n; i++)
        fish_option(out, NULL, &global_opts[i]);
    fish_condition = "";
    each_word(out, "", put_fish);
    for (size_t i = 0; i < commands_n; i++) {
        const struct command *c = commands[i];
        size_t len = strcspn(c->name, " ");
        if (c->name[len] && (i == 0 || strncmp(commands[i - 1]->name, c->name, len + 1) != 0)) {
            _cleanup_free_ char *prefix = xstrndup(c->name, len + 1);
            _cleanup_free_ char *group = xstrndup(c->name, len);
            fish_condition = group;
            each_word(out, prefix, put_fish);
        }
        for (size_t k = 0; k < c->nopts; k++)
            fish_option(out, c->name, &c->opts[k]);
        if (c->operands) {
            (void)fprintf(out, "complete -c warren -n '__warren_is \"%s\"'", c->name);
            fish_arg(out, c->operands);
            (void)fputc('\n', out);
        }
    }
}

int completion_print(FILE *out, const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(FILE *out);
    } shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].print(out);
            return 0;
        }
    }
    return -EINVAL;
}
