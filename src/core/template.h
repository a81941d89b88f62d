/* template - a named starting point for sandboxes: image, limits, start command, readiness.
 *
 * A template's fields are the defaults of a sandbox made from it. Each change is a new version
 * with a new id; `warm` sandboxes of the present one are kept booted and ready (pool.h). reach.h
 * decides whose template a name means. A name may have a tag, "name:tag", and then is a template
 * by itself; "name:default" is "name". */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"
#include "core/image.h"
#include "core/sandbox.h"

#define TEMPLATE_WARM_MAX 64
#define TEMPLATE_TAG "default"                             /* the same as no tag */
#define TEMPLATE_NAME_SIZE (2 * NAME_MAX_LEN + 2)          /* name, colon, tag and the NUL */
#define TEMPLATE_REF_SIZE (OWNER_MAX + TEMPLATE_NAME_SIZE) /* "team/" before such a name */
#define TEMPLATE_PORTS_MAX 64

struct template
{
    char name[TEMPLATE_NAME_SIZE];
    char owner[OWNER_MAX];
    char as[TEMPLATE_REF_SIZE]; /* how the asker reaches it; filled by put, get and list */
    char id[ID_SIZE];           /* of this version */
    bool public;                /* every owner may use it */
    uint32_t warm;
    uint32_t ports[TEMPLATE_PORTS_MAX];
    size_t n_ports;
    int64_t created_ms, updated_ms;
    struct sandbox_spec spec; /* its name is NULL; boot is what runs */
    unsigned ready;           /* made ahead and ready now; filled by get and list */
    bool kept;                /* its memory is, and creates are copies of it; likewise */
    bool less;                /* as another team has it, without the bindings that it has */
};
void template_done(struct template *t);

/* The name in its stored form; false: it is not valid. Knows no teams. */
bool template_name_normal(const char *name, char ret_name[TEMPLATE_NAME_SIZE]);

/* Makes it, or replaces the owner's of that name. Takes nothing. */
int template_put(struct core *core, const struct template *t, struct template *ret_t,
                 struct err *err);
/* -ENOENT, template_not_found. */
int template_get(struct core *core, const char *owner, const char *name, struct template *ret_t,
                 struct err *err);
/* Own and public templates, sorted by the name that reaches them; template_list_free. */
int template_list(struct core *core, const char *owner, struct template **ret_ts, size_t *ret_n,
                  struct err *err);
void template_list_free(struct template *ts, size_t n);
int template_remove(struct core *core, const char *owner, const char *name, struct err *err);

/* Making a sandbox from one: begin puts what it says in the place of the defaults, then the client's
 * own wishes go into spec, and settle says which ready ones would do. *ret_t: template_done. */
int template_begin(struct core *core, const char *owner, const char *name, struct template *ret_t,
                   struct sandbox_spec *spec, struct err *err);
void template_settle(const struct template *t, struct sandbox_spec *spec);
/* Would one that was booted do for this spec, which was made from it? Its limits may still be too small. */
bool template_fits(const struct template *t, const struct sandbox_spec *spec);
/* Whether a template of the image's owner uses the image; of any owner, if the image is the
 * operator's. */
bool template_uses_image(struct core *core, const struct image *image);
