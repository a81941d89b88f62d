/* proof - which layers an owner is known to have the bytes of.
 *
 * Layers are kept once for all owners, and a manifest names them by digest: whoever serves one could ask
 * for the layer of another owner's image by its name alone. So a layer that is here is taken for granted
 * only where the owner can see an image with it, has files on it or has fetched it before; otherwise it is fetched
 * and compared. The second is remembered in memory, a few thousand of them; forgetting costs a download. */
#pragma once
#include <stdbool.h>

#include "core/image.h"

/* The layers of all images that an owner sees, and of what its sandboxes and checkpoints lie on, at one moment. */
struct proof_set;

int proof_set_new(struct core *core, const char *owner, struct proof_set **ret_set,
                  struct err *err);
void proof_set_free(struct proof_set *set); /* NULL is fine */
bool proof_set_has(const struct proof_set *set, const char *digest_or_chain);

void proof_add(struct core *core, const char *owner, const char *digest);
bool proof_known(struct core *core, const char *owner, const char *digest);
