/* A server's frames: what comes out is frames again, and none of them has the secret. */
#include <stdlib.h>
#include <string.h>

#include "net/blot_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Made once: that takes longer than reading any input. */
static struct blot_words *secret(void)
{
    static struct blot_words *w;
    if (!w && (!(w = blot_words_new()) || blot_words_add(w, "secret", 6) < 0))
        abort();
    return w;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct buf out = BUF_INIT(1 << 20);
    struct blot_frames f = { 0 };
    struct blot b;
    size_t piece = n ? 1 + p[0] % 16 : 1;
    if (blot_init(&b, secret()) < 0)
        abort();
    int r = 0;
    for (size_t at = 1; at < n && r >= 0; at += piece)
        r = blot_frames_take(&f, &b, (const char *)p + at, n - at < piece ? n - at : piece, &out);
    if (out.len && memmem(out.data, out.len, "secret", 6))
        abort();
    blot_done(&b);
    buf_done(&out);
    return 0;
}
