#include "front/e2b/entry.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "front/e2b/files.h"

#define NS_PER_S 1000000000
#define TARGET_MAX (16 * 1024) /* two paths as long as they may be */
#define DIRECTORY_SIZE 4096    /* an empty one has none here; clients know it as a block */

struct file_ask entry_ask(const struct envd *envd, enum wire_file_op op, const char *const *path)
{
    return (struct file_ask){ .op = op,
                              .user = *envd->user ? envd->user : NULL,
                              .paths = path,
                              .n_paths = 1,
                              .flags = WIRE_F_FOR_USER };
}

int entry_find_dir(const struct envd *envd, const char *path, char **ret_top, struct err *err)
{
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    struct file_ask ask = entry_ask(envd, WIRE_FILE_STAT, &path);
    int r = file_do(envd->core, &envd->s, &ask, &e, NULL, err);
    if (r < 0)
        return r;
    if (e.type != WIRE_DIRECTORY)
        return err_fail(err, FAIL_NOT_A_DIRECTORY, "path '%.200s' is not a directory", path);
    *ret_top = take_ptr(e.path);
    return 0;
}

const char *entry_name_below(const char *top, const char *path)
{
    size_t n = strlen(top);
    if (strncmp(path, top, n) != 0)
        return path;
    path += n;
    return path + strspn(path, "/");
}

static void put_permissions(const struct file_entry *e, char out[12])
{
    static const char letters[] = "rwxrwxrwx";
    out[0] = e->type == WIRE_DIRECTORY ? 'd' : e->type == WIRE_SYMLINK ? 'L' : '-';
    for (unsigned i = 0; i < 9; i++)
        out[i + 1] = (e->mode >> (8 - i) & 1) ? letters[i] : '-';
    out[10] = '\0';
}

static Filesystem__FileType type_of(enum wire_file_type type)
{
    return type == WIRE_REGULAR     ? FILESYSTEM__FILE_TYPE__FILE_TYPE_FILE
           : type == WIRE_DIRECTORY ? FILESYSTEM__FILE_TYPE__FILE_TYPE_DIRECTORY
                                    : FILESYSTEM__FILE_TYPE__FILE_TYPE_UNSPECIFIED;
}

/* Where a link says that it leads, from where it lies. */
static char *link_target(const struct file_entry *e)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(TARGET_MAX), dir = BUF_INIT(TARGET_MAX);
    if (buf_append(&dir, e->path, (size_t)(path_base(e->path) - e->path)) < 0 ||
        path_resolve(dir.len ? dir.data : "/", e->link, &out) < 0)
        return strdup(e->link);
    return buf_steal(&out);
}

static int put_link(const struct envd *envd, const struct file_entry *e, struct entry *out)
{
    _cleanup_(file_entry_done) struct file_entry target = { 0 };
    const char *path = e->path;
    struct file_ask ask = entry_ask(envd, WIRE_FILE_STAT, &path);
    struct err ignored = ERR_INIT;
    out->info.type = FILESYSTEM__FILE_TYPE__FILE_TYPE_UNSPECIFIED; /* unless it leads somewhere */
    if (file_do(envd->core, &envd->s, &ask, &target, NULL, &ignored) >= 0) {
        out->info.type = type_of(target.type);
        out->info.mode = target.mode;
    }
    out->strings[4] = link_target(e);
    out->info.has_symlink_target_case = FILESYSTEM__ENTRY_INFO__HAS_SYMLINK_TARGET_SYMLINK_TARGET;
    out->info.symlink_target = out->strings[4];
    return out->strings[4] ? 0 : -ENOMEM;
}

static int put_metadata(const struct file_entry *e, struct entry *out)
{
    size_t prefix = strlen(FILES_METADATA), n = 0;
    if (e->n_xattrs == 0)
        return 0;
    out->metadata = calloc(e->n_xattrs, sizeof(*out->metadata));
    out->metadata_pointers = calloc(e->n_xattrs, sizeof(*out->metadata_pointers));
    if (!out->metadata || !out->metadata_pointers)
        return -ENOMEM;
    out->info.metadata = out->metadata_pointers;
    for (size_t i = 0; i < e->n_xattrs; i++) {
        if (strncmp(e->xattrs[i].name, FILES_METADATA, prefix) != 0)
            continue;
        Filesystem__EntryInfo__MetadataEntry *m = &out->metadata[n];
        filesystem__entry_info__metadata_entry__init(m);
        out->metadata_pointers[n] = m;
        m->key = strdup(e->xattrs[i].name + prefix);
        m->value = strndup(e->xattrs[i].value, e->xattrs[i].len);
        out->info.n_metadata = ++n;
        if (!m->key || !m->value)
            return -ENOMEM;
    }
    return 0;
}

static char *name_or_number(const char *name, uint32_t number)
{
    char *out = NULL;
    if (name)
        return strdup(name);
    return asprintf(&out, "%u", number) < 0 ? NULL : out;
}

int entry_fill(const struct envd *envd, const struct file_entry *e, struct entry *ret_entry)
{
    struct entry *out = ret_entry;
    *out = (struct entry){ .info = FILESYSTEM__ENTRY_INFO__INIT,
                           .time = GOOGLE__PROTOBUF__TIMESTAMP__INIT };
    const char *slash = strrchr(e->path, '/');
    out->strings[0] = strdup(slash && slash[1] ? slash + 1 : e->path);
    out->strings[1] = strdup(e->path);
    out->strings[2] = name_or_number(e->owner, e->uid);
    out->strings[3] = name_or_number(e->group, e->gid);
    for (int i = 0; i < 4; i++)
        if (!out->strings[i])
            return -ENOMEM;
    put_permissions(e, out->permissions);
    out->time.seconds = e->mtime_ns / NS_PER_S;
    out->time.nanos = (int32_t)(e->mtime_ns % NS_PER_S);
    out->info.name = out->strings[0];
    out->info.path = out->strings[1];
    out->info.owner = out->strings[2];
    out->info.group = out->strings[3];
    out->info.type = type_of(e->type);
    out->info.size = (int64_t)e->size;
    if (e->type == WIRE_DIRECTORY && e->size == 0)
        out->info.size = DIRECTORY_SIZE;
    out->info.mode = e->mode;
    out->info.permissions = out->permissions;
    out->info.modified_time = &out->time;
    int r = e->type == WIRE_SYMLINK && e->link ? put_link(envd, e, out) : 0;
    return r < 0 ? r : put_metadata(e, out);
}

void entry_done(struct entry *entry)
{
    for (size_t i = 0; i < ARRAY_LEN(entry->strings); i++)
        free(entry->strings[i]);
    for (size_t i = 0; i < entry->info.n_metadata; i++) {
        free(entry->metadata[i].key);
        free(entry->metadata[i].value);
    }
    free(entry->metadata);
    free(entry->metadata_pointers);
    *entry = (struct entry){ 0 };
}
