#include "core/host.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/keeper.h"
#include "wire/keeper.h"

static const struct {
    uint32_t flag;
    const char *name;
} offers[] = {
    { KEEPER_HAS_CGROUP2, "cgroup2" },           { KEEPER_HAS_CGROUP1, "cgroup1" },
    { KEEPER_HAS_MEMORY, "memory_limit" },       { KEEPER_HAS_CPU, "cpu_limit" },
    { KEEPER_HAS_PIDS, "pids_limit" },           { KEEPER_HAS_QUOTA, "disk_limit" },
    { KEEPER_HAS_SIMPLE_QUOTA, "simple_quota" }, { KEEPER_HAS_FREEZER, "freezer" },
    { KEEPER_HAS_KILL, "cgroup_kill" },          { KEEPER_HAS_IDMAP, "idmapped_mounts" },
    { KEEPER_HAS_POOL_IMAGE, "pool_image" },     { KEEPER_HAS_MEMORY_IMAGES, "memory_images" },
    { KEEPER_HAS_FENCE, "volume_fence" },
};
static_assert(ARRAY_LEN(offers) <= HOST_FEATURES_MAX, "host.h must have room for all of them");

int host_look(struct core *core, struct host *ret_host, struct err *err)
{
    struct keeper_request ask = { .version = KEEPER_VERSION, .op = KEEPER_PROBE };
    struct keeper_reply probe = { 0 };
    struct utsname kernel;
    struct sysinfo mem;
    int r = keeper_ask(core, &ask, &probe, err);
    if (r < 0)
        return r;
    if (uname(&kernel) < 0 || sysinfo(&mem) < 0)
        return err_set(err, errno, "cannot ask the kernel about this host");
    *ret_host = (struct host){ .cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
                               .memory_bytes = (uint64_t)mem.totalram * mem.mem_unit,
                               .memory_free_bytes = (uint64_t)mem.freeram * mem.mem_unit,
                               .pool_bytes = probe.room.pool_bytes,
                               .pool_free_bytes = probe.room.pool_free_bytes,
                               .n_features = ARRAY_LEN(offers) };
    (void)snprintf(ret_host->kernel, sizeof(ret_host->kernel), "%.64s", kernel.release);
    (void)snprintf(ret_host->machine, sizeof(ret_host->machine), "%.64s", kernel.machine);
    (void)snprintf(ret_host->criu, sizeof(ret_host->criu), "%.*s",
                   (int)strnlen(probe.memory_text, sizeof(probe.memory_text)), probe.memory_text);
    for (size_t i = 0; i < ARRAY_LEN(offers); i++)
        ret_host->features[i] =
            (struct host_feature){ offers[i].name, (probe.probe & offers[i].flag) != 0 };
    return 0;
}

bool host_has_keeper(const struct core *core)
{
    return keeper_listens(core);
}
