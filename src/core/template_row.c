/* A template's form at rest. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/spec.h"
#include "core/template_private.h"

static char *ports_to_json(const struct template *t)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < t->n_ports; i++)
        (void)json_array_append_new(list, json_integer(t->ports[i]));
    char *text = list ? json_dumps(list, JSON_COMPACT) : NULL;
    json_decref(list);
    return text;
}

static void ports_from_json(const char *text, struct template *t)
{
    json_t *list = json_loads(text, 0, NULL);
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n && i < TEMPLATE_PORTS_MAX; i++)
        t->ports[t->n_ports++] = (uint32_t)json_integer_value(json_array_get(list, i));
    json_decref(list);
}

int template_save(struct core *core, const struct template *t, struct err *err)
{
    _cleanup_free_ char *spec = spec_to_json(&t->spec, false);
    _cleanup_free_ char *ports = ports_to_json(t);
    if (!spec || !ports)
        return err_set(err, ENOMEM, "cannot allocate a template");
    struct store_template row = { .owner = t->owner,
                                  .name = t->name,
                                  .id = t->id,
                                  .spec = spec,
                                  .ports = ports,
                                  .public = t->public,
                                  .warm = t->warm,
                                  .created_ms = t->created_ms,
                                  .updated_ms = t->updated_ms };
    return store_template_put(core->store, &row, err);
}

int template_from_row(const struct store_template *row, struct template *ret_t)
{
    struct template t = { .public = row->public,
                          .warm = (uint32_t)row->warm,
                          .created_ms = row->created_ms,
                          .updated_ms = row->updated_ms };
    if (!template_name_normal(row->name, t.name) || !name_valid(row->owner) || !id_valid(row->id) ||
        row->warm < 0 || row->warm > TEMPLATE_WARM_MAX ||
        spec_from_json(row->spec, &t.spec, NULL) < 0)
        return -EPROTO;
    (void)snprintf(t.owner, sizeof(t.owner), "%s", row->owner);
    memcpy(t.id, row->id, ID_SIZE);
    ports_from_json(row->ports, &t);
    *ret_t = t;
    return 0;
}
