/* json - writing JSON text into a buf, and the two checks text needs before it may go there.
 *
 * A writer for answers: no tree is built, values go straight into the buffer, and a failure is
 * kept until jout_done. Text that is not UTF-8 is mended with U+FFFD, so that the result is
 * always valid JSON whatever a sandbox printed. Reading JSON is jansson's work. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct jout {
    struct buf *b; /* keeps, until jout_done */
    int r;         /* the first failure; later calls then do nothing */
    bool comma;
};

#define JOUT_INIT(b_)  \
    {                  \
        (b_), 0, false \
    }

/* `key` is NULL inside an array and at the top. Keys are our own literals: not escaped. */
void jout_open(struct jout *j, const char *key, char bracket); /* '{' or '[' */
void jout_close(struct jout *j, char bracket);                 /* '}' or ']' */
void jout_str(struct jout *j, const char *key, const char *s); /* NULL: null */
void jout_strn(struct jout *j, const char *key, const char *p, size_t n);
void jout_b64(struct jout *j, const char *key, const void *p, size_t n);
void jout_int(struct jout *j, const char *key, int64_t v);
void jout_uint(struct jout *j, const char *key, uint64_t v);
void jout_thousandths(struct jout *j, const char *key, uint64_t v); /* 1500: 1.5 */
void jout_bool(struct jout *j, const char *key, bool v);
void jout_null(struct jout *j, const char *key);
void jout_time(struct jout *j, const char *key, int64_t wall_ms); /* RFC 3339; 0: null */
void jout_raw(struct jout *j, const char *key, const char *json); /* JSON text as it is */
/* A member whose name came from outside. */
void jout_member(struct jout *j, const char *name, const char *value);
void jout_member_b64(struct jout *j, const char *name, const void *p, size_t n);
int jout_done(struct jout *j);

/* Strict: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool utf8_valid(const char *p, size_t n);
/* Valid UTF-8 without a NUL, which several JSON readers refuse. */
bool text_valid(const char *p, size_t n);
/* No more than JSON_SHALLOW_MAX brackets are open at once. jansson follows 2048 of them, each on the
 * stack, which is most of what a thread of ours has: ask before a stranger's document goes there. */
#define JSON_SHALLOW_MAX 64
bool json_shallow(const char *p, size_t n);
