/* btf - the running kernel's own description of its types: where a member lies, which number a
 * function has.
 *
 * A BPF program that reads the kernel's structures is written for this kernel when it is loaded:
 * offsets differ between kernels. Reads /sys/kernel/btf/vmlinux whole, some milliseconds; every
 * length in it is checked. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct btf;

/* -ENOENT: this kernel was built without BTF. */
int btf_open(const char *path, struct btf **ret_btf, struct err *err);
void btf_free(struct btf *b);
DEFINE_FREEP(struct btf *, btf_free)
#define BTF_OF_KERNEL "/sys/kernel/btf/vmlinux"

int btf_function(const struct btf *b, const char *name); /* its number; -ENOENT */
/* In bytes from the start of the structure; -ENOENT. */
int btf_offset(const struct btf *b, const char *structure, const char *member);
