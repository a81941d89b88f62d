/* The JSON bodies of teams: names, and quotas within them. */
#include <stdint.h>

#include "front/native/teams.c" /* its tables and its reading are its own */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request req = { .fd = -1, .body = BUF_INIT(REQUEST_JSON_MAX) };
    struct ask ask = { 0 };
    struct err err = ERR_INIT;
    if (buf_append(&req.body, data, size) < 0)
        return 0;
    if (read_ask(&req, &ask, &err) >= 0)
        for (int q = 0; q < QUOTA_COUNT; q++)
            if (ask.quotas.set.v[q] < 0 && ask.quotas.set.v[q] != QUOTA_NONE)
                __builtin_trap();
    free(ask.name);
    buf_done(&req.body);
    return 0;
}
