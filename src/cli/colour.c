#include "cli/colour.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static enum { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER } chosen;

int colour_choose(const char *when)
{
    static const char *const words[] = {
        [WHEN_AUTO] = "auto", [WHEN_ALWAYS] = "always", [WHEN_NEVER] = "never"
    };
    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(when, words[i]) == 0) {
            chosen = i;
            return 0;
        }
    return -EINVAL;
}

bool colour_wanted(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    if (chosen != WHEN_AUTO)
        return chosen == WHEN_ALWAYS;
    return !(no && *no) && term && *term && strcmp(term, "dumb") != 0 && isatty(fileno(out));
}

const char *colour_on(FILE *out, enum colour colour)
{
    static const char *const codes[] = {
        [COLOUR_NONE] = "",         [COLOUR_BOLD] = "\x1b[1m",   [COLOUR_DIM] = "\x1b[2m",
        [COLOUR_RED] = "\x1b[31m",  [COLOUR_GREEN] = "\x1b[32m", [COLOUR_YELLOW] = "\x1b[33m",
        [COLOUR_CYAN] = "\x1b[36m",
    };
    return colour_wanted(out) ? codes[colour] : "";
}

const char *colour_off(FILE *out, enum colour colour)
{
    return colour != COLOUR_NONE && colour_wanted(out) ? "\x1b[0m" : "";
}

enum colour colour_of_state(const char *state)
{
    static const struct {
        const char *word;
        enum colour colour;
    } states[] = {
        { "running", COLOUR_GREEN },   { "ready", COLOUR_GREEN },     { "exit 0", COLOUR_DIM },
        { "stopped", COLOUR_DIM },     { "archived", COLOUR_DIM },    { "frozen", COLOUR_CYAN },
        { "paused", COLOUR_CYAN },     { "creating", COLOUR_YELLOW }, { "stopping", COLOUR_YELLOW },
        { "pausing", COLOUR_YELLOW },  { "resuming", COLOUR_YELLOW }, { "deleting", COLOUR_YELLOW },
        { "building", COLOUR_YELLOW }, { "waiting", COLOUR_YELLOW },  { "failed", COLOUR_RED },
        { "oom", COLOUR_RED },         { "error", COLOUR_RED },
    };
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (strcmp(state, states[i].word) == 0)
            return states[i].colour;
    return strncmp(state, "exit ", 5) == 0 ? COLOUR_RED : COLOUR_NONE;
}
