/* Connect's envelopes, however they are cut, are the same messages; each of them as binary protobuf is
 * refused, or comes through JSON as it was. */
#include <stdlib.h>
#include <string.h>

#include "filesystem.pb-c.h"
#include "front/rpc/envelope.h"
#include "front/rpc/pbjson.h"
#include "process.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    size_t n, bytes;
    bool decode;
};

static void decode(const ProtobufCMessageDescriptor *d, const char *p, size_t n)
{
    ProtobufCMessage *m = protobuf_c_message_unpack(d, NULL, n, (const uint8_t *)p), *again = NULL;
    if (!m)
        return;
    struct buf text = BUF_INIT(1 << 20), second = BUF_INIT(1 << 20);
    struct jout j = JOUT_INIT(&text), k = JOUT_INIT(&second);
    pbjson_write(&j, NULL, m);
    /* Bytes that are no text do not come back as they were, but what is made of them stays. */
    if (jout_done(&j) >= 0 && pbjson_read(text.data, text.len, d, &again, NULL) >= 0) {
        pbjson_write(&k, NULL, again);
        if (jout_done(&k) < 0 || text.len != second.len ||
            memcmp(text.data, second.data, text.len) != 0)
            abort();
        protobuf_c_message_free_unpacked(again, NULL);
    }
    protobuf_c_message_free_unpacked(m, NULL);
    buf_done(&text);
    buf_done(&second);
}

static int see(void *arg, unsigned flags, const char *p, size_t n)
{
    static const ProtobufCMessageDescriptor *const kinds[] = {
        &process__start_request__descriptor,        &process__stream_input_request__descriptor,
        &process__start_response__descriptor,       &filesystem__create_watcher_request__descriptor,
        &filesystem__list_dir_response__descriptor,
    };
    struct seen *s = arg;
    s->n++;
    s->bytes += n;
    if (s->decode)
        decode(kinds[flags % (sizeof(kinds) / sizeof(*kinds))], p, n);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *p = (const char *)data + 1;
    size_t n = size - 1, piece = data[0] ? data[0] : 1;
    struct envelopes whole = ENVELOPES_INIT, cut = ENVELOPES_INIT;
    struct seen a = { .decode = true }, b = { 0 };
    int r = envelopes_feed(&whole, p, n, see, &a), s = 0;
    for (size_t at = 0; s >= 0 && at < n; at += piece)
        s = envelopes_feed(&cut, p + at, n - at < piece ? n - at : piece, see, &b);
    if (r != s || a.n != b.n || a.bytes != b.bytes ||
        (r >= 0 && envelopes_end(&whole) != envelopes_end(&cut)))
        abort();
    envelopes_done(&whole);
    envelopes_done(&cut);
    return 0;
}
