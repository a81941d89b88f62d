#include "cli/opts.h"

#include <errno.h>
#include <string.h>

#include "cli/units.h"
#include "cli/xmem.h"

#define NEAREST_LEN_MAX 32   /* longer than any word we suggest */
#define NEAREST_WORDS_MAX 96 /* more than any command's options */

static const struct opt *find(const struct opt_set *sets, size_t nsets, const char *name,
                              size_t len, char letter, const struct opt_set **ret_set)
{
    for (size_t s = 0; s < nsets; s++) {
        for (size_t i = 0; i < sets[s].n; i++) {
            const struct opt *o = &sets[s].opts[i];
            *ret_set = &sets[s];
            if (name && strlen(o->name) == len && strncmp(o->name, name, len) == 0)
                return o;
            if (letter && o->letter == letter)
                return o;
        }
    }
    return NULL;
}

static size_t distance(const char *a, const char *b)
{
    size_t row[NEAREST_LEN_MAX + 1], n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j + 1] + 1 < best)
                best = row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[n];
}

const char *nearest(const char *text, const char *const *words, size_t n)
{
    const char *best = NULL;
    size_t len = strlen(text),
           least = len < 4 ? 2 : 3; /* one slip in a short word, two in a long */
    if (len > NEAREST_LEN_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (strlen(words[i]) > NEAREST_LEN_MAX)
            continue;
        if (len > 1 && strncmp(text, words[i], len) == 0)
            return words[i]; /* cut short */
        size_t d = distance(text, words[i]);
        if (d < least) {
            least = d;
            best = words[i];
        }
    }
    return best;
}

/* Options of other tools that people type, and what takes their place. */
static const struct habit {
    char letter;
    const char *name, *instead;
} habits[] = {
    { 'p', "publish", "ports need none: `warren forward SANDBOX PORT:LOCAL` brings one here" },
    { 0, "format", "--json prints whole objects, for jq" },
    { 0, "filter", "`warren ls` has --state and --metadata" },
    { 'l', "label", "--metadata NAME=VALUE" },
    { 0, "mount", "--volume NAME:/PATH" },
    { 0, "entrypoint", "the program to run stands after the options" },
    { 0, "privileged", "a sandbox has a root of its own, and its walls stay" },
};

static const struct habit *habit_find(const char *name, char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(habits); i++)
        if (name ? strcmp(habits[i].name, name) == 0 : habits[i].letter == letter)
            return &habits[i];
    return NULL;
}

static int unknown_long(const struct opt_set *sets, size_t nsets, const char *name, size_t len,
                        struct err *err)
{
    const char *words[NEAREST_WORDS_MAX];
    size_t n = 0;
    _cleanup_free_ char *text = xstrndup(name, len);
    for (size_t s = 0; s < nsets; s++)
        for (size_t i = 0; i < sets[s].n && n < NEAREST_WORDS_MAX; i++)
            words[n++] = sets[s].opts[i].name;
    const struct habit *habit = habit_find(text, 0);
    if (habit)
        return err_set(err, EINVAL, "there is no --%s here: %s", text, habit->instead);
    const char *near = nearest(text, words, n);
    if (near)
        return err_set(err, EINVAL, "unknown option '--%s'; did you mean '--%s'?", text, near);
    return err_set(err, EINVAL, "unknown option '--%s'", text);
}

static int list_add(struct opt_list *list, const char *value)
{
    list->items = xrealloc(list->items, list->n + 1, sizeof(*list->items));
    list->items[list->n++] = value;
    return 0;
}

static int store(const struct opt *o, void *base, const char *value)
{
    void *at = (char *)base + o->offset;
    struct opt_number *number = at;
    struct opt_real *real = at;
    const char *eq;
    int r;
    switch (o->kind) {
    case OPT_FLAG: *(bool *)at = true; return 0;
    case OPT_TEXT: *(const char **)at = value; return 0;
    case OPT_LIST: return list_add(at, value);
    case OPT_PAIRS:
        eq = strchr(value, '=');
        return eq && eq != value ? list_add(at, value) : -EINVAL;
    case OPT_COUNT:
        r = count_parse(value, &number->v);
        number->set = r == 0;
        return r;
    case OPT_REAL:
        r = real_parse(value, &real->v);
        real->set = r == 0;
        return r;
    case OPT_SIZE:
        r = size_parse(value, &number->v);
        number->set = r == 0;
        return r;
    case OPT_DURATION:
        r = duration_parse(value, &number->v);
        number->set = r == 0;
        return r;
    }
    return -EINVAL;
}

static const char *expected(enum opt_kind kind)
{
    switch (kind) {
    case OPT_PAIRS: return "NAME=VALUE";
    case OPT_COUNT: return "a whole number";
    case OPT_REAL: return "a number such as 0.5";
    case OPT_SIZE: return "a size such as 512m or 10g";
    case OPT_DURATION: return "a time such as 30s or 1h30m";
    case OPT_FLAG:
    case OPT_TEXT:
    case OPT_LIST: break;
    }
    return "a value";
}

static int set_value(const struct opt *o, const struct opt_set *set, const char *value,
                     struct err *err)
{
    int r = store(o, set->base, value);
    if (r < 0)
        return err_set(err, -r, "option '--%s' takes %s, not '%s'", o->name, expected(o->kind),
                       value);
    return 0;
}

/* One "--name[=value]"; *i moves on when the value is the next word. */
static int parse_long(const struct opt_set *sets, size_t nsets, int argc, char **argv, int *i,
                      struct err *err)
{
    const struct opt_set *set;
    const char *name = argv[*i] + 2, *eq = strchr(name, '=');
    size_t len = eq ? (size_t)(eq - name) : strlen(name);
    const struct opt *o = find(sets, nsets, name, len, 0, &set);
    if (!o)
        return unknown_long(sets, nsets, name, len, err);
    if (o->kind == OPT_FLAG) {
        if (eq)
            return err_set(err, EINVAL, "option '--%s' takes no value", o->name);
        return set_value(o, set, NULL, err);
    }
    if (!eq && *i + 1 >= argc)
        return err_set(err, EINVAL, "option '--%s' needs %s", o->name, expected(o->kind));
    return set_value(o, set, eq ? eq + 1 : argv[++*i], err);
}

/* One "-x", "-xVALUE", "-x VALUE" or a cluster of flags such as "-it". */
static int parse_short(const struct opt_set *sets, size_t nsets, int argc, char **argv, int *i,
                       struct err *err)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        const struct opt_set *set;
        const struct opt *o = find(sets, nsets, NULL, 0, *p, &set);
        int r;
        const struct habit *habit = o ? NULL : habit_find(NULL, *p);
        if (habit)
            return err_set(err, EINVAL, "there is no -%c here: %s", *p, habit->instead);
        if (!o)
            return err_set(err, EINVAL, "unknown option '-%c'", *p);
        if (o->kind == OPT_FLAG) {
            r = set_value(o, set, NULL, err);
            if (r < 0)
                return r;
            continue;
        }
        if (p[1])
            return set_value(o, set, p + 1, err);
        if (*i + 1 >= argc)
            return err_set(err, EINVAL, "option '-%c' needs %s", *p, expected(o->kind));
        return set_value(o, set, argv[++*i], err);
    }
    return 0;
}

int opts_parse(const struct opt_set *sets, size_t nsets, int stop_after, int argc, char **argv,
               char **operands, int *ret_n, struct err *err)
{
    int n = 0, i, r;
    for (i = 0; i < argc; i++) {
        const char *a = argv[i];
        if (strcmp(a, "--") == 0) {
            i++;
            break;
        }
        if (a[0] != '-' || !a[1]) { /* "-" is an operand: standard input */
            if (n == stop_after)
                break;
            operands[n++] = argv[i];
            continue;
        }
        r = a[1] == '-' ? parse_long(sets, nsets, argc, argv, &i, err)
                        : parse_short(sets, nsets, argc, argv, &i, err);
        if (r < 0)
            return r;
    }
    while (i < argc)
        operands[n++] = argv[i++];
    *ret_n = n;
    return 0;
}

void opts_done(const struct opt_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        if (set->opts[i].kind != OPT_LIST && set->opts[i].kind != OPT_PAIRS)
            continue;
        struct opt_list *list = (void *)((char *)set->base + set->opts[i].offset);
        free(list->items);
        *list = (struct opt_list){ 0 };
    }
}
