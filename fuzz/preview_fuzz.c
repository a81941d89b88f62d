/* preview_fuzz - requests and answers of previews, written anew. What is sent on must read as strictly as what
 * came, and hold no token, no cookie of Warren's and no word that only Warren may say. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "broker/proof.h"
#include "broker/rewrite.h"
#include "broker/way.h"
#include "net/head.h"

#define DATA "{\"of\":\"ours\"}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct head head, again;

static void check_request(const struct head *sent, const struct way *way)
{
    size_t ours = 0;
    for (size_t i = 0; i < sent->nfields; i++) {
        const struct head_field *f = &sent->fields[i];
        if (text_is(f->name, "X-Verified-User-Data")) {
            if (++ours > 1 || f->value.n != sizeof(DATA) - 1)
                __builtin_trap();
            continue;
        }
        if (way->inside && (text_starts(f->name, "X-Warren-") ||
                            (text_is(f->name, "Referer") && proof_in_url(f->value))))
            __builtin_trap();
    }
    if (ours != 1 || (way->inside && proof_in_url(sent->target)))
        __builtin_trap();
}

static void take_request(const char *p, size_t n)
{
    static const struct own_names none;
    const struct way_map map = { "localhost", &none, n & 1 };
    struct way way;
    _cleanup_(buf_done) struct buf out = BUF_INIT(4 * HEAD_MAX);
    size_t end = head_end(p, n, 0);
    if (end == 0 || head_request(p, end, &head) < 0 || way_find(&head, &map, &way) < 0 ||
        way.nobody)
        return;
    struct rewrite how = { .peer = "192.0.2.1", .host = "", .data = DATA, .tls = map.tls };
    way_rewrite(&way, &how);
    if (rewrite_request(&head, &how, &out) < 0)
        return;
    int r = head_request(out.data, out.len, &again);
    if (r == -EMSGSIZE || out.len > HEAD_MAX)
        return; /* ours on top of as many as are allowed */
    if (r < 0 || again.body != head.body || again.length != head.length)
        __builtin_trap();
    check_request(&again, &way);
}

static void take_answer(const char *p, size_t n)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(4 * HEAD_MAX);
    size_t end = head_end(p, n, 0);
    if (end == 0 || head_answer(p, end, false, &head) < 0 ||
        rewrite_answer(&head, true, true, &out) < 0 ||
        head_answer(out.data, out.len, false, &again) < 0)
        return;
    for (size_t i = 0; i < again.nfields; i++)
        if (text_is(again.fields[i].name, "Set-Cookie") &&
            (text_starts(again.fields[i].value, "warren_") ||
             memmem(again.fields[i].value.p, again.fields[i].value.n, "; Domain=", 9)))
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > HEAD_MAX)
        return 0;
    if (data[0] & 1)
        take_request((const char *)data + 1, size - 1);
    else
        take_answer((const char *)data + 1, size - 1);
    return 0;
}
