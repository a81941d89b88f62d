/* archive_fuzz - manifests of archives, which lie where others may write. */
#include <stdint.h>
#include <string.h>

#include "core/archive_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct archive_manifest m = { .n_layers = 0 };
    struct archive_stream s = { .n = 0 };
    struct err err = ERR_INIT;
    const char *p = (const char *)data;
    if (archive_manifest_read(p, size, &m, &err) == 0) {
        if (!id_valid(m.c.id) || !name_valid(m.c.owner))
            __builtin_trap();
        struct buf b = BUF_INIT(ARCHIVE_MANIFEST_MAX);
        if (archive_manifest_write(&m, &b, &err) < 0)
            __builtin_trap();
        buf_done(&b);
        archive_manifest_done(&m);
    }
    if (archive_stream_read(p, size, &s, &err) == 0)
        archive_stream_done(&s);
    return 0;
}
