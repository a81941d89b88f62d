#include "base/ignore.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/glob.h"
#include "base/path.h"

/* "/a/./b/../c/ " is the rule "a/c". */
static char *pattern_of(struct arena *arena, const char *p, size_t n)
{
    char *text = arena_strndup(arena, p, n);
    if (!text)
        return NULL;
    path_clean(text);
    return text[0] == '/' && text[1] ? text + 1 : text;
}

static void trim(const char **p, size_t *n)
{
    while (*n && isspace((unsigned char)**p))
        (*p)++, (*n)--;
    while (*n && isspace((unsigned char)(*p)[*n - 1]))
        (*n)--;
}

static int add_rule(struct ignore *ig, const char *p, size_t n, unsigned line, struct err *err)
{
    struct ignore_rule rule = { .bring_back = *p == '!' };
    if (rule.bring_back) {
        p++, n--;
        trim(&p, &n);
        if (n == 0)
            return err_fail(err, FAIL_INVALID_DOCKERFILE,
                            IGNORE_FILE " line %u: '!' needs a pattern", line);
    }
    if (ig->n == IGNORE_RULES_MAX)
        return err_fail(err, FAIL_INVALID_DOCKERFILE, IGNORE_FILE " has over %d rules",
                        IGNORE_RULES_MAX);
    rule.pattern = pattern_of(&ig->arena, p, n);
    ig->rules = arena_grow(&ig->arena, ig->rules, ig->n, sizeof(*ig->rules));
    if (!rule.pattern || !ig->rules)
        return err_set(err, ENOMEM, "cannot allocate the rules of " IGNORE_FILE);
    if (!glob_valid(rule.pattern) || strlen(rule.pattern) >= PATH_MAX)
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        IGNORE_FILE " line %u: '%.100s' is not a pattern", line, rule.pattern);
    ig->brings_back = ig->brings_back || rule.bring_back;
    ig->rules[ig->n++] = rule;
    return 0;
}

int ignore_parse(const char *p, size_t n, struct ignore *ret_ignore, struct err *err)
{
    struct ignore ig = { .arena = ARENA_INIT(4 * IGNORE_FILE_MAX) };
    const char *end = p + n;
    if (n > IGNORE_FILE_MAX || memchr(p, '\0', n))
        return err_fail(err, FAIL_INVALID_DOCKERFILE,
                        IGNORE_FILE " is over %d bytes or holds a zero byte", IGNORE_FILE_MAX);
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    for (unsigned line = 1; p < end; line++) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((eol ? eol : end) - p);
        const char *text = p;
        p += len + (eol != NULL);
        if (len && *text == '#') /* only in the first column */
            continue;
        trim(&text, &len);
        int r = len ? add_rule(&ig, text, len, line, err) : 0;
        if (r < 0) {
            ignore_done(&ig);
            return r;
        }
    }
    *ret_ignore = ig;
    return 0;
}

void ignore_done(struct ignore *ignore)
{
    arena_done(&ignore->arena);
    ignore->rules = NULL;
    ignore->n = 0;
}

/* The path, or a directory above it. */
static bool rule_match(const struct ignore_rule *rule, char *path)
{
    if (glob_match(rule->pattern, path, GLOB_DEEP))
        return true;
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool match = glob_match(rule->pattern, path, GLOB_DEEP);
        *slash = '/';
        if (match)
            return true;
    }
    return false;
}

bool ignore_match(const struct ignore *ignore, const char *path)
{
    char copy[PATH_MAX];
    size_t n = strlen(path);
    bool ignored = false;
    if (n >= sizeof(copy))
        return false;
    memcpy(copy, path, n + 1);
    for (size_t i = 0; i < ignore->n; i++)
        if (ignored == ignore->rules[i].bring_back && rule_match(&ignore->rules[i], copy))
            ignored = !ignore->rules[i].bring_back;
    return ignored;
}

bool ignore_prunes(const struct ignore *ignore, const char *dir)
{
    return !ignore->brings_back && ignore_match(ignore, dir);
}
