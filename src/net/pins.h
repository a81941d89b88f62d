/* pins - which names were resolved to which addresses for one sandbox, and may therefore be used there.
 *
 * A client asks for a name and then dials an address; a rule by host holds for that address because
 * we answered with it. A pin outlives its record's time, since programs keep addresses longer than they
 * should; it is bounded in number, and the one that ends first makes room. Linear in at most
 * PINS_MAX small entries. Knows no clock: the caller says what time it is. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "net/address.h"

#define PINS_MAX 1024
#define PINS_NAMES_MAX 32 /* names told of one address */

struct pins;

struct pins *pins_new(void); /* NULL: no memory */
void pins_free(struct pins *pins);
DEFINE_FREEP(struct pins *, pins_free)

/* -ENOMEM. A pair that is there already ends at the later time. */
int pins_add(struct pins *pins, const char *name, const struct address *to, int64_t now_ms,
             int64_t until_ms);
bool pins_has(const struct pins *pins, const char *name, const struct address *to, int64_t now_ms);
/* The names of this address, the one that was asked for last first, as many as there is room for;
 * keeps: until the next pins_add or pins_clear. */
size_t pins_names(const struct pins *pins, const struct address *to, int64_t now_ms,
                  const char *ret_names[PINS_NAMES_MAX]);
void pins_clear(struct pins *pins);
