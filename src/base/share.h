/* share - how much of what all sandboxes have in common one of them may hold.
 *
 * A part of what is left: the fuller it is, the less everybody may hold. So nobody, nor many together,
 * can take the last, and who comes late gets as much as those who took all they could. */
#pragma once
#include <stddef.h>

/* Of `room`, with `used` of it taken by all; never more than `most`. */
size_t share(size_t room, size_t used, size_t most);
