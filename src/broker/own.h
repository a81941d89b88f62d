/* own - this machine's addresses, which no sandbox is to reach by rule.
 *
 * Read from the kernel, and again when what is known is some seconds old: addresses come and go. All of them
 * count, however many there are. While they cannot be read, what was known holds; while nothing is known,
 * every address is taken for one. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"

struct own {
    struct range *ranges; /* good until the next call */
    size_t n, room;
    int64_t read_ms; /* 0: never */
};

void own_look(struct own *o, int64_t now_ms);
void own_done(struct own *o);
