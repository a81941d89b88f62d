/* memory_images - the few of CRIU's images that say who a cell is, written anew for another.
 *
 * Its host ids, its host name; and that the program of its init is a descriptor that CRIU is given
 * (MEMORY_INIT_KEY): it knows how to bring back a memory file's pages, but not a program that is one. */
#pragma once
#include <stdint.h>

#include "base/err.h"

#define MEMORY_INIT_KEY "warren-init"
#define MEMORY_INIT_MAP "/memfd:warren-init" /* what is mapped of it; as CRIU calls a memory file */
#define MEMORY_INIT_FILE "warren-init"       /* its contents, kept beside the images */

/* From the directory `images` into `changed`, under the same names. */
int memory_images_change(int images, int changed, uint32_t uid_base, const char *hostname,
                         struct err *err);
