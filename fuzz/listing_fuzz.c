/* listing_fuzz - what an object storage can answer: pages of a list, and failures. */
#include <stdint.h>
#include <string.h>

#include "s3/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int check(void *ctx, const struct s3_object *o, struct err *err)
{
    size_t n = strlen(o->key);
    if (n == 0 || n > S3_KEY_MAX)
        __builtin_trap();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct listing_end end;
    struct err err = ERR_INIT;
    char code[S3_CODE_MAX];
    const char *p = (const char *)data;
    if (listing_read(p, size, check, NULL, &end, &err) == 0 && end.more && !end.token[0])
        __builtin_trap();
    listing_code(p, size, code);
    if (strlen(code) >= sizeof(code))
        __builtin_trap();
    return 0;
}
