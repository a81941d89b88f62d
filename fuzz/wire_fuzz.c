/* wire_fuzz - what arrives on warren-init's socket: headers, fields, whole requests.
 *
 *   clang -std=gnu17 -D_GNU_SOURCE -g -fsanitize=fuzzer,address,undefined -Isrc \
 *     fuzz/wire_fuzz.c src/init/call.c src/wire/wire.c src/base/{buf,err,fd}.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "init/call.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const char *s)
{
    volatile size_t n = s ? strlen(s) : 0;
    (void)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_header h;
    if (size < WIRE_HEADER_SIZE || wire_header_get(data, &h) < 0)
        return 0;
    /* The length is whatever really follows; that it is checked is the header's own test. */
    h.len = (uint32_t)(size - WIRE_HEADER_SIZE);
    char *payload = malloc(h.len + 1u);
    if (!payload)
        return 0;
    memcpy(payload, data + WIRE_HEADER_SIZE, h.len);

    struct call call = { 0 };
    struct err err = ERR_INIT;
    if (call_decode(&h, payload, &call, &err) == 0) {
        for (size_t i = 0; i < call.argc; i++)
            touch(call.argv[i]);
        for (size_t i = 0; i < call.envc; i++)
            touch(call.env[i]);
        touch(call.cwd);
        touch(call.user);
        touch(call.label);
        if (call.data_n && call.data[call.data_n - 1] == 'x')
            touch("x");
    }
    call_done(&call);
    free(payload);
    return 0;
}
