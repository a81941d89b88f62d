/* The volumes in a sandbox's spec: kept in the order of their paths, so that one below another is
 * shown after it. */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "core/spec.h"

int mounts_copy(const struct sandbox_spec *from, struct sandbox_spec *to)
{
    if (from->n_mounts == 0)
        return 0;
    to->mounts = reallocarray(NULL, from->n_mounts, sizeof(*to->mounts));
    if (!to->mounts)
        return -ENOMEM;
    memcpy(to->mounts, from->mounts, from->n_mounts * sizeof(*to->mounts));
    to->n_mounts = from->n_mounts;
    return 0;
}

static int insert(struct sandbox_spec *spec, const struct sandbox_mount *m)
{
    struct sandbox_mount *items = reallocarray(spec->mounts, spec->n_mounts + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    spec->mounts = items;
    size_t at = spec->n_mounts++;
    for (; at > 0 && strcmp(items[at - 1].path, m->path) > 0; at--)
        items[at] = items[at - 1];
    items[at] = *m;
    return 0;
}

/* What the kernel and Warren fill themselves. */
static bool is_taken(const char *path)
{
    static const char *const taken[] = { "/proc", "/sys", "/dev" };
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        size_t n = strlen(taken[i]);
        if (strncmp(path, taken[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return true;
    }
    return strcmp(path, "/") == 0;
}

int spec_add_mount(struct sandbox_spec *spec, const char *volume, const char *path, bool read_only,
                   struct err *err)
{
    struct sandbox_mount m = { .read_only = read_only };
    char clean[MOUNT_PATH_SIZE + 1];
    if (!name_valid(volume))
        return err_fail(err, FAIL_INVALID_FIELD, "'%.64s' is no volume's name or id", volume);
    if (path[0] != '/' || strlen(path) >= MOUNT_PATH_SIZE)
        return err_fail(err, FAIL_INVALID_FIELD,
                        "a volume's 'path' must begin with '/' and have at most %d bytes",
                        MOUNT_PATH_SIZE - 1);
    for (const char *p = path; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return err_fail(err, FAIL_INVALID_FIELD,
                            "a volume's 'path' must have no control characters");
    (void)snprintf(clean, sizeof(clean), "%s", path);
    path_clean(clean);
    if (is_taken(clean))
        return err_fail(err, FAIL_INVALID_FIELD, "no volume can be at '%s'", clean);
    if (spec->n_mounts == MOUNTS_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "a sandbox may have %d volumes", MOUNTS_MAX);
    for (size_t i = 0; i < spec->n_mounts; i++)
        if (strcmp(spec->mounts[i].path, clean) == 0)
            return err_fail(err, FAIL_INVALID_FIELD, "two volumes are at '%s'", clean);
    (void)snprintf(m.name, sizeof(m.name), "%s", volume);
    memcpy(m.path, clean, strnlen(clean, sizeof(m.path) - 1));
    return insert(spec, &m) < 0 ? err_set(err, ENOMEM, "cannot allocate a spec") : 0;
}

json_t *mounts_to_json(const struct sandbox_spec *spec)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < spec->n_mounts; i++) {
        const struct sandbox_mount *m = &spec->mounts[i];
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}", "volume", m->volume,
                                                    "name", m->name, "path", m->path, "read_only",
                                                    (int)m->read_only));
    }
    return list;
}

int mounts_from_json(const json_t *list, struct sandbox_spec *spec)
{
    for (size_t i = 0; i < json_array_size(list) && i < MOUNTS_MAX; i++) {
        const json_t *o = json_array_get(list, i);
        const char *volume = json_string_value(json_object_get(o, "volume"));
        const char *name = json_string_value(json_object_get(o, "name"));
        const char *path = json_string_value(json_object_get(o, "path"));
        struct sandbox_mount m = { .read_only = json_is_true(json_object_get(o, "read_only")) };
        if (!volume || !id_valid(volume) || !name || !name_valid(name) || !path ||
            strlen(path) >= sizeof(m.path))
            return -EPROTO;
        (void)snprintf(m.volume, sizeof(m.volume), "%s", volume);
        (void)snprintf(m.name, sizeof(m.name), "%s", name);
        (void)snprintf(m.path, sizeof(m.path), "%s", path);
        int r = insert(spec, &m);
        if (r < 0)
            return r;
    }
    return 0;
}
