#include "init/call.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "init/account.h"

#define ON(type_) (1u << (type_))
#define TIMEOUT_MS_MAX (10ull * 365 * 24 * 3600 * 1000) /* ten years: no sum of it overflows */

enum kind { KIND_NUMBER, KIND_STRING, KIND_STRINGS, KIND_BYTES };

/* The whole grammar. `max` is of the number, or of the length. */
static const struct rule {
    enum wire_tag tag;
    enum kind kind;
    uint32_t on;
    uint64_t max;
    size_t at; /* in struct call */
    const char *name;
} rules[] = {
    { WIRE_T_ARGV, KIND_STRINGS, ON(WIRE_START), WIRE_PAYLOAD_MAX, 0, "argv" },
    { WIRE_T_ENV, KIND_STRINGS, ON(WIRE_START), WIRE_PAYLOAD_MAX, 0, "env" },
    { WIRE_T_CWD, KIND_STRING, ON(WIRE_START), PATH_MAX - 1, offsetof(struct call, cwd), "cwd" },
    { WIRE_T_USER, KIND_STRING, ON(WIRE_START), ACCOUNT_SPEC_MAX, offsetof(struct call, user),
      "user" },
    { WIRE_T_LABEL, KIND_STRING, ON(WIRE_START), CALL_LABEL_MAX, offsetof(struct call, label),
      "label" },
    { WIRE_T_FLAGS, KIND_NUMBER, ON(WIRE_START) | ON(WIRE_ATTACH) | ON(WIRE_LIST),
      WIRE_F_PTY | WIRE_F_STDIN | WIRE_F_NO_OUTPUT | WIRE_F_ALL, offsetof(struct call, flags),
      "flags" },
    { WIRE_T_ROWS, KIND_NUMBER, ON(WIRE_START) | ON(WIRE_RESIZE), USHRT_MAX,
      offsetof(struct call, rows), "rows" },
    { WIRE_T_COLS, KIND_NUMBER, ON(WIRE_START) | ON(WIRE_RESIZE), USHRT_MAX,
      offsetof(struct call, cols), "cols" },
    { WIRE_T_TIMEOUT_MS, KIND_NUMBER, ON(WIRE_START), TIMEOUT_MS_MAX,
      offsetof(struct call, timeout_ms), "timeout_ms" },
    { WIRE_T_NOFILE, KIND_NUMBER, ON(WIRE_START), INT_MAX, offsetof(struct call, nofile),
      "nofile" },
    { WIRE_T_RING, KIND_NUMBER, ON(WIRE_START), UINT32_MAX, offsetof(struct call, ring_bytes),
      "ring" },
    { WIRE_T_PROC, KIND_NUMBER,
      ON(WIRE_ATTACH) | ON(WIRE_WRITE) | ON(WIRE_CLOSE) | ON(WIRE_SIGNAL) | ON(WIRE_RESIZE),
      UINT64_MAX, offsetof(struct call, proc), "proc" },
    { WIRE_T_SINCE, KIND_NUMBER, ON(WIRE_ATTACH), UINT64_MAX, offsetof(struct call, since),
      "since" },
    { WIRE_T_DATA, KIND_BYTES, ON(WIRE_WRITE), WIRE_PAYLOAD_MAX, 0, "data" },
    { WIRE_T_SIGNO, KIND_NUMBER, ON(WIRE_SIGNAL), 64, offsetof(struct call, signo), "signo" },
    { WIRE_T_SCOPE, KIND_NUMBER, ON(WIRE_SIGNAL), WIRE_SCOPE_TREE, offsetof(struct call, scope),
      "scope" },
    { WIRE_T_GRACE_MS, KIND_NUMBER, ON(WIRE_SHUTDOWN), TIMEOUT_MS_MAX,
      offsetof(struct call, grace_ms), "grace_ms" },
};

static const struct rule *find_rule(enum wire_tag tag, enum wire_type type)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].tag == tag && (rules[i].on & ON(type)))
            return &rules[i];
    return NULL;
}

static int refuse(struct err *err, const char *name, const char *why)
{
    return err_fail(err, FAIL_INVALID_FIELD, "%s %s", name, why);
}

static int check_env(const struct wire_field *f, struct err *err)
{
    const char *eq = memchr(f->p, '=', f->n);
    if (!eq || eq == f->p)
        return refuse(err, "env", "has an entry that is not NAME=value");
    return 0;
}

/* One field against its rule; numbers are stored, strings only measured. */
static int take_field(const struct wire_field *f, const struct rule *rule, struct call *call,
                      struct err *err)
{
    bool again = (call->have >> f->tag & 1) != 0;
    if (again && rule->kind != KIND_STRINGS)
        return refuse(err, rule->name, "is given twice");
    call->have |= 1ull << f->tag;
    switch (rule->kind) {
    case KIND_NUMBER: {
        uint64_t v;
        if (wire_field_u64(f, &v) < 0)
            return -EPROTO;
        if (v > rule->max)
            return refuse(err, rule->name, "is out of range");
        memcpy((char *)call + rule->at, &v, sizeof(v));
        return 0;
    }
    case KIND_BYTES:
        call->data = f->p;
        call->data_n = f->n;
        return 0;
    case KIND_STRING:
    case KIND_STRINGS:
        if (f->n > rule->max)
            return refuse(err, rule->name, "is too long");
        if (f->n && memchr(f->p, 0, f->n))
            return refuse(err, rule->name, "holds a NUL byte");
        if (f->tag == WIRE_T_ARGV)
            call->argc++;
        if (f->tag == WIRE_T_ENV) {
            call->envc++;
            return check_env(f, err);
        }
        return 0;
    }
    return -EPROTO;
}

/* Second pass over fields that are known to be good: point at the strings and terminate them. A
 * string ends where the next field's tag stands, so it is terminated after that was read. */
static void take_strings(char *payload, size_t n, struct call *call)
{
    struct wire_reader reader = { payload, n };
    struct wire_field f;
    char *end = NULL;
    size_t argc = 0, envc = 0;
    while (wire_next(&reader, &f) > 0) {
        if (end)
            *end = '\0';
        char *s = payload + (f.p - payload);
        end = s + f.n;
        switch ((int)f.tag) {
        case WIRE_T_ARGV: call->argv[argc++] = s; break;
        case WIRE_T_ENV: call->env[envc++] = s; break;
        case WIRE_T_CWD: call->cwd = s; break;
        case WIRE_T_USER: call->user = s; break;
        case WIRE_T_LABEL: call->label = s; break;
        default: break;
        }
    }
    if (end)
        *end = '\0';
}

/* What must be there, and what makes no sense together. */
static int check_whole(const struct call *call, struct err *err)
{
    switch ((int)call->type) {
    case WIRE_START:
        if (call->argc == 0)
            return err_fail(err, FAIL_MISSING_FIELD, "argv is missing");
        if (call->argc + call->envc > CALL_STRINGS_MAX)
            return err_fail(err, FAIL_ARGUMENT_TOO_LARGE, "argv and env hold too many strings");
        if (call->flags & WIRE_F_ALL)
            return refuse(err, "flags", "has a bit that means nothing here");
        return 0;
    case WIRE_SIGNAL:
        if (call->signo == 0)
            return refuse(err, "signo", "is not a signal's number");
        return 0;
    case WIRE_RESIZE:
        if (call->rows == 0 || call->cols == 0)
            return refuse(err, "rows and cols", "must be 1 to 65535");
        return 0;
    }
    return 0;
}

int call_decode(const struct wire_header *h, char *payload, struct call *ret_call, struct err *err)
{
    struct call call = { .type = (enum wire_type)h->type,
                         .cwd = "",
                         .user = "",
                         .label = "",
                         .together_ms = h->offset };
    struct wire_reader reader = { payload, h->len };
    struct wire_field f;
    int r;

    if (h->type < WIRE_START || h->type > WIRE_SHUTDOWN)
        return -EPROTO;
    while ((r = wire_next(&reader, &f)) > 0) {
        const struct rule *rule = find_rule(f.tag, call.type);
        if (!rule)
            return err_fail(err, FAIL_INVALID_FIELD, "field %d has no place in request %d",
                            (int)f.tag, (int)call.type);
        r = take_field(&f, rule, &call, err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    r = check_whole(&call, err);
    if (r < 0)
        return r;
    if (call.type == WIRE_START) {
        call.argv = calloc(call.argc + call.envc + 2, sizeof(*call.argv));
        if (!call.argv)
            return err_fail(err, FAIL_OUT_OF_MEMORY, "no memory for argv and env");
        call.env = call.argv + call.argc + 1;
        take_strings(payload, h->len, &call);
        if (call.argv[0][0] == '\0') {
            call_done(&call);
            return refuse(err, "argv", "begins with an empty string");
        }
    }
    *ret_call = call;
    return 0;
}

void call_done(struct call *call)
{
    free(call->argv);
    call->argv = call->env = NULL;
    call->argc = call->envc = 0;
}
