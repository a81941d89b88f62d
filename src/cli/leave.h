/* leave - the keys with which a person leaves a program on a terminal: Ctrl-], as telnet has it, or Ctrl-P Ctrl-Q, as
 * docker has it.
 *
 * A Ctrl-P is held back until the next key tells what it was: the programs inside use it, too. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct leave {
    bool held; /* a Ctrl-P */
};

/* n bytes were typed and lie at `in` + 1; in[0] is room for a Ctrl-P that was held. Says which bytes the program gets: ret_n of
 * them at ret_at. True: the person leaves. */
bool leave_typed(struct leave *l, char *in, size_t n, char **ret_at, size_t *ret_n);
