#include "base/share.h"

#define PART 4 /* a few who take all they can leave half of it */

size_t share(size_t room, size_t used, size_t most)
{
    size_t part = used < room ? (room - used) / PART : 0;
    return part < most ? part : most;
}
