/* colour - whether what is printed is coloured, and how.
 *
 * Colour goes to a terminal that is not TERM=dumb, unless NO_COLOR is set; --color always or never
 * decides otherwise, for the whole program. Knows nothing of what is printed. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

enum colour {
    COLOUR_NONE,
    COLOUR_BOLD,
    COLOUR_DIM,
    COLOUR_RED,
    COLOUR_GREEN,
    COLOUR_YELLOW,
    COLOUR_CYAN,
};

int colour_choose(const char *when); /* auto, always or never; -EINVAL */
bool colour_wanted(FILE *out);
/* Both "" where no colour is wanted. */
const char *colour_on(FILE *out, enum colour colour);
const char *colour_off(FILE *out, enum colour colour);
/* How the state of something is shown, a word of the API's or `warren ps`'s. */
enum colour colour_of_state(const char *state);
