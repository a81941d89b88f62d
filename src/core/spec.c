#include "core/spec.h"

#include <errno.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "core/grant.h"
#include "core/network.h"
#include "core/private.h"

#define MIB (1024ull * 1024)
#define CPU_MILLIS_MIN 50u
#define CPU_TIMES 4u /* of the host's cpus: a limit above that limits nothing */
#define MEMORY_MB_MIN 16u
#define MEMORY_MB_MAX 1048576u
#define DISK_MB_MIN 16u
#define DISK_MB_MAX 16777216u
#define PIDS_MIN 4u
#define PIDS_MAX 32768u
#define NOFILE_MIN 16u
#define NOFILE_MAX 1048576u                   /* the kernel's default fs.nr_open */
#define SECONDS_MAX (100ll * 365 * 24 * 3600) /* a hundred years: far from any overflow */
#define USER_LEN_MAX 128
#define WORKDIR_LEN_MAX 4095 /* PATH_MAX less the NUL */
#define PAIRS_MAX 256
#define PAIR_NAME_MAX 256
#define PAIR_VALUE_MAX (64 * 1024)
#define PAIRS_BYTES_MAX (1024 * 1024)

void sandbox_spec_init(struct sandbox_spec *spec)
{
    *spec = (struct sandbox_spec){
        .cpu_millis = 1000,
        .memory_bytes = 512 * MIB,
        .disk_bytes = 10240 * MIB,
        .pids = 512,
        .nofile = 65536,
        .on_timeout = END_DELETE,
        .on_idle = END_STOP,
    };
}

void sandbox_spec_done(struct sandbox_spec *spec)
{
    free(spec->image);
    free(spec->name);
    free(spec->user);
    free(spec->workdir);
    free(spec->template);
    free(spec->network);
    free(spec->bindings);
    pairs_done(&spec->env);
    pairs_done(&spec->image_env);
    pairs_done(&spec->metadata);
    pairs_done(&spec->notes);
    boot_done(&spec->boot);
    free(spec->mounts);
    spec->mounts = NULL;
    spec->n_mounts = 0;
    spec->image = spec->name = spec->user = spec->workdir = spec->template = NULL;
    spec->network = spec->bindings = NULL;
}

static int copy_text(const char *from, const char *otherwise, char **ret_to)
{
    const char *text = from ? from : otherwise;
    if (!text)
        return 0;
    *ret_to = strdup(text);
    return *ret_to ? 0 : -ENOMEM;
}

static int copy(const struct sandbox_spec *from, const char *image, const char *user,
                struct sandbox_spec *ret_to)
{
    struct sandbox_spec to = *from;
    to.image = to.name = to.user = to.workdir = to.template = NULL;
    to.network = to.bindings = NULL;
    to.boot = (struct boot){ 0 };
    to.mounts = NULL;
    to.n_mounts = 0;
    to.env = to.metadata = to.notes = to.image_env = (struct pairs){ NULL, NULL, 0 };
    int r = copy_text(from->image, image, &to.image);
    if (r >= 0)
        r = copy_text(from->name, NULL, &to.name);
    if (r >= 0)
        r = copy_text(from->user, user, &to.user);
    if (r >= 0)
        r = copy_text(from->workdir, NULL, &to.workdir);
    if (r >= 0)
        r = copy_text(from->template, NULL, &to.template);
    if (r >= 0)
        r = copy_text(from->network, NULL, &to.network);
    if (r >= 0)
        r = copy_text(from->bindings, NULL, &to.bindings);
    if (r >= 0)
        r = boot_copy(&from->boot, &to.boot);
    if (r >= 0)
        r = mounts_copy(from, &to);
    if (r >= 0)
        r = pairs_copy(&from->env, &to.env);
    if (r >= 0)
        r = pairs_copy(&from->image_env, &to.image_env);
    if (r >= 0)
        r = pairs_copy(&from->metadata, &to.metadata);
    if (r >= 0)
        r = pairs_copy(&from->notes, &to.notes);
    if (r < 0) {
        sandbox_spec_done(&to);
        return r;
    }
    *ret_to = to;
    return 0;
}

int spec_copy(const struct sandbox_spec *from, struct sandbox_spec *ret_to)
{
    return copy(from, NULL, NULL, ret_to);
}

int spec_complete(const struct sandbox_spec *from, struct sandbox_spec *ret_to)
{
    return copy(from, SPEC_IMAGE, SPEC_USER, ret_to);
}

struct keeper_limits spec_limits(const struct sandbox_spec *spec)
{
    struct keeper_limits l;
    memset(&l, 0, sizeof(l)); /* limits are compared and sent as bytes */
    l.memory_bytes = spec->memory_bytes;
    l.disk_bytes = spec->disk_bytes;
    l.cpu_millis = spec->cpu_millis;
    l.pids = spec->pids;
    return l;
}

/* ---- bounds ---- */

static pthread_once_t cpus_once = PTHREAD_ONCE_INIT;
static unsigned cpus;

static void count_cpus(void)
{
    int n = get_nprocs(); /* reads a file: once is enough */
    cpus = n > 0 ? (unsigned)n : 1;
}

unsigned spec_cpus_shown(const struct sandbox_spec *spec)
{
    unsigned n = spec->cpu_millis / 1000 + (spec->cpu_millis % 1000 != 0);
    (void)pthread_once(&cpus_once, count_cpus);
    return n < cpus ? n : 0;
}

static bool env_name_valid(const char *name)
{
    for (const char *p = name; *p; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
        if (!letter && !(p > name && *p >= '0' && *p <= '9'))
            return false;
    }
    return name[0] != '\0';
}

static int check_pairs(const struct pairs *p, const char *member, bool env, struct err *err)
{
    size_t total = 0;
    if (p->n > PAIRS_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' has %zu entries; at most %d are taken",
                        member, p->n, PAIRS_MAX);
    for (size_t i = 0; i < p->n; i++) {
        size_t name = strlen(p->names[i]), value = strlen(p->values[i]);
        if (name == 0 || name > PAIR_NAME_MAX)
            return err_fail(err, FAIL_INVALID_FIELD, "a name in '%s' must have 1 to %d bytes",
                            member, PAIR_NAME_MAX);
        if (env && !env_name_valid(p->names[i]))
            return err_fail(err, FAIL_INVALID_FIELD,
                            "'%.64s' in '%s' is no variable's name: letters, digits and '_', no "
                            "digit first",
                            p->names[i], member);
        if (value > PAIR_VALUE_MAX)
            return err_fail(err, FAIL_INVALID_FIELD,
                            "the value of '%.64s' in '%s' has %zu bytes; at most %d are taken",
                            p->names[i], member, value, PAIR_VALUE_MAX);
        total += name + value;
    }
    if (total > PAIRS_BYTES_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' has %zu bytes in all; at most %d are taken",
                        member, total, PAIRS_BYTES_MAX);
    return 0;
}

static int check_range(const char *member, uint64_t v, uint64_t min, uint64_t max, uint64_t unit,
                       struct err *err)
{
    if (v >= min * unit && v <= max * unit)
        return 0;
    return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be from %llu to %llu", member,
                    (unsigned long long)min, (unsigned long long)max);
}

static int check_limits(const struct sandbox_spec *spec, struct err *err)
{
    (void)pthread_once(&cpus_once, count_cpus);
    if (spec->cpu_millis < CPU_MILLIS_MIN || spec->cpu_millis > cpus * CPU_TIMES * 1000)
        return err_fail(err, FAIL_INVALID_FIELD, "'cpus' must be from 0.05 to %u here",
                        cpus * CPU_TIMES);
    int r = check_range("memory_mb", spec->memory_bytes, MEMORY_MB_MIN, MEMORY_MB_MAX, MIB, err);
    if (r >= 0)
        r = check_range("disk_mb", spec->disk_bytes, DISK_MB_MIN, DISK_MB_MAX, MIB, err);
    if (r >= 0)
        r = check_range("pids", spec->pids, PIDS_MIN, PIDS_MAX, 1, err);
    if (r >= 0)
        r = check_range("nofile", spec->nofile, NOFILE_MIN, NOFILE_MAX, 1, err);
    return r;
}

static int check_seconds(const char *member, int64_t ms, struct err *err)
{
    if (ms >= 0 && ms <= SECONDS_MAX * 1000)
        return 0;
    return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be from 0 (none) to %lld", member,
                    SECONDS_MAX);
}

static bool has_control(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p < ' ' || *p == 0x7f)
            return true;
    return false;
}

static int check_texts(const struct sandbox_spec *spec, struct err *err)
{
    if (spec->name && !name_valid(spec->name))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'name' must be 1 to %d letters, digits, '.', '_' or '-', a letter or "
                        "digit first",
                        NAME_MAX_LEN);
    /* A name shaped like an id could stand for another sandbox. */
    if (spec->name && id_valid(spec->name))
        return err_fail(err, FAIL_INVALID_FIELD, "'name' must not have the shape of an id");
    if (spec->image && !image_name_valid(spec->image))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'image' must be 1 to %d of a-z, 0-9, '.', '_', '/', ':' and '-', a "
                        "letter or digit first",
                        IMAGE_NAME_MAX - 1);
    if (spec->user &&
        (spec->user[0] == '\0' || strlen(spec->user) > USER_LEN_MAX || has_control(spec->user)))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'user' must be a name, a uid or uid:gid, %d bytes at most", USER_LEN_MAX);
    if (spec->workdir && (spec->workdir[0] != '/' || strlen(spec->workdir) > WORKDIR_LEN_MAX))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'workdir' must be a path from '/', %d bytes at most", WORKDIR_LEN_MAX);
    return 0;
}

int spec_check(const struct sandbox_spec *spec, struct err *err)
{
    int r = check_texts(spec, err);
    if (r >= 0)
        r = check_limits(spec, err);
    if (r >= 0)
        r = check_seconds("timeout_s", spec->timeout_ms, err);
    if (r >= 0)
        r = check_seconds("idle_timeout_s", spec->idle_timeout_ms, err);
    if (r >= 0)
        r = check_seconds("freeze_after_s", spec->freeze_after_ms, err);
    if (r >= 0)
        r = autosave_check(&spec->autosave, err);
    if (r >= 0)
        r = check_pairs(&spec->env, "env", true, err);
    if (r >= 0)
        r = check_pairs(&spec->metadata, "metadata", false, err);
    if (r >= 0)
        r = network_check(spec->network, err);
    if (r >= 0)
        r = grant_check(NULL, NULL, spec->bindings, err);
    if (r >= 0)
        r = limits_check(&spec->network_limits, NULL, err);
    return r;
}

/* What the client did not say is as the image has it. Texts that could not have been given are
 * left out: an image is no reason to fail. */
int spec_take_image(const struct sandbox_spec *asked, const struct image_config *config,
                    struct sandbox_spec *spec)
{
    struct sandbox_spec fits = { .user = config->user };
    if (!asked->user && config->user && check_texts(&fits, NULL) == 0) {
        free(spec->user);
        if (!(spec->user = strdup(config->user)))
            return -ENOMEM;
    }
    fits = (struct sandbox_spec){ .workdir = config->workdir };
    if (!asked->workdir && config->workdir && check_texts(&fits, NULL) == 0) {
        free(spec->workdir);
        if (!(spec->workdir = strdup(config->workdir)))
            return -ENOMEM;
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < config->env.n && i < PAIRS_MAX; i++)
        if (env_name_valid(config->env.names[i]) && strlen(config->env.values[i]) <= PAIR_VALUE_MAX)
            r = pairs_add(&spec->image_env, config->env.names[i], config->env.values[i]);
    return r;
}
