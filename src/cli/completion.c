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

static void put_plain(FILE *out, const char *word, const char *summary)
{
    (void)fprintf(out, " %s", word);
}

static void put_zsh(FILE *out, const char *word, const char *summary)
{
    (void)fprintf(out, " '%s:", word);
    quoted(out, summary, false, true);
    (void)fputc('\'', out);
}

/* ---- bash ---- */

/* The candidates that a row's `values` stand for, as a bash statement. */
static void bash_values(FILE *out, const char *values)
{
    if (!values)
        (void)fputs("return", out);
    else if (strcmp(values, "@file") == 0)
        (void)fputs("COMPREPLY=($(compgen -f -- \"$cur\")); return", out);
    else if (values[0] == '@')
        (void)fprintf(out, "words=$(warren __complete %s 2>/dev/null)", values + 1);
    else
        (void)fprintf(out, "words='%s'", values);
}

static void bash_option_values(FILE *out, const char *command, const struct opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (opts[i].kind == OPT_FLAG)
            continue;
        (void)fprintf(out, "    '%s'--%s", command, opts[i].name);
        if (opts[i].letter)
            (void)fprintf(out, "|'%s'-%c", command, opts[i].letter);
        (void)fputs(") ", out);
        bash_values(out, opts[i].values);
        (void)fputs(" ;;\n", out);
    }
}

static void bash_options(FILE *out, const struct opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)fprintf(out, " --%s", opts[i].name);
}

static void bash(FILE *out)
{
    (void)fputs("# bash completion for warren, made by `warren completion bash`.\n"
                "_warren()\n{\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "    local cmd='' words='' i\n"
                "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                "        case ${COMP_WORDS[i]} in\n"
                "        --socket | --url | --key) ((i++)) ;;\n"
                "        -*) ;;\n"
                "        *)\n"
                "            cmd=${cmd:+$cmd }${COMP_WORDS[i]}\n"
                "            [[ $cmd == @(",
                out);
    groups(out, "", "|");
    (void)fputs(") ]] || break\n            ;;\n        esac\n    done\n"
                "    case \"$cmd $prev\" in\n",
                out);
    for (size_t i = 0; i < commands_n; i++) {
        _cleanup_free_ char *prefix = xasprintf("%s ", commands[i]->name);
        bash_option_values(out, prefix, commands[i]->opts, commands[i]->nopts);
    }
    (void)fputs("    *) case $prev in\n", out);
    bash_option_values(out, "", global_opts, global_opts_n);
    (void)fputs("    esac ;;\n    esac\n"
                "    [[ -z $words ]] && case \"$cmd ${cur:0:1}\" in\n"
                "    ' -') words='",
                out);
    bash_options(out, global_opts, global_opts_n);
    (void)fputs("' ;;\n    ' '*) words='", out);
    each_word(out, "", put_plain);
    (void)fputs("' ;;\n", out);
    for (size_t i = 0; i < commands_n; i++) {
        const struct command *c = commands[i];
        if (c->hidden)
            continue;
        (void)fprintf(out, "    '%s -') words='", c->name);
        bash_options(out, c->opts, c->nopts);
        bash_options(out, global_opts, global_opts_n);
        (void)fprintf(out, "' ;;\n    '%s '*) ", c->name);
        bash_values(out, c->operands);
        (void)fputs(" ;;\n", out);
    }
    for (size_t i = 0; i < commands_n; i++) {
        size_t len = strcspn(commands[i]->name, " ");
        if (!commands[i]->name[len] ||
            (i > 0 && strncmp(commands[i - 1]->name, commands[i]->name, len + 1) == 0))
            continue;
        _cleanup_free_ char *prefix = xstrndup(commands[i]->name, len + 1);
        (void)fprintf(out, "    '%s'*) words='", prefix);
        each_word(out, prefix, put_plain);
        (void)fputs("' ;;\n", out);
    }
    (void)fputs("    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
                "complete -o bashdefault -F _warren warren\n",
                out);
}

/* ---- zsh ---- */

static void zsh_values(FILE *out, const char *values)
{
    if (!values)
        (void)fputs("return", out);
    else if (strcmp(values, "@file") == 0)
        (void)fputs("_files; return", out);
    else if (values[0] == '@')
        (void)fprintf(out, "list=(${(f)\"$(warren __complete %s 2>/dev/null)\"})", values + 1);
    else
        (void)fprintf(out, "list=(%s)", values);
}

static void zsh_option_values(FILE *out, const char *command, const struct opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (opts[i].kind == OPT_FLAG)
            continue;
        (void)fprintf(out, "    ('%s--%s'", command, opts[i].name);
        if (opts[i].letter)
            (void)fprintf(out, "|'%s-%c'", command, opts[i].letter);
        (void)fputs(") ", out);
        zsh_values(out, opts[i].values);
        (void)fputs(" ;;\n", out);
    }
}

static void zsh_options(FILE *out, const struct opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, " '--%s:", opts[i].name);
        quoted(out, opts[i].help, false, true);
        (void)fputc('\'', out);
    }
}

static void zsh(FILE *out)
{
    (void)fputs("#compdef warren\n"
                "# zsh completion for warren, made by `warren completion zsh`.\n"
                "_warren()\n{\n"
                "    local cur=$words[CURRENT] prev=$words[CURRENT-1] cmd='' i\n"
                "    local -a list\n"
                "    for ((i = 2; i < CURRENT; i++)); do\n"
                "        case $words[i] in\n"
                "        (--socket|--url|--key) ((i++)) ;;\n"
                "        (-*) ;;\n"
                "        (*)\n"
                "            cmd=${cmd:+$cmd }$words[i]\n"
                "            [[ $cmd == (",
                out);
    groups(out, "", "|");
    (void)fputs(") ]] || break\n            ;;\n        esac\n    done\n"
                "    case \"$cmd $prev\" in\n",
                out);
    for (size_t i = 0; i < commands_n; i++) {
        _cleanup_free_ char *prefix = xasprintf("%s ", commands[i]->name);
        zsh_option_values(out, prefix, commands[i]->opts, commands[i]->nopts);
    }
    (void)fputs("    (*) case $prev in\n", out);
    zsh_option_values(out, "", global_opts, global_opts_n);
    (void)fputs("    esac ;;\n    esac\n"
                "    (( $#list )) || case \"$cmd ${cur[1]}\" in\n"
                "    (' -') list=(",
                out);
    zsh_options(out, global_opts, global_opts_n);
    (void)fputs(") ;;\n    (' '*) list=(", out);
    each_word(out, "", put_zsh);
    (void)fputs(") ;;\n", out);
    for (size_t i = 0; i < commands_n; i++) {
        const struct command *c = commands[i];
        if (c->hidden)
            continue;
        (void)fprintf(out, "    ('%s -') list=(", c->name);
        zsh_options(out, c->opts, c->nopts);
        zsh_options(out, global_opts, global_opts_n);
        (void)fprintf(out, ") ;;\n    ('%s '*) ", c->name);
        if (c->operands || c->stop_after == OPTS_ALL)
            zsh_values(out, c->operands);
        else
            (void)fputs("_files; return", out);
        (void)fputs(" ;;\n", out);
    }
    for (size_t i = 0; i < commands_n; i++) {
        size_t len = strcspn(commands[i]->name, " ");
        if (!commands[i]->name[len] ||
            (i > 0 && strncmp(commands[i - 1]->name, commands[i]->name, len + 1) == 0))
            continue;
        _cleanup_free_ char *prefix = xstrndup(commands[i]->name, len + 1);
        (void)fprintf(out, "    ('%s'*) list=(", prefix);
        each_word(out, prefix, put_zsh);
        (void)fputs(") ;;\n", out);
    }
    (void)fputs("    esac\n    _describe warren list\n}\n"
                "if [ \"$funcstack[1]\" = _warren ]; then\n    _warren \"$@\"\n"
                "else\n    compdef _warren warren\nfi\n",
                out);
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
        "            case --socket --url --key\n                set skip 1\n"
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
