#include "net/redact_frames.h"

#include <errno.h>
#include <string.h>

#define FIN 0x80u
#define RESERVED 0x70u
#define OPCODE 0x0fu
#define CONTROL 0x08u
#define MASKED 0x80u
#define CLEAN_MAX (1024 * 1024)

static int put_frame(struct buf *out, unsigned first, const char *p, size_t n)
{
    unsigned char head[REDACT_FRAMES_HEAD_MAX] = { (unsigned char)first };
    size_t n_head = n < 126 ? 2 : n < 65536 ? 4 : 10;
    head[1] = (unsigned char)(n < 126 ? n : n < 65536 ? 126 : 127);
    for (size_t i = 2; i < n_head; i++)
        head[i] = (unsigned char)((uint64_t)n >> (8 * (n_head - 1 - i)));
    int r = buf_append(out, head, n_head);
    return r < 0 || n == 0 ? r : buf_append(out, p, n);
}

/* ---- heads ---- */

static size_t head_size(const struct redact_frames *f)
{
    unsigned len = f->n_head > 1 ? f->head[1] & ~MASKED : 0;
    return len == 126 ? 4 : len == 127 ? 10 : 2;
}

static uint64_t payload_size(const struct redact_frames *f)
{
    uint64_t n = 0;
    if (f->n_head == 2)
        return f->head[1];
    for (size_t i = 2; i < f->n_head; i++)
        n = n << 8 | f->head[i];
    return n;
}

static int check_head(struct redact_frames *f)
{
    unsigned opcode = f->head[0] & OPCODE;
    if ((f->head[0] & RESERVED) || (f->head[1] & MASKED) || f->left >> 63)
        return -EBADMSG;
    if (opcode & CONTROL)
        return (f->head[0] & FIN) && f->left <= REDACT_FRAMES_CONTROL_MAX && opcode <= 10
                   ? 0
                   : -EBADMSG;
    if (opcode > 2 || (opcode == 0) != (f->opcode != 0))
        return -EBADMSG;
    if (opcode) {
        f->opcode = opcode;
        f->begun = false;
    }
    return 0;
}

/* ---- payloads ---- */

/* What of a message is clean; `last`: that is the end of it. */
static int put_message(struct redact_frames *f, const struct buf *clean, bool last, struct buf *out)
{
    if (!clean->len && !last)
        return 0;
    int r = put_frame(out, (last ? FIN : 0) | (f->begun ? 0 : f->opcode), clean->data, clean->len);
    f->begun = true;
    if (last)
        f->opcode = 0;
    return r;
}

static int take_message(struct redact_frames *f, struct redact *redact, const char *p, size_t n,
                        struct buf *out)
{
    _cleanup_(buf_done) struct buf clean = BUF_INIT(CLEAN_MAX);
    bool last = f->left == n && (f->head[0] & FIN);
    int r = n ? redact_take(redact, p, n, &clean) : 0;
    if (r >= 0 && last)
        r = redact_end(redact, &clean);
    return r < 0 ? r : put_message(f, &clean, last, out);
}

static int take_control(struct redact_frames *f, struct redact *redact, const char *p, size_t n,
                        struct buf *out)
{
    if (n)
        memcpy(f->control + f->n_control, p, n);
    f->n_control += n;
    if (f->left != n)
        return 0;
    int r = redact_whole(redact->words, f->control, f->n_control);
    if (r >= 0)
        r = put_frame(out, f->head[0], f->control, f->n_control);
    f->n_control = 0;
    return r;
}

/* ---- all of it ---- */

static int take_head(struct redact_frames *f, const char *p, size_t n, size_t *ret_used)
{
    size_t used = 0;
    while (used < n && f->n_head < head_size(f))
        f->head[f->n_head++] = (unsigned char)p[used++];
    *ret_used = used;
    if (f->n_head < 2 || f->n_head < head_size(f))
        return 0;
    f->left = payload_size(f);
    f->in_payload = true;
    return check_head(f);
}

int redact_frames_take(struct redact_frames *f, struct redact *redact, const char *p, size_t n,
                       struct buf *out)
{
    int r = 0;
    while (r >= 0 && (n || f->in_payload)) {
        size_t used = 0;
        if (!f->in_payload) {
            r = take_head(f, p, n, &used);
        } else {
            used = f->left < n ? (size_t)f->left : n;
            if (!used && f->left)
                return 0;
            r = (f->head[0] & CONTROL ? take_control : take_message)(f, redact, p, used, out);
            f->left -= used;
            f->in_payload = f->left > 0;
            f->n_head = f->in_payload ? f->n_head : 0;
        }
        p += used;
        n -= used;
    }
    return r;
}
