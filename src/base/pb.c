#include "base/pb.h"

#include <errno.h>
#include <string.h>

enum { KIND_VARINT = 0, KIND_64 = 1, KIND_BYTES = 2, KIND_32 = 5 };
#define VARINT_MAX 10 /* bytes of 64 bits, seven at a time */

static int put_varint(struct buf *b, uint64_t v)
{
    unsigned char out[VARINT_MAX];
    size_t n = 0;
    do {
        out[n] = (unsigned char)(v & 0x7f);
        v >>= 7;
        if (v)
            out[n] |= 0x80;
        n++;
    } while (v);
    return buf_append(b, out, n);
}

int pb_put_int(struct buf *b, unsigned number, uint64_t value)
{
    int r = put_varint(b, (uint64_t)number << 3 | KIND_VARINT);
    return r < 0 ? r : put_varint(b, value);
}

int pb_put_bytes(struct buf *b, unsigned number, const void *p, size_t n)
{
    int r = put_varint(b, (uint64_t)number << 3 | KIND_BYTES);
    if (r == 0)
        r = put_varint(b, n);
    return r < 0 ? r : buf_append(b, p, n);
}

int pb_put_str(struct buf *b, unsigned number, const char *s)
{
    return s ? pb_put_bytes(b, number, s, strlen(s)) : 0;
}

static int get_varint(struct pb_reader *r, uint64_t *ret_v)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < VARINT_MAX && i < r->n; i++) {
        unsigned char byte = (unsigned char)r->p[i];
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        r->p += i + 1;
        r->n -= i + 1;
        *ret_v = v;
        return 0;
    }
    return -EPROTO;
}

static int take(struct pb_reader *r, uint64_t n, struct pb_field *f)
{
    if (n > r->n)
        return -EPROTO;
    f->p = r->p;
    f->n = (size_t)n;
    r->p += n;
    r->n -= (size_t)n;
    return 1;
}

int pb_next(struct pb_reader *r, struct pb_field *ret_field)
{
    struct pb_field f = { 0 };
    uint64_t key, len;
    if (r->n == 0)
        return 0;
    if (get_varint(r, &key) < 0 || key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return -EPROTO;
    f.number = (unsigned)(key >> 3);
    int k;
    switch (key & 7) {
    case KIND_VARINT: k = get_varint(r, &f.value) < 0 ? -EPROTO : 1; break;
    case KIND_BYTES: k = get_varint(r, &len) < 0 ? -EPROTO : take(r, len, &f); break;
    case KIND_64: k = take(r, 8, &f); break;
    case KIND_32: k = take(r, 4, &f); break;
    default: k = -EPROTO;
    }
    if (k == 1)
        *ret_field = f;
    return k;
}
