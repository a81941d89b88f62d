#include "cli/typed.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/xmem.h"

#define SENTENCE_MAX (2 * ERR_MSG_MAX) /* units make a sentence a little longer */
#define NUMBER_MAX 18                  /* digits that fit a long long */

/* Members whose option has another name; the rest differ in their unit and in '_' alone. */
static const char *const renamed[][2] = {
    { "network", "net" },      { "network_limits", "net-limits" },
    { "volumes", "volume" },   { "bindings", "bind" },
    { "cwd", "workdir" },      { "seconds", "for" },
    { "expires_s", "expire" },
};

static bool is_spelled(const char *option, const char *member, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (option[i] != (member[i] == '_' ? '-' : member[i]))
            return false;
    return !option[n];
}

static const struct opt *option_of(const struct command *c, const char *member, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(renamed); i++) {
        if (strlen(renamed[i][0]) == n && strncmp(renamed[i][0], member, n) == 0) {
            member = renamed[i][1];
            n = strlen(member);
            break;
        }
    }
    for (size_t i = 0; i < c->nopts; i++) {
        const struct opt *o = &c->opts[i];
        size_t unit = o->kind == OPT_SIZE ? 3 : o->kind == OPT_DURATION ? 2 : 0;
        if (unit && n > unit && strncmp(member + n - unit, unit == 3 ? "_mb" : "_s", unit) == 0 &&
            is_spelled(o->name, member, n - unit))
            return o;
        if (is_spelled(o->name, member, n))
            return o;
    }
    return NULL;
}

/* MiB or seconds, with the largest unit that divides them. */
static int put_number(struct buf *out, enum opt_kind kind, long long n)
{
    static const struct {
        enum opt_kind kind;
        long long many;
        char letter;
    } units[] = {
        { OPT_SIZE, 1024, 'g' },     { OPT_SIZE, 1, 'm' },      { OPT_DURATION, 86400, 'd' },
        { OPT_DURATION, 3600, 'h' }, { OPT_DURATION, 60, 'm' }, { OPT_DURATION, 1, 's' },
    };
    for (size_t i = 0; n > 0 && i < ARRAY_LEN(units); i++)
        if (units[i].kind == kind && n % units[i].many == 0)
            return buf_printf(out, "%lld%c", n / units[i].many, units[i].letter);
    return buf_printf(out, "%lld", n);
}

/* "a number from 16m to 1024g" is none. */
static const char *skip_kind(enum opt_kind kind, const char *rest, struct buf *out)
{
    static const char number[] = " must be a number from";
    if ((kind != OPT_SIZE && kind != OPT_DURATION) || strncmp(rest, number, strlen(number)) != 0)
        return rest;
    xputs(out, " must be from");
    return rest + strlen(number);
}

/* The rest of the sentence; a number that stands alone gets the option's unit. */
static int put_rest(struct buf *out, enum opt_kind kind, const char *p)
{
    int r = 0;
    while (*p && r >= 0) {
        size_t digits = strspn(p, "0123456789");
        if (p[-1] == ' ' && digits > 0 && digits <= NUMBER_MAX &&
            (!p[digits] || p[digits] == ' ')) {
            r = put_number(out, kind, strtoll(p, NULL, 10));
            p += digits;
        } else {
            r = buf_append(out, p++, 1);
        }
    }
    return r;
}

char *typed_sentence(const struct command *command, const char *message)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(SENTENCE_MAX);
    const char *end = message[0] == '\'' ? strchr(message + 1, '\'') : NULL;
    const struct opt *o = NULL;
    if (command && end)
        o = option_of(command, message + 1, (size_t)(end - message - 1));
    if (!o)
        return xstrdup(message);
    xputs(&out, "--");
    xputs(&out, o->name);
    end = skip_kind(o->kind, end + 1, &out);
    if (put_rest(&out, o->kind, end) < 0)
        return xstrdup(message);
    return xstrndup(out.data, out.len);
}

/* ---- operands ---- */

/* Past "[...]", however much is in it. */
static const char *skip_optional(const char *p)
{
    int depth = 0;
    do {
        depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
        p++;
    } while (*p && depth > 0);
    return p;
}

char *typed_operand(const char *synopsis, int n)
{
    const char *p = synopsis;
    while (*p) {
        size_t len = strcspn(p, " ");
        if (*p == ' ') {
            p++;
        } else if (*p == '[') {
            p = skip_optional(p);
        } else if (*p == '|') { /* another way to say it */
            return NULL;
        } else if (*p == '-' && len > 1) { /* an option that is needed, and its value */
            p += len;
            if (strncmp(p - len, "-- ", 3) != 0 && *p == ' ')
                p += 1 + strcspn(p + 1, " ");
        } else if (strncmp(p, "OPTIONS", len) == 0 || n-- > 0) {
            p += len;
        } else {
            size_t shown = strcspn(p, " [");
            while (shown > 1 && p[shown - 1] == '.')
                shown--;
            return xstrndup(p, shown);
        }
    }
    return NULL;
}
