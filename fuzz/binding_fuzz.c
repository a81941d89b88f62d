/* Bindings: what is read is written as it is read again, what is packed is unpacked the same, and a
 * path that fits has no segment of dots. */
#include <stdlib.h>
#include <string.h>

#include "net/binding.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void same_again(const struct bindings *bs)
{
    struct buf once = BUF_INIT(BINDINGS_TEXT_MAX), twice = BUF_INIT(BINDINGS_TEXT_MAX);
    struct buf packed = BUF_INIT(BINDINGS_PACKED_MAX);
    struct bindings again = BINDINGS_INIT, back = BINDINGS_INIT;
    if (bindings_text(bs, &once) < 0 || bindings_pack(bs, &packed) < 0)
        abort();
    if (once.len && (bindings_parse(once.data, once.len, &again, NULL) < 0 ||
                     bindings_text(&again, &twice) < 0 || once.len != twice.len ||
                     memcmp(once.data, twice.data, once.len) != 0))
        abort();
    if (bindings_unpack(packed.data, packed.len, &back, NULL) < 0 || back.n != bs->n)
        abort();
    bindings_done(&again);
    bindings_done(&back);
    buf_done(&once);
    buf_done(&twice);
    buf_done(&packed);
}

static void spelled_once(const char *target, size_t n)
{
    struct buf path = BUF_INIT(3 * n + 1), again = BUF_INIT(3 * n + 1);
    size_t query = 0, rest = 0;
    if (binding_path(target, n, &path, &query) == 0) {
        if (query > n || strstr(path.data, "/../") || strstr(path.data, "/./") ||
            binding_path(path.data, path.len, &again, &rest) < 0 || again.len != path.len ||
            memcmp(again.data, path.data, path.len) != 0)
            abort();
    }
    buf_done(&path);
    buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct bindings bs = BINDINGS_INIT, unpacked = BINDINGS_INIT;
    const char *text = (const char *)p, *zero = n ? memchr(p, '\0', n) : NULL;
    size_t head = zero ? (size_t)(zero - text) : 0; /* a request's target, before the lines */
    const struct binding *fits[BINDINGS_MAX];
    struct err err = ERR_INIT;
    spelled_once(text, head);
    text += head + (zero != NULL);
    n -= head + (zero != NULL);
    if (bindings_unpack(text, n, &unpacked, NULL) == 0)
        bindings_done(&unpacked);
    if (bindings_parse(text, n, &bs, &err) < 0) {
        if (err.failure != FAIL_INVALID_BINDING || !err.msg[0])
            abort();
        return 0;
    }
    same_again(&bs);
    struct binding_request q = { .host = bs.n ? bs.items[0].host : "a.test",
                                 .port = 443,
                                 .method = "GET",
                                 .n_method = 3,
                                 .target = (const char *)p,
                                 .n_target = head };
    (void)bindings_match(&bs, &q, fits);
    bindings_done(&bs);
    return 0;
}
