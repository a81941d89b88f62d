/* WebSocket frames as a client may send them: read whole and in steps, the result must be the same. */
#include <stdint.h>
#include <string.h>

#include "ws/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Bytes of data, and how it ended. */
static int read_in_steps(const uint8_t *p, size_t n, size_t step, enum frames_side side,
                         size_t *ret_data)
{
    struct frames *f = NULL;
    struct frames_piece piece;
    int r = frames_new(side, &f);
    *ret_data = 0;
    for (size_t at = 0; at < n && r >= 0; at += step) {
        frames_feed(f, p + at, n - at < step ? n - at : step);
        while ((r = frames_next(f, &piece)) > 0) {
            if (piece.kind == FRAMES_DATA)
                *ret_data += piece.n;
            else if (piece.n > FRAMES_CONTROL_MAX)
                __builtin_trap();
        }
    }
    frames_free(f);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    for (enum frames_side side = FRAMES_SERVER; side <= FRAMES_CLIENT; side++) {
        size_t whole, stepped;
        int a = read_in_steps(p, n, n ? n : 1, side, &whole);
        int b = read_in_steps(p, n, 3, side, &stepped);
        if (a != b || whole != stepped)
            __builtin_trap();
    }
    return 0;
}
