/* host - what this machine offers to sandboxes, as the kernel and the keeper tell it now.
 *
 * Each call asks; nothing is kept. How full its disks are is disk.h's. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/core.h"

#define HOST_TEXT_MAX 256
#define HOST_FEATURES_MAX 16

struct host_feature {
    const char *name;
    bool here;
};

struct host {
    char kernel[65], machine[65];
    unsigned cpus;
    uint64_t memory_bytes, memory_free_bytes, pool_bytes, pool_free_bytes;
    char criu[HOST_TEXT_MAX]; /* which one, or why memory cannot be kept */
    struct host_feature features[HOST_FEATURES_MAX];
    size_t n_features;
};

int host_look(struct core *core, struct host *ret_host, struct err *err);
bool host_has_keeper(const struct core *core); /* it answers */
