/* body - where a message's body ends, told while its bytes pass.
 *
 * The bytes are not changed: with a length they are counted, chunks are read strictly, and what
 * stands behind the end is left for whoever reads the next head. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum body_kind { BODY_EMPTY, BODY_LENGTH, BODY_CHUNKED, BODY_UNTIL_END };

struct body {
    enum body_kind kind;
    uint64_t left;     /* of the length, or of this chunk */
    unsigned state;    /* of the chunks */
    unsigned line_len; /* of the size line, or of all trailers */
    bool bare;         /* chunks may have no extensions, and no trailers behind them */
};

void body_start(struct body *b, enum body_kind kind, uint64_t length);
/* 1: it is over, 0: more is to come; *ret_used of the bytes are its own. -EBADMSG: broken chunks. */
int body_take(struct body *b, const char *p, size_t n, size_t *ret_used);
/* The same as far as the next bytes of what it carries: those, without what frames them, are *ret_data;
 * perhaps none. */
int body_read(struct body *b, const char *p, size_t n, size_t *ret_used, const char **ret_data,
              size_t *ret_n);
