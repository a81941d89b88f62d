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

/* Of n typed bytes at `in` + 1, with room for one before them: where what the program gets begins, and how much it is. True: the person
 * leaves, after that. */
bool leave_typed(struct leave *l, char *in, size_t n, char **ret_at, size_t *ret_n);
