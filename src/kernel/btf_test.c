#include "kernel/btf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

TEST(the_kernels_types_are_found)
{
    struct btf *btf = NULL;
    if (btf_open(BTF_OF_KERNEL, &btf, NULL) == -ENOENT)
        check_skip("this kernel was built without BTF");
    CHECK(btf);
    CHECK(btf_function(btf, "vfs_read") > 0);
    CHECK_EQ(btf_function(btf, "no_such_function"), -ENOENT);
    CHECK_EQ(btf_offset(btf, "list_head", "next"), 0);
    CHECK_EQ(btf_offset(btf, "list_head", "prev"), sizeof(void *));
    CHECK_EQ(btf_offset(btf, "list_head", "no_such_member"), -ENOENT);
    CHECK_EQ(btf_offset(btf, "no_such_structure", "next"), -ENOENT);
    btf_free(btf);
}

/* A structure "ab" with a member "b" at byte 4, and a function "f". */
struct small {
    struct btf_header h;
    struct btf_type structure;
    struct btf_member member;
    struct btf_type function;
    char names[8];
};

static struct small make_small(void)
{
    return (struct small){
        .h = { .magic = BTF_MAGIC,
               .version = BTF_VERSION,
               .hdr_len = sizeof(struct btf_header),
               .type_len = offsetof(struct small, names) - offsetof(struct small, structure),
               .str_off = offsetof(struct small, names) - offsetof(struct small, structure),
               .str_len = 6 },
        .structure = { .name_off = 1, .info = BTF_KIND_STRUCT << 24 | 1 },
        .member = { .name_off = 2, .offset = 32 },
        .function = { .name_off = 4, .info = BTF_KIND_FUNC << 24 },
        .names = "\0ab\0f",
    };
}

static int open_bytes(const void *p, size_t n, struct btf **ret_btf)
{
    char path[] = "/tmp/btf-XXXXXX";
    _cleanup_fd_ int fd = mkstemp(path);
    CHECK_OK(fd_write_full(fd, p, n));
    int r = btf_open(path, ret_btf, NULL);
    (void)unlink(path);
    return r;
}

TEST(what_is_cut_or_lies_about_its_lengths_is_refused_or_holds_nothing)
{
    struct small s = make_small();
    struct btf *btf = NULL;
    CHECK_OK(open_bytes(&s, sizeof(s), &btf));
    CHECK_EQ(btf_offset(btf, "ab", "b"), 4);
    CHECK_EQ(btf_function(btf, "f"), 2);
    btf_free(btf);
    for (size_t n = 1; n < offsetof(struct small, names) + 6; n++)
        CHECK(open_bytes(&s, n, &btf) < 0);

    uint32_t *const lengths[] = { &s.h.hdr_len, &s.h.type_off, &s.h.type_len, &s.h.str_off,
                                  &s.h.str_len };
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        s = make_small();
        *lengths[i] = UINT32_MAX;
        CHECK(open_bytes(&s, sizeof(s), &btf) < 0);
    }
    s = make_small();
    s.structure.info |= 0xffff; /* more members than there is room for */
    s.function.name_off = UINT32_MAX;
    CHECK_OK(open_bytes(&s, sizeof(s), &btf));
    CHECK_EQ(btf_offset(btf, "ab", "b"), -ENOENT);
    CHECK_EQ(btf_function(btf, "f"), -ENOENT);
    btf_free(btf);
}
