#include "net/body.h"

#include <errno.h>

#include "base/hex.h"

#define SIZE_DIGITS_MAX 16
#define SIZE_LINE_MAX 256 /* digits and extensions, which nobody uses */
#define TRAILERS_MAX (8 * 1024)

enum chunk_state {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER,      /* at the beginning of a line */
    CHUNK_TRAILER_LINE, /* in one */
    CHUNK_TRAILER_LF,
    CHUNK_END_LF,
    CHUNK_OVER,
};

void body_start(struct body *b, enum body_kind kind, uint64_t length)
{
    *b = (struct body){ .kind = kind, .left = length, .state = CHUNK_SIZE };
    if (kind == BODY_CHUNKED)
        b->left = 0;
}

static int take_size(struct body *b, unsigned char c)
{
    int digit = hex_digit(c);
    if (digit >= 0) {
        if (++b->line_len > SIZE_DIGITS_MAX || b->left >> 60)
            return -EBADMSG;
        b->left = b->left << 4 | (unsigned)digit;
        return 0;
    }
    if (b->line_len == 0)
        return -EBADMSG;
    if (c == '\r')
        b->state = CHUNK_SIZE_LF;
    else if (c == ';')
        b->state = CHUNK_EXTENSION;
    else
        return -EBADMSG;
    return 0;
}

static int take_extension(struct body *b, unsigned char c)
{
    if (b->bare || ++b->line_len > SIZE_LINE_MAX)
        return -EBADMSG;
    if (c == '\r')
        b->state = CHUNK_SIZE_LF;
    else if (c < ' ' || c >= 0x7f)
        return -EBADMSG;
    return 0;
}

static int take_trailer(struct body *b, unsigned char c)
{
    if (++b->line_len > TRAILERS_MAX)
        return -EBADMSG;
    if (c == '\r') {
        b->state = b->state == CHUNK_TRAILER ? CHUNK_END_LF : CHUNK_TRAILER_LF;
        return 0;
    }
    if (b->bare || (c < ' ' && c != '\t') || c == 0x7f)
        return -EBADMSG;
    if (b->state == CHUNK_TRAILER && (c == ' ' || c == '\t' || c == ':'))
        return -EBADMSG;
    b->state = CHUNK_TRAILER_LINE;
    return 0;
}

static int take_lf(struct body *b, unsigned char c, unsigned next)
{
    b->state = next;
    return c == '\n' ? 0 : -EBADMSG;
}

/* One byte of the framing. */
static int take_byte(struct body *b, unsigned char c)
{
    switch ((enum chunk_state)b->state) {
    case CHUNK_SIZE: return take_size(b, c);
    case CHUNK_EXTENSION: return take_extension(b, c);
    case CHUNK_SIZE_LF: b->line_len = 0; return take_lf(b, c, b->left ? CHUNK_DATA : CHUNK_TRAILER);
    case CHUNK_DATA_CR: b->state = CHUNK_DATA_LF; return c == '\r' ? 0 : -EBADMSG;
    case CHUNK_DATA_LF: return take_lf(b, c, CHUNK_SIZE);
    case CHUNK_TRAILER:
    case CHUNK_TRAILER_LINE: return take_trailer(b, c);
    case CHUNK_TRAILER_LF: return take_lf(b, c, CHUNK_TRAILER);
    case CHUNK_END_LF: return take_lf(b, c, CHUNK_OVER);
    case CHUNK_DATA:
    case CHUNK_OVER: break;
    }
    return -EBADMSG;
}

static size_t take_data(struct body *b, size_t n)
{
    size_t used = b->left < n ? (size_t)b->left : n;
    b->left -= used;
    return used;
}

static int take_chunks(struct body *b, const char *p, size_t n, size_t *ret_used)
{
    size_t at = 0;
    while (at < n && b->state != CHUNK_OVER) {
        if (b->state == CHUNK_DATA) {
            at += take_data(b, n - at);
            if (b->left == 0)
                b->state = CHUNK_DATA_CR;
            continue;
        }
        if (take_byte(b, (unsigned char)p[at++]) < 0)
            return -EBADMSG;
    }
    *ret_used = at;
    return b->state == CHUNK_OVER;
}

int body_take(struct body *b, const char *p, size_t n, size_t *ret_used)
{
    *ret_used = 0;
    switch (b->kind) {
    case BODY_EMPTY: return 1;
    case BODY_LENGTH: *ret_used = take_data(b, n); return b->left == 0;
    case BODY_CHUNKED: return take_chunks(b, p, n, ret_used);
    case BODY_UNTIL_END: *ret_used = n; return 0;
    }
    return -EBADMSG;
}

int body_read(struct body *b, const char *p, size_t n, size_t *ret_used, const char **ret_data,
              size_t *ret_n)
{
    size_t at = 0;
    *ret_data = p;
    *ret_n = 0;
    if (b->kind != BODY_CHUNKED) {
        int r = body_take(b, p, n, ret_used);
        *ret_n = *ret_used;
        return r;
    }
    while (at < n && b->state != CHUNK_DATA && b->state != CHUNK_OVER)
        if (take_byte(b, (unsigned char)p[at++]) < 0)
            return -EBADMSG;
    if (b->state == CHUNK_DATA && at < n) {
        *ret_data = p + at;
        *ret_n = take_data(b, n - at);
        b->state = b->left ? CHUNK_DATA : CHUNK_DATA_CR;
    }
    *ret_used = at + *ret_n;
    return b->state == CHUNK_OVER;
}
