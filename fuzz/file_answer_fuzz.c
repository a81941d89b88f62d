/* What warren-init says of files: written by something a sandbox may control. */
#include "core/file_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct file_event ev;
    if (file_decode((const char *)p, n, &ev) == 0)
        file_event_done(&ev);
    return 0;
}
