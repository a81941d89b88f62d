/* id - names of things: random ids, the shape of an id, of a user's own name.
 *
 * A sandbox id is 20 characters of [a-z0-9], the first a letter: it fits every
 * dialect we speak and a host name. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define ID_LEN 20
#define ID_SIZE (ID_LEN + 1)
#define NAME_MAX_LEN 63 /* a host name label */

int id_random(char out[ID_SIZE]);
bool id_valid(const char *id);

/* [A-Za-z0-9] first, then also '.', '_', '-'; at most NAME_MAX_LEN. */
bool name_valid(const char *name);

int random_bytes(void *out, size_t n);
