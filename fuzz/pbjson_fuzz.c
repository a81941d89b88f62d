/* JSON as a message of several kinds: refused, or written and read again to the same text. */
#include <stdlib.h>
#include <string.h>

#include "filesystem.pb-c.h"
#include "front/rpc/pbjson.h"
#include "process.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int write_to(struct buf *b, const ProtobufCMessage *m)
{
    struct jout j = JOUT_INIT(b);
    pbjson_write(&j, NULL, m);
    return jout_done(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ProtobufCMessageDescriptor *const kinds[] = {
        &process__start_request__descriptor,       &process__send_input_request__descriptor,
        &process__send_signal_request__descriptor, &process__process_event__descriptor,
        &filesystem__entry_info__descriptor,       &filesystem__watch_dir_request__descriptor,
    };
    if (size == 0)
        return 0;
    const ProtobufCMessageDescriptor *d = kinds[data[0] % (sizeof(kinds) / sizeof(*kinds))];
    ProtobufCMessage *m = NULL, *again = NULL;
    if (pbjson_read((const char *)data + 1, size - 1, d, &m, NULL) < 0)
        return 0;
    struct buf first = BUF_INIT(1 << 20), second = BUF_INIT(1 << 20);
    if (write_to(&first, m) >= 0) {
        if (pbjson_read(first.data, first.len, d, &again, NULL) < 0 ||
            write_to(&second, again) < 0 || first.len != second.len ||
            memcmp(first.data, second.data, first.len) != 0)
            abort();
        protobuf_c_message_free_unpacked(again, NULL);
    }
    protobuf_c_message_free_unpacked(m, NULL);
    buf_done(&first);
    buf_done(&second);
    return 0;
}
