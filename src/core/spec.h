/* spec - what a client asked a sandbox to be: defaults, bounds, and its form at rest.
 *
 * The bounds are those of docs/api.md. The form at rest is JSON without the name, which has a
 * column of its own. Pure functions over memory. */
#pragma once
#include <jansson.h>

#include "core/sandbox.h"
#include "wire/keeper.h"

#define SPEC_IMAGE "base"
#define SPEC_USER "root"

int spec_copy(const struct sandbox_spec *from, struct sandbox_spec *ret_to); /* -ENOMEM */
/* The same with the texts that were not given set to their defaults. */
int spec_complete(const struct sandbox_spec *from, struct sandbox_spec *ret_to);
/* Sets what `asked` left open to what the image's configuration says; -ENOMEM. */
struct image_config;
int spec_take_image(const struct sandbox_spec *asked, const struct image_config *config,
                    struct sandbox_spec *spec);
/* -EINVAL, invalid_field: names the member and what it may be. */
int spec_check(const struct sandbox_spec *spec, struct err *err);
struct keeper_limits spec_limits(const struct sandbox_spec *spec);
/* How many processors its limit keeps busy; 0: as many as the host has. */
unsigned spec_cpus_shown(const struct sandbox_spec *spec);

/* mounts.c: parts of the above. Each -ENOMEM; what cannot be read is -EPROTO. */
int mounts_copy(const struct sandbox_spec *from, struct sandbox_spec *to);
json_t *mounts_to_json(const struct sandbox_spec *spec);
int mounts_from_json(const json_t *list, struct sandbox_spec *spec);

/* spec_json.c. NULL: no memory. A record of one that is gone holds no environment (it may be secret) and no
 * large metadata. */
char *spec_to_json(const struct sandbox_spec *spec, bool as_record);
int spec_from_json(const char *text, struct sandbox_spec *ret_spec, struct err *err);
