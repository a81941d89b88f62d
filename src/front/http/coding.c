#include "front/http/coding.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#define PIECE (64 * 1024)
#define GZIP_WINDOW (15 + 16) /* zlib's largest window, with gzip's frame around it */
#define GZIP_LEVEL 1          /* an answer is made while the client waits */
#define GZIP_MEMORY 8
#define ZSTD_LEVEL 1
#define ZSTD_WINDOW_LOG 23 /* 8 MiB: what receivers of HTTP must take, and not more */

static const char *const names[] = { [CODING_GZIP] = "gzip", [CODING_ZSTD] = "zstd" };

const char *coding_name(enum coding coding)
{
    return coding == CODING_NONE ? "identity" : names[coding];
}

int coding_parse(const char *content_encoding, enum coding *ret_coding)
{
    enum coding coding = CODING_NONE;
    if (!content_encoding || strcasecmp(content_encoding, "identity") == 0)
        coding = CODING_NONE;
    else if (strcasecmp(content_encoding, "gzip") == 0 ||
             strcasecmp(content_encoding, "x-gzip") == 0)
        coding = CODING_GZIP;
    else if (strcasecmp(content_encoding, "zstd") == 0)
        coding = CODING_ZSTD;
    else
        return -EINVAL;
    *ret_coding = coding;
    return 0;
}

/* One element of the list: its name, and false where its weight is 0. */
static bool element_is(const char *p, size_t n, const char *name)
{
    size_t len = strlen(name);
    while (n > 0 && (*p == ' ' || *p == '\t')) {
        p++;
        n--;
    }
    if (n < len || strncasecmp(p, name, len) != 0)
        return false;
    const char *rest = p + len, *end = p + n;
    while (rest < end && (*rest == ' ' || *rest == '\t'))
        rest++;
    if (rest == end)
        return true;
    if (*rest != ';')
        return false;
    const char *q = memmem(rest, (size_t)(end - rest), "q=", 2);
    if (!q)
        return true;
    for (q += 2; q < end && (*q == '0' || *q == '.'); q++)
        ;
    return q < end && *q >= '1' && *q <= '9';
}

enum coding coding_accepted(const char *accept_encoding)
{
    enum coding best = CODING_NONE;
    for (const char *at = accept_encoding; at; at = *at ? at + 1 : NULL) {
        size_t n = strcspn(at, ",");
        if (element_is(at, n, names[CODING_ZSTD]))
            return CODING_ZSTD;
        if (element_is(at, n, names[CODING_GZIP]))
            best = CODING_GZIP;
        at += n;
    }
    return best;
}

/* ---- decoding ---- */

struct decoder {
    enum coding coding;
    z_stream gzip;
    ZSTD_DCtx *zstd;
    bool begun, whole; /* some bytes came; they end with the end of a member or frame */
    char out[PIECE];
};

int decoder_new(enum coding coding, struct decoder **ret_decoder)
{
    _cleanup_(decoder_freep) struct decoder *d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    if (coding == CODING_GZIP && inflateInit2(&d->gzip, GZIP_WINDOW) != Z_OK)
        return -ENOMEM;
    d->coding = coding;
    if (coding == CODING_ZSTD) {
        d->zstd = ZSTD_createDCtx();
        if (!d->zstd)
            return -ENOMEM;
        (void)ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    }
    *ret_decoder = take_ptr(d);
    return 0;
}

static int inflate_piece(struct decoder *d, const char *p, size_t n, decoder_out_fn out, void *arg)
{
    z_stream *z = &d->gzip;
    z->next_in = (Bytef *)(uintptr_t)p;
    z->avail_in = (uInt)n;
    do {
        if (d->whole) { /* another member follows */
            (void)inflateReset(z);
            d->whole = false;
        }
        z->next_out = (Bytef *)d->out;
        z->avail_out = PIECE;
        int r = inflate(z, Z_NO_FLUSH);
        if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
            return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
        d->whole = r == Z_STREAM_END;
        size_t got = PIECE - z->avail_out;
        if (got > 0) {
            r = out(arg, d->out, got);
            if (r < 0)
                return r;
        }
    } while (z->avail_in > 0 || (z->avail_out == 0 && !d->whole));
    return 0;
}

static int unzstd_piece(struct decoder *d, const char *p, size_t n, decoder_out_fn out, void *arg)
{
    ZSTD_inBuffer in = { p, n, 0 };
    for (;;) {
        ZSTD_outBuffer o = { d->out, PIECE, 0 };
        size_t r = ZSTD_decompressStream(d->zstd, &o, &in);
        if (ZSTD_isError(r))
            return -EBADMSG;
        d->whole = r == 0;
        if (o.pos > 0) {
            int took = out(arg, d->out, o.pos);
            if (took < 0)
                return took;
        }
        if (in.pos == in.size && (o.pos < PIECE || d->whole))
            return 0;
    }
}

int decoder_feed(struct decoder *d, const char *p, size_t n, decoder_out_fn out, void *arg)
{
    if (n == 0)
        return 0;
    d->begun = true;
    switch (d->coding) {
    case CODING_NONE: return out(arg, p, n);
    case CODING_GZIP:
        for (size_t piece; n > 0; p += piece, n -= piece) {
            piece = n < UINT32_MAX ? n : UINT32_MAX; /* zlib counts in 32 bits */
            int r = inflate_piece(d, p, piece, out, arg);
            if (r < 0)
                return r;
        }
        return 0;
    case CODING_ZSTD: return unzstd_piece(d, p, n, out, arg);
    }
    return -EINVAL;
}

bool decoder_is_plain(const struct decoder *d)
{
    return d->coding == CODING_NONE;
}

int decoder_end(const struct decoder *d)
{
    return d->coding == CODING_NONE || (d->begun && d->whole) ? 0 : -EBADMSG;
}

void decoder_free(struct decoder *d)
{
    if (!d)
        return;
    if (d->coding == CODING_GZIP)
        (void)inflateEnd(&d->gzip);
    (void)ZSTD_freeDCtx(d->zstd);
    free(d);
}

/* ---- encoding ---- */

struct encoder {
    enum coding coding;
    z_stream gzip;
    ZSTD_CCtx *zstd;
    size_t have, at; /* of `in` */
    bool drained, ended;
    char in[PIECE];
};

int encoder_new(enum coding coding, struct encoder **ret_encoder)
{
    _cleanup_(encoder_freep) struct encoder *e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    if (coding == CODING_GZIP && deflateInit2(&e->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW,
                                              GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    e->coding = coding;
    if (coding == CODING_ZSTD) {
        e->zstd = ZSTD_createCCtx();
        if (!e->zstd)
            return -ENOMEM;
        (void)ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    }
    *ret_encoder = take_ptr(e);
    return 0;
}

/* What of `in` can be coded into out now; *ret_n may be 0. */
static int encode_step(struct encoder *e, char *out, size_t max, size_t *ret_n)
{
    if (e->coding == CODING_GZIP) {
        z_stream *z = &e->gzip;
        z->next_in = (Bytef *)e->in + e->at;
        z->avail_in = (uInt)(e->have - e->at);
        z->next_out = (Bytef *)out;
        z->avail_out = (uInt)max;
        int r = deflate(z, e->drained ? Z_FINISH : Z_NO_FLUSH);
        if (r == Z_STREAM_ERROR)
            return -EIO;
        e->at = e->have - z->avail_in;
        e->ended = r == Z_STREAM_END;
        *ret_n = max - z->avail_out;
        return 0;
    }
    ZSTD_inBuffer in = { e->in, e->have, e->at };
    ZSTD_outBuffer o = { out, max, 0 };
    size_t r = ZSTD_compressStream2(e->zstd, &o, &in, e->drained ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(r))
        return -EIO;
    e->at = in.pos;
    e->ended = e->drained && r == 0;
    *ret_n = o.pos;
    return 0;
}

ssize_t encoder_read(struct encoder *e, char *out, size_t max, encoder_in_fn in, void *arg)
{
    if (max > PIECE)
        max = PIECE;
    while (!e->ended) {
        if (e->at == e->have && !e->drained) {
            ssize_t n = in(arg, e->in, PIECE);
            if (n < 0)
                return n;
            e->at = 0;
            e->have = (size_t)n;
            e->drained = n == 0;
        }
        size_t n = 0;
        int r = encode_step(e, out, max, &n);
        if (r < 0)
            return r;
        if (n > 0)
            return (ssize_t)n;
    }
    return 0;
}

void encoder_free(struct encoder *e)
{
    if (!e)
        return;
    if (e->coding == CODING_GZIP)
        (void)deflateEnd(&e->gzip);
    (void)ZSTD_freeCCtx(e->zstd);
    free(e);
}
