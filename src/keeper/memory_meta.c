#include "keeper/memory_meta.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "cell/ns_show.h"
#include "cell/ns_size.h"

#define ITEMS_MAX 65536 /* of each sort */

static const char *const kind_names[META_KINDS] = { "dev",  "empty", "nothing", "shown", "boot",
                                                    "stat", "size",  "shm",     "volume" };

void meta_done(struct meta *m)
{
    for (size_t i = 0; i < m->nmounts; i++)
        free(m->mounts[i].path);
    free(m->mounts);
    free(m->members);
    *m = (struct meta)META_INIT;
}

/* ---- filling it ---- */

static int add_mount(struct meta *m, const struct meta_mount *one, const char *path)
{
    if (m->nmounts == ITEMS_MAX)
        return -E2BIG;
    struct meta_mount *p = realloc(m->mounts, (m->nmounts + 1) * sizeof(*p));
    if (!p)
        return -ENOMEM;
    m->mounts = p;
    p[m->nmounts] = *one;
    p[m->nmounts].path = strdup(path);
    if (!p[m->nmounts].path)
        return -ENOMEM;
    m->nmounts++;
    return 0;
}

bool meta_has(const struct meta *m, enum meta_mount_kind kind)
{
    for (size_t i = 0; i < m->nmounts; i++)
        if (m->mounts[i].kind == kind)
            return true;
    return false;
}

int meta_add_shm(struct meta *m)
{
    const struct meta_mount one = { .kind = META_SHM };
    return add_mount(m, &one, "/dev/shm");
}

int meta_add_member(struct meta *m, unsigned family, pid_t pid)
{
    if (m->nmembers == ITEMS_MAX)
        return -E2BIG;
    struct meta_member *p = realloc(m->members, (m->nmembers + 1) * sizeof(*p));
    if (!p)
        return -ENOMEM;
    m->members = p;
    p[m->nmembers++] = (struct meta_member){ family, pid };
    return 0;
}

/* mountinfo writes blanks and the like as \040. */
static void unescape(char *s)
{
    char *to = s;
    for (; *s; s++, to++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
            s[3] >= '0' && s[3] <= '7') {
            *to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        } else {
            *to = *s;
        }
    }
    *to = '\0';
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* 1: it is the host's, and *ret says what; 0: it is the cell's own. */
static int classify(const char *type, const char *root, const char *path, const char *options,
                    struct meta_mount *ret, struct err *err)
{
    if (strcmp(type, "tmpfs") == 0 && strcmp(path, "/dev/shm") != 0) {
        /* By its last name: older keepers had some stand-ins in another directory. */
        const char *shown = ns_show_name(path);
        ret->kind = strcmp(root, "/" NS_SHOW_EMPTY) == 0                      ? META_EMPTY
                    : strcmp(root, "/" NS_SHOW_NOTHING) == 0                  ? META_NOTHING
                    : shown && strcmp(last_name(root), last_name(shown)) == 0 ? META_SHOWN
                    : strcmp(path, NS_BOOT_PATH) == 0                         ? META_BOOT
                    : strcmp(path, NS_STAT_PATH) == 0                         ? META_STAT
                    : ns_size_suffix(path)                                    ? META_SIZE
                                                                              : META_DEV;
        return ret->kind != META_DEV || strcmp(path, "/dev") == 0
                   ? 1
                   : err_fail_as(err, ENOTSUP, FAIL_CANNOT_DUMP,
                                 "an unknown filesystem is mounted at '%s'", path);
    }
    const char *id = strrchr(root, '/');
    if (strcmp(type, "btrfs") == 0 && id && id_valid(id + 1)) {
        ret->kind = META_VOLUME;
        (void)snprintf(ret->volume, sizeof(ret->volume), "%s", id + 1);
        ret->read_only = strncmp(options, "ro", 2) == 0 && (options[2] == ',' || !options[2]);
        return 1;
    }
    static const char *const own[] = { "overlay", "proc", "sysfs", "devpts", "mqueue", "tmpfs" };
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(type, own[i]) == 0)
            return 0;
    return err_fail_as(err, ENOTSUP, FAIL_CANNOT_DUMP,
                       "a %s filesystem is mounted at '%s', which cannot be kept", type, path);
}

static int read_mount(struct meta *m, char *line, struct err *err)
{
    char *field[6] = { NULL }, *save = NULL;
    for (size_t i = 0; i < ARRAY_LEN(field); i++)
        field[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
    char *type = field[5] ? strstr(save, "- ") : NULL;
    if (!type)
        return err_set(err, EPROTO, "a mount that cannot be read");
    type += 2;
    type[strcspn(type, " ")] = '\0';
    unescape(field[3]);
    unescape(field[4]);
    struct meta_mount one = { 0 };
    int r = classify(type, field[3], field[4], field[5], &one, err);
    if (r > 0 && add_mount(m, &one, field[4]) < 0)
        r = err_set(err, ENOMEM, "out of memory");
    return r;
}

int meta_read_mounts(struct meta *m, char *text, struct err *err)
{
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        int r = read_mount(m, line, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- for CRIU ---- */

void meta_external_free(const struct meta *m, const char **texts)
{
    for (size_t i = 0; texts && i < m->nmounts; i++)
        free((char *)(uintptr_t)texts[i]);
    free(texts);
}

int meta_external(const struct meta *m, meta_place_fn place, const void *arg,
                  const char ***ret_texts, struct err *err)
{
    char at[META_PATH_SIZE], *text;
    const char **texts = calloc(m->nmounts + 1, sizeof(*texts));
    int r = texts ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < m->nmounts; i++) {
        r = place(arg, i, at, sizeof(at));
        if (r >= 0 && asprintf(&text, "mnt[%s]:%s", m->mounts[i].path, at) < 0)
            r = -ENOMEM;
        if (r >= 0)
            texts[i] = text;
    }
    if (r < 0) {
        meta_external_free(m, texts);
        return err_set(err, -r, "cannot say where the sandbox's mounts are");
    }
    *ret_texts = texts;
    return 0;
}

/* ---- as text ---- */

int meta_print(const struct meta *m, struct buf *b)
{
    int r = buf_printf(b, "name %s\n%s", m->name, m->steered ? "steered 1\n" : "");
    if (r >= 0 && m->id[0])
        r = buf_printf(b, "id %s\n", m->id);
    if (r >= 0 && m->boot[0])
        r = buf_printf(b, "boot %s\n", m->boot);
    if (r >= 0 && m->uptime_s > 0)
        r = buf_printf(b, "uptime %u\n", m->uptime_s);
    if (r >= 0 && m->kib > 0)
        r = buf_printf(b, "kib %u\n", m->kib);
    for (size_t i = 0; r >= 0 && i < m->nmounts; i++) {
        const struct meta_mount *one = &m->mounts[i];
        if (strchr(one->path, '\n'))
            return -EINVAL;
        r = one->kind == META_VOLUME
                ? buf_printf(b, "volume %s %s %s\n", one->volume, one->read_only ? "ro" : "rw",
                             one->path)
                : buf_printf(b, "mount %s %s\n", kind_names[one->kind], one->path);
    }
    for (size_t i = 0; r >= 0 && i < m->nmembers; i++)
        r = buf_printf(b, "member %u %d\n", m->members[i].family, (int)m->members[i].pid);
    return r < 0 ? r : 0;
}

static int parse_mount(char *words, struct meta *m)
{
    struct meta_mount one = { 0 };
    char *path = strchr(words, ' ');
    size_t k = 0;
    if (!path || path[1] != '/')
        return -EPROTO;
    *path++ = '\0';
    while (k < META_VOLUME && strcmp(words, kind_names[k]) != 0)
        k++;
    one.kind = (enum meta_mount_kind)k;
    if (k == META_VOLUME || (k == META_SHOWN && !ns_show_name(path)) ||
        (k == META_SIZE && !ns_size_suffix(path)))
        return -EPROTO;
    return add_mount(m, &one, path);
}

static int parse_volume(char *words, struct meta *m)
{
    struct meta_mount one = { .kind = META_VOLUME };
    char *mode = strchr(words, ' '), *path = mode ? strchr(mode + 1, ' ') : NULL;
    if (!path || path[1] != '/')
        return -EPROTO;
    *mode++ = '\0';
    *path++ = '\0';
    if (!id_valid(words) || (strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0))
        return -EPROTO;
    (void)snprintf(one.volume, sizeof(one.volume), "%s", words);
    one.read_only = mode[1] == 'o';
    return add_mount(m, &one, path);
}

static int parse_member(char *words, struct meta *m)
{
    uint32_t family, pid;
    char *second = strchr(words, ' ');
    if (!second)
        return -EPROTO;
    *second++ = '\0';
    if (number_u32(words, UINT32_MAX, &family) < 0 || number_u32(second, INT32_MAX, &pid) < 0)
        return -EPROTO;
    return meta_add_member(m, family, (pid_t)pid);
}

static int parse_name(char *words, struct meta *m)
{
    if (strlen(words) != PARK_NAME_SIZE - 1 || strspn(words, "0123456789abcdef") != strlen(words))
        return -EPROTO;
    memcpy(m->name, words, PARK_NAME_SIZE);
    return 0;
}

static int parse_id(char *words, struct meta *m)
{
    (void)snprintf(m->id, sizeof(m->id), "%.20s", words);
    return id_valid(words) ? 0 : -EPROTO;
}

static int parse_boot(char *words, struct meta *m)
{
    if (!ns_boot_valid(words))
        return -EPROTO;
    memcpy(m->boot, words, NS_BOOT_SIZE);
    return 0;
}

static int parse_uptime(char *words, struct meta *m)
{
    return number_u32(words, UINT32_MAX, &m->uptime_s) < 0 ? -EPROTO : 0;
}

static int parse_kib(char *words, struct meta *m)
{
    return number_u32(words, UINT32_MAX, &m->kib) < 0 ? -EPROTO : 0;
}

static int parse_steered(char *words, struct meta *m)
{
    m->steered = true;
    return strcmp(words, "1") == 0 ? 0 : -EPROTO;
}

int meta_parse(char *text, struct meta *ret_m, struct err *err)
{
    static const struct {
        const char *word;
        int (*fn)(char *words, struct meta *m);
    } rows[] = {
        { "name ", parse_name },     { "id ", parse_id },           { "boot ", parse_boot },
        { "uptime ", parse_uptime }, { "steered ", parse_steered }, { "mount ", parse_mount },
        { "volume ", parse_volume }, { "member ", parse_member },   { "kib ", parse_kib },
    };
    _cleanup_(meta_done) struct meta m = META_INIT;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        size_t i = 0;
        while (i < ARRAY_LEN(rows) && strncmp(line, rows[i].word, strlen(rows[i].word)) != 0)
            i++;
        int r = i == ARRAY_LEN(rows) ? -EPROTO : rows[i].fn(line + strlen(rows[i].word), &m);
        if (r < 0)
            return err_set(err, -r, "the memory's description cannot be read");
    }
    if (!m.name[0])
        return err_set(err, EPROTO, "the memory's description is not whole");
    *ret_m = m;
    m = (struct meta)META_INIT;
    return 0;
}
