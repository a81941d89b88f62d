#include "init/file/ask.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "init/account.h"

#define OP(name_) (1u << WIRE_FILE_##name_)
#define ANY (~0u)
#define OFFSET_MAX INT64_MAX /* what an off_t holds */
#define DEPTH_MAX 4096
#define XATTR_MAX (256 + 64 * 1024) /* the kernel's longest name and value */

enum kind { KIND_NUMBER, KIND_STRING, KIND_STRINGS, KIND_XATTR };

/* The whole grammar. `max` is of the number, or of the length. */
static const struct rule {
    enum wire_tag tag;
    enum kind kind;
    uint32_t on;
    uint64_t max;
    size_t at; /* in struct ask */
    const char *name;
} rules[] = {
    { WIRE_T_OP, KIND_NUMBER, ANY, WIRE_FILE_TREE_IN, 0, "op" },
    { WIRE_T_USER, KIND_STRING, ANY, ACCOUNT_SPEC_MAX, offsetof(struct ask, user), "user" },
    { WIRE_T_ROOT, KIND_STRING, ANY, PATH_MAX - 1, offsetof(struct ask, root), "root" },
    { WIRE_T_PATH, KIND_STRINGS, ANY, WIRE_PAYLOAD_MAX, 0, "path" },
    { WIRE_T_FLAGS, KIND_NUMBER, ANY, UINT64_MAX, offsetof(struct ask, flags), "flags" },
    { WIRE_T_TO, KIND_STRING, OP(MOVE) | OP(COPY) | OP(SYMLINK) | OP(REPLACE), ASK_TEXT_MAX,
      offsetof(struct ask, to), "to" },
    { WIRE_T_TYPE, KIND_NUMBER, OP(FIND), WIRE_BLOCKDEV, offsetof(struct ask, type), "type" },
    { WIRE_T_MODE, KIND_NUMBER, OP(WRITE) | OP(MKDIR) | OP(CHMOD), 07777,
      offsetof(struct ask, mode), "mode" },
    { WIRE_T_OWNER, KIND_STRING, OP(CHOWN), ACCOUNT_SPEC_MAX, offsetof(struct ask, owner),
      "owner" },
    { WIRE_T_SIZE, KIND_NUMBER, OP(TRUNCATE), OFFSET_MAX, offsetof(struct ask, size), "size" },
    { WIRE_T_XATTR, KIND_XATTR, OP(XATTR_SET), XATTR_MAX, 0, "xattr" },
    { WIRE_T_ETAG, KIND_STRING, OP(WRITE), 256, offsetof(struct ask, etag), "etag" },
    { WIRE_T_OFFSET, KIND_NUMBER, OP(READ), OFFSET_MAX, offsetof(struct ask, offset), "offset" },
    { WIRE_T_LENGTH, KIND_NUMBER, OP(READ), OFFSET_MAX, offsetof(struct ask, length), "length" },
    { WIRE_T_DEPTH, KIND_NUMBER, OP(LIST) | OP(FIND) | OP(SEARCH), DEPTH_MAX,
      offsetof(struct ask, depth), "depth" },
    { WIRE_T_LIMIT, KIND_NUMBER, OP(LIST) | OP(FIND) | OP(SEARCH), UINT32_MAX,
      offsetof(struct ask, limit), "limit" },
    { WIRE_T_AFTER, KIND_STRING, OP(LIST), WIRE_PAYLOAD_MAX, offsetof(struct ask, after), "after" },
    { WIRE_T_PATTERN, KIND_STRINGS, OP(FIND) | OP(SEARCH) | OP(REPLACE), PATH_MAX, 0, "pattern" },
    { WIRE_T_TEXT, KIND_STRING, OP(SEARCH) | OP(REPLACE) | OP(XATTR_RM), ASK_TEXT_MAX,
      offsetof(struct ask, text), "text" },
};

#define F(name_) WIRE_F_##name_

/* What each may be told by flags, how many paths it takes, and what it cannot do without. */
static const struct shape {
    uint64_t flags;
    bool many;
    enum wire_tag needs[2];
} shapes[] = {
    [WIRE_FILE_READ] = { 0, false, { 0 } },
    [WIRE_FILE_WRITE] = { F(APPEND) | F(EXCLUSIVE) | F(NO_PARENTS), false, { 0 } },
    [WIRE_FILE_STAT] = { F(NOFOLLOW) | F(XATTRS), false, { 0 } },
    [WIRE_FILE_LIST] = { F(XATTRS), false, { 0 } },
    [WIRE_FILE_MKDIR] = { F(EXCLUSIVE) | F(NO_PARENTS), false, { 0 } },
    [WIRE_FILE_MOVE] = { F(EXCLUSIVE) | F(NO_PARENTS) | F(RECURSIVE) | F(XATTRS),
                         false,
                         { WIRE_T_TO } },
    [WIRE_FILE_COPY] = { F(EXCLUSIVE) | F(NO_PARENTS) | F(RECURSIVE), false, { WIRE_T_TO } },
    [WIRE_FILE_REMOVE] = { F(RECURSIVE) | F(FORCE), false, { 0 } },
    [WIRE_FILE_CHMOD] = { F(RECURSIVE), false, { WIRE_T_MODE } },
    [WIRE_FILE_CHOWN] = { F(RECURSIVE) | F(NOFOLLOW), false, { WIRE_T_OWNER } },
    [WIRE_FILE_SYMLINK] = { F(NO_PARENTS), false, { WIRE_T_TO } },
    [WIRE_FILE_XATTRS] = { F(NOFOLLOW), false, { 0 } },
    [WIRE_FILE_XATTR_SET] = { F(NOFOLLOW), false, { WIRE_T_XATTR } },
    [WIRE_FILE_XATTR_RM] = { F(NOFOLLOW), false, { WIRE_T_TEXT } },
    [WIRE_FILE_TRUNCATE] = { 0, false, { WIRE_T_SIZE } },
    [WIRE_FILE_USAGE] = { 0, false, { 0 } },
    [WIRE_FILE_FIND] = { F(ICASE), false, { 0 } },
    [WIRE_FILE_SEARCH] = { F(REGEX) | F(ICASE), true, { WIRE_T_TEXT } },
    [WIRE_FILE_REPLACE] = { F(REGEX) | F(ICASE) | F(DRY_RUN), true, { WIRE_T_TEXT, WIRE_T_TO } },
    [WIRE_FILE_WATCH] = { F(RECURSIVE) | F(XATTRS), false, { 0 } },
    [WIRE_FILE_TREE_OUT] = { F(CONTENTS) | F(WHOLE), true, { 0 } },
    [WIRE_FILE_TREE_IN] = { F(NUMERIC), false, { 0 } },
};

static const char *name_of(enum wire_tag tag)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].tag == tag)
            return rules[i].name;
    return "a field";
}

static int refuse(struct err *err, const char *name, const char *why)
{
    return err_fail(err, FAIL_INVALID_FIELD, "%s %s", name, why);
}

/* The operation decides what the other fields may be, so it is looked for first. */
static int find_op(const char *payload, size_t n, enum wire_file_op *ret_op, struct err *err)
{
    struct wire_reader reader = { payload, n };
    struct wire_field f;
    uint64_t op = 0;
    int r;
    while ((r = wire_next(&reader, &f)) > 0)
        if (f.tag == WIRE_T_OP && wire_field_u64(&f, &op) < 0)
            return -EPROTO;
    if (r < 0)
        return r;
    if (op < WIRE_FILE_READ || op > WIRE_FILE_TREE_IN)
        return refuse(err, "op", "is not one of ours");
    *ret_op = (enum wire_file_op)op;
    return 0;
}

static int take_xattr(const struct wire_field *f, struct ask *ask, struct err *err)
{
    const char *end = memchr(f->p, 0, f->n);
    if (!end || end == f->p || f->n > XATTR_MAX)
        return refuse(err, "xattr", "is not a name, a NUL byte and a value");
    ask->xattr = f->p;
    ask->value = end + 1;
    ask->value_n = f->n - (size_t)(end + 1 - f->p);
    return 0;
}

/* One field against its rule; numbers are stored, strings only measured. */
static int take_field(const struct wire_field *f, const struct rule *rule, struct ask *ask,
                      struct err *err)
{
    if (ask_has(ask, f->tag) && rule->kind != KIND_STRINGS)
        return refuse(err, rule->name, "is given twice");
    ask->have[f->tag / 64] |= 1ull << f->tag % 64;
    if (rule->kind == KIND_XATTR)
        return take_xattr(f, ask, err);
    if (rule->kind == KIND_NUMBER) {
        uint64_t v;
        if (wire_field_u64(f, &v) < 0)
            return -EPROTO;
        if (v > rule->max)
            return refuse(err, rule->name, "is out of range");
        if (rule->at)
            memcpy((char *)ask + rule->at, &v, sizeof(v));
        return 0;
    }
    if (f->n && memchr(f->p, 0, f->n))
        return refuse(err, rule->name, "holds a NUL byte");
    if (f->tag == WIRE_T_PATH && f->n >= PATH_MAX)
        return err_fail(err, FAIL_NAME_TOO_LONG, "a path has at most %d bytes", PATH_MAX - 1);
    if (f->n > rule->max)
        return refuse(err, rule->name, "is too long");
    if (f->tag == WIRE_T_PATH && f->n == 0)
        return refuse(err, rule->name, "is empty");
    ask->n_paths += f->tag == WIRE_T_PATH;
    ask->n_patterns += f->tag == WIRE_T_PATTERN;
    return 0;
}

static int take_fields(const char *payload, size_t n, struct ask *ask, struct err *err)
{
    struct wire_reader reader = { payload, n };
    struct wire_field f;
    int r;
    while ((r = wire_next(&reader, &f)) > 0) {
        const struct rule *rule = NULL;
        for (size_t i = 0; i < ARRAY_LEN(rules) && !rule; i++)
            if (rules[i].tag == f.tag && (rules[i].on >> ask->op & 1))
                rule = &rules[i];
        if (!rule)
            return err_fail(err, FAIL_INVALID_FIELD, "field %d has no place in operation %d",
                            (int)f.tag, (int)ask->op);
        r = take_field(&f, rule, ask, err);
        if (r < 0)
            return r;
    }
    return r;
}

static int check_whole(const struct ask *ask, struct err *err)
{
    const struct shape *shape = &shapes[ask->op];
    if (ask->flags & ~(shape->flags | WIRE_F_FOR_USER))
        return refuse(err, "flags", "has a bit that means nothing here");
    if (ask->n_paths == 0)
        return err_fail(err, FAIL_MISSING_FIELD, "path is missing");
    if (ask->n_paths > 1 && !shape->many)
        return refuse(err, "path", "is given twice");
    if (ask->n_paths + ask->n_patterns > ASK_STRINGS_MAX)
        return refuse(err, "path", "is given too often");
    for (size_t i = 0; i < ARRAY_LEN(shape->needs); i++)
        if (shape->needs[i] && !ask_has(ask, shape->needs[i]))
            return err_fail(err, FAIL_MISSING_FIELD, "%s is missing", name_of(shape->needs[i]));
    return 0;
}

/* Second pass over fields that are known to be good: point at the strings and terminate them. A
 * string ends where the next field's tag stands, so it is terminated after that was read. */
static void take_strings(char *payload, size_t n, struct ask *ask)
{
    struct wire_reader reader = { payload, n };
    struct wire_field f;
    char *end = NULL;
    size_t paths = 0, patterns = 0;
    while (wire_next(&reader, &f) > 0) {
        if (end)
            *end = '\0';
        char *s = payload + (f.p - payload);
        end = s + f.n;
        if (f.tag == WIRE_T_PATH)
            ask->paths[paths++] = s;
        else if (f.tag == WIRE_T_PATTERN)
            ask->patterns[patterns++] = s;
        for (size_t i = 0; i < ARRAY_LEN(rules); i++)
            if (rules[i].tag == f.tag && rules[i].kind == KIND_STRING) {
                const char *at = s;
                memcpy((char *)ask + rules[i].at, &at, sizeof(at));
            }
    }
    if (end)
        *end = '\0';
}

int ask_decode(char *payload, size_t n, struct ask *ret_ask, struct err *err)
{
    struct ask ask = {
        .user = "", .to = "", .text = "", .owner = "", .etag = "", .after = "", .root = ""
    };
    int r = find_op(payload, n, &ask.op, err);
    if (r == 0)
        r = take_fields(payload, n, &ask, err);
    if (r == 0)
        r = check_whole(&ask, err);
    if (r < 0)
        return r;
    ask.paths = calloc(ask.n_paths + ask.n_patterns, sizeof(*ask.paths));
    if (!ask.paths)
        return err_fail(err, FAIL_OUT_OF_MEMORY, "no memory for the paths");
    ask.patterns = ask.paths + ask.n_paths;
    take_strings(payload, n, &ask);
    *ret_ask = ask;
    return 0;
}

void ask_done(struct ask *ask)
{
    free(ask->paths);
    ask->paths = ask->patterns = NULL;
    ask->n_paths = ask->n_patterns = 0;
}
