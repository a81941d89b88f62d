/* A multipart body in two pieces: what its parts hold must be the same wherever it is cut. */
#include <stdlib.h>
#include <string.h>

#include "front/http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int begin(void *arg, const struct multipart_part *part, struct err *err)
{
    return buf_printf(arg, "<%s>", part->filename ? part->filename : "");
}

static int data(void *arg, const char *p, size_t n, struct err *err)
{
    return buf_append(arg, p, n);
}

static int end(void *arg, struct err *err)
{
    return buf_puts(arg, "!");
}

static int read_cut(const char *p, size_t n, size_t cut, struct buf *out)
{
    static const struct multipart_sink sink = { begin, data, end };
    _cleanup_(multipart_freep) struct multipart *m = NULL;
    if (multipart_new("multipart/form-data; boundary=b", &sink, out, &m, NULL) < 0)
        abort();
    int r = multipart_feed(m, p, cut, NULL);
    if (r >= 0)
        r = multipart_feed(m, p + cut, n - cut, NULL);
    return r < 0 ? r : multipart_end(m, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    _cleanup_(buf_done) struct buf whole = BUF_INIT(1 << 20), cut = BUF_INIT(1 << 20);
    if (n < 1)
        return 0;
    size_t at = p[0] % n;
    int a = read_cut((const char *)p + 1, n - 1, 0, &whole);
    int b = read_cut((const char *)p + 1, n - 1, at, &cut);
    if (a != b || whole.len != cut.len || (whole.len && memcmp(whole.data, cut.data, whole.len)))
        abort();
    return 0;
}
