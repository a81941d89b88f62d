/* What warren-init says of a process: written by something a sandbox may control. */
#include "core/process_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct process process = { 0 };
    if (process_decode((const char *)p, n, &process) == 0)
        process_done(&process);
    return 0;
}
