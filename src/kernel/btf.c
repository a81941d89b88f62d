#include "kernel/btf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"

#define FILE_MAX (64ll * 1024 * 1024) /* ten times the largest kernel's */

struct btf {
    uint8_t *data; /* mapped, not allocated: see btf_open */
    size_t size;
    const uint8_t *types, *types_end;
    const char *names;
    size_t names_size; /* ends with a NUL */
};

struct kind {
    uint32_t id, kind, vlen;
    struct btf_type type;
    const uint8_t *body;
};

/* The bytes that follow a type: some for each of vlen, and some once. -1: an unknown kind. */
static int body_size(const struct kind *k)
{
    switch (k->kind) {
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG: return (int)sizeof(uint32_t);
    case BTF_KIND_ARRAY: return (int)sizeof(struct btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION: return (int)(k->vlen * sizeof(struct btf_member));
    case BTF_KIND_ENUM: return (int)(k->vlen * sizeof(struct btf_enum));
    case BTF_KIND_ENUM64: return (int)(k->vlen * sizeof(struct btf_enum64));
    case BTF_KIND_FUNC_PROTO: return (int)(k->vlen * sizeof(struct btf_param));
    case BTF_KIND_DATASEC: return (int)(k->vlen * sizeof(struct btf_var_secinfo));
    case BTF_KIND_FWD:
    case BTF_KIND_PTR:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_CONST:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
    case BTF_KIND_TYPE_TAG: return 0;
    default: return -1;
    }
}

/* Read the type at *at and advance; false at the end. */
static bool next(const struct btf *b, const uint8_t **at, struct kind *k)
{
    size_t left = (size_t)(b->types_end - *at);
    if (left < sizeof(k->type))
        return false;
    memcpy(&k->type, *at, sizeof(k->type));
    k->kind = BTF_INFO_KIND(k->type.info);
    k->vlen = BTF_INFO_VLEN(k->type.info);
    k->body = *at + sizeof(k->type);
    k->id++;
    int size = body_size(k);
    if (size < 0 || (size_t)size > left - sizeof(k->type))
        return false;
    *at = k->body + size;
    return true;
}

static bool is_named(const struct btf *b, uint32_t offset, const char *name)
{
    return offset < b->names_size && strcmp(b->names + offset, name) == 0;
}

static bool find(const struct btf *b, uint32_t kind, const char *name, struct kind *ret)
{
    const uint8_t *at = b->types;
    struct kind k = { 0 };
    while (next(b, &at, &k))
        if (k.kind == kind && is_named(b, k.type.name_off, name)) {
            *ret = k;
            return true;
        }
    return false;
}

int btf_function(const struct btf *b, const char *name)
{
    struct kind k;
    return find(b, BTF_KIND_FUNC, name, &k) ? (int)k.id : -ENOENT;
}

int btf_offset(const struct btf *b, const char *structure, const char *member)
{
    struct kind k;
    if (!find(b, BTF_KIND_STRUCT, structure, &k))
        return -ENOENT;
    for (uint32_t i = 0; i < k.vlen; i++) {
        struct btf_member m;
        memcpy(&m, k.body + i * sizeof(m), sizeof(m));
        if (!is_named(b, m.name_off, member))
            continue;
        /* In a structure with bit fields the upper byte holds their size. */
        uint32_t bits = BTF_INFO_KFLAG(k.type.info) ? BTF_MEMBER_BIT_OFFSET(m.offset) : m.offset;
        return bits % 8 ? -ENOENT : (int)(bits / 8);
    }
    return -ENOENT;
}

static int take_apart(struct btf *b, size_t size)
{
    struct btf_header h;
    if (size < sizeof(h))
        return -EINVAL;
    memcpy(&h, b->data, sizeof(h));
    if (h.magic != BTF_MAGIC || h.hdr_len > size || h.hdr_len < sizeof(h))
        return -EINVAL;
    size_t room = size - h.hdr_len;
    if (h.type_off > room || h.type_len > room - h.type_off || h.str_off > room ||
        h.str_len > room - h.str_off || h.str_len == 0)
        return -EINVAL;
    b->types = b->data + h.hdr_len + h.type_off;
    b->types_end = b->types + h.type_len;
    b->names = (const char *)b->data + h.hdr_len + h.str_off;
    b->names_size = h.str_len;
    return b->names[b->names_size - 1] == '\0' ? 0 : -EINVAL;
}

int btf_open(const char *path, struct btf **ret_btf, struct err *err)
{
    struct stat sb;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &sb) < 0)
        return err_set(err, errno, "cannot open '%s'", path);
    if (sb.st_size <= 0 || sb.st_size > FILE_MAX)
        return err_set(err, EMSGSIZE, "'%s' has an odd size", path);
    _cleanup_(btf_freep) struct btf *b = calloc(1, sizeof(*b));
    if (!b)
        return err_set(err, ENOMEM, "out of memory");
    /* Unmapping gives the memory back for certain. The heap may keep these megabytes, and every
     * process that the keeper clones would copy their page tables. */
    void *data =
        mmap(NULL, (size_t)sb.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return err_set(err, errno, "out of memory");
    b->data = data;
    b->size = (size_t)sb.st_size;
    int r = fd_read_full(fd, b->data, b->size);
    if (r == 0)
        r = take_apart(b, b->size);
    if (r < 0)
        return err_set(err, -r, "cannot read '%s'", path);
    *ret_btf = take_ptr(b);
    return 0;
}

void btf_free(struct btf *b)
{
    if (!b)
        return;
    if (b->data)
        (void)munmap(b->data, b->size);
    free(b);
}
