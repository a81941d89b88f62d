/* sanitise - outside text made safe for a terminal.
 *
 * What a sandbox prints is hostile: an escape sequence can retitle, remap, or type into the
 * reader's terminal. Control characters, C1 controls, stray bytes and direction overrides come
 * out as visible text ("^[", "\x9b", "\u202e"); newline, tab, and plain colour sequences pass. A
 * stream may be cut anywhere, so an unfinished sequence is held until the next chunk. Does no
 * I/O. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define SANITISE_HELD_MAX 48 /* a colour sequence: true colour twice is 38 */

struct sanitiser {
    char held[SANITISE_HELD_MAX]; /* the start of a sequence that is not complete */
    size_t n;
    bool coloured; /* a colour is in force that the end must reset */
};

/* Both append to out; -EMSGSIZE or -ENOMEM from it. */
int sanitise(struct sanitiser *s, const char *p, size_t n, struct buf *out);
int sanitise_end(struct sanitiser *s, struct buf *out);

/* One line for a table or a message: as above, and newline, tab and colours escaped too. The
 * caller owns the result. NULL gives "". */
char *text_line(const char *s);
size_t text_width(const char *s); /* columns, one a code point */
