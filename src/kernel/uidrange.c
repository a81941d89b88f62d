#include "kernel/uidrange.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"

/* Above what systemd-nspawn and the subuid files hand out, below the sign bit's trouble. */
#define FIRST_ID 0x70000000u
#define BLOCKS 128
#define BLOCK_RANGES 256
#define OWNER_SIZE 4096

struct uidrange_pool {
    int dirfd;
    char run_dir[OWNER_SIZE];
    bool mine[BLOCKS];
    uint8_t used[BLOCKS * BLOCK_RANGES]; /* only ranges of my blocks are ever set */
};

static void block_name(unsigned block, char out[16])
{
    (void)snprintf(out, 16, "%u", block);
}

/* A block whose daemon's run directory has no cell in it is nobody's. */
static bool owner_is_gone(const char *run_dir)
{
    char cells[OWNER_SIZE + 8];
    if (snprintf(cells, sizeof(cells), "%s/cells", run_dir) >= (int)sizeof(cells))
        return false;
    struct stat st;
    return stat(cells, &st) < 0 && errno == ENOENT;
}

static int write_owner(struct uidrange_pool *p, const char *name)
{
    char temp[32];
    (void)snprintf(temp, sizeof(temp), ".%s.%d", name, (int)getpid());
    _cleanup_fd_ int fd = openat(p->dirfd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fd_write_full(fd, p->run_dir, strlen(p->run_dir));
    if (r == 0 && renameat(p->dirfd, temp, p->dirfd, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(p->dirfd, temp, 0);
    return r;
}

/* Called with the registry locked. */
static int claim_block(struct uidrange_pool *p, struct err *err)
{
    for (unsigned b = 0; b < BLOCKS; b++) {
        char name[16], owner[OWNER_SIZE];
        if (p->mine[b])
            continue;
        block_name(b, name);
        ssize_t n = fd_read_file_at(p->dirfd, name, owner, sizeof(owner));
        if (n == -ENOENT || n == 0 || (n > 0 && owner_is_gone(owner))) {
            int r = write_owner(p, name);
            if (r < 0)
                return err_set(err, -r, "cannot claim a block of user ids");
            p->mine[b] = true;
            return 0;
        }
    }
    return err_fail_as(err, EUSERS, FAIL_CAPACITY,
                       "every range of user ids on this machine is taken");
}

static int locked_claim(struct uidrange_pool *p, struct err *err)
{
    if (flock(p->dirfd, LOCK_EX) < 0)
        return err_set(err, errno, "cannot lock the user id registry");
    int r = claim_block(p, err);
    (void)flock(p->dirfd, LOCK_UN);
    return r;
}

int uidrange_open(const char *registry, const char *run_dir, struct uidrange_pool **ret_pool,
                  struct err *err)
{
    _cleanup_(uidrange_freep) struct uidrange_pool *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(err, ENOMEM, "cannot allocate the user id pool");
    p->dirfd = -1;
    if (snprintf(p->run_dir, sizeof(p->run_dir), "%s", run_dir) >= (int)sizeof(p->run_dir))
        return err_set(err, ENAMETOOLONG, "run directory name is too long");
    if (mkdir(registry, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s'", registry);
    p->dirfd = open(registry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->dirfd < 0)
        return err_set(err, errno, "cannot open '%s'", registry);
    for (unsigned b = 0; b < BLOCKS; b++) {
        char name[16], owner[OWNER_SIZE];
        block_name(b, name);
        if (fd_read_file_at(p->dirfd, name, owner, sizeof(owner)) > 0)
            p->mine[b] = strcmp(owner, p->run_dir) == 0;
    }
    *ret_pool = take_ptr(p);
    return 0;
}

void uidrange_free(struct uidrange_pool *p)
{
    if (!p)
        return;
    if (p->dirfd >= 0)
        (void)close(p->dirfd);
    free(p);
}

/* The free range with `skip` free ones before it; -ENOENT, and *ret_n is how many there are. Looks into
 * our own blocks alone, mostly one: this is part of every create. */
static int find_free(const struct uidrange_pool *p, uint32_t skip, uint32_t *ret_n)
{
    uint32_t n = 0;
    for (unsigned b = 0; b < BLOCKS; b++)
        for (unsigned at = b * BLOCK_RANGES; p->mine[b] && at < (b + 1) * BLOCK_RANGES; at++)
            if (!p->used[at] && n++ == skip)
                return (int)at;
    *ret_n = n;
    return -ENOENT;
}

/* Any of them. A cell can read its host ids (/proc/self/uid_map, the mount table): given out one after the other they
 * would count the sandboxes of the whole machine. */
static int take_free(struct uidrange_pool *p, uint32_t *ret_base)
{
    uint32_t n = 0, pick = 0;
    (void)find_free(p, UINT32_MAX, &n);
    if (n == 0)
        return -ENOENT;
    int r = random_bytes(&pick, sizeof(pick));
    if (r < 0)
        return r;
    int at = find_free(p, pick % n, &n);
    if (at < 0)
        return at;
    p->used[at] = 1;
    *ret_base = FIRST_ID + (uint32_t)at * UIDRANGE_SIZE;
    return 0;
}

int uidrange_take(struct uidrange_pool *p, uint32_t *ret_base, struct err *err)
{
    int r = take_free(p, ret_base);
    if (r == -ENOENT) {
        r = locked_claim(p, err);
        if (r < 0)
            return r;
        r = take_free(p, ret_base);
    }
    return r < 0 ? err_set(err, -r, "cannot choose ids for a sandbox") : 0;
}

static int slot_of(uint32_t base)
{
    uint32_t at = (base - FIRST_ID) / UIDRANGE_SIZE;
    if (base < FIRST_ID || at >= BLOCKS * BLOCK_RANGES || (base - FIRST_ID) % UIDRANGE_SIZE)
        return -EINVAL;
    return (int)at;
}

int uidrange_adopt(struct uidrange_pool *p, uint32_t base)
{
    int at = slot_of(base);
    if (at < 0 || !p->mine[at / BLOCK_RANGES])
        return -EINVAL;
    p->used[at] = 1;
    return 0;
}

void uidrange_give_back(struct uidrange_pool *p, uint32_t base)
{
    int at = slot_of(base);
    if (at >= 0)
        p->used[at] = 0;
}

void uidrange_release_all(struct uidrange_pool *p)
{
    for (unsigned b = 0; b < BLOCKS; b++) {
        char name[16];
        if (!p->mine[b])
            continue;
        block_name(b, name);
        (void)unlinkat(p->dirfd, name, 0);
        p->mine[b] = false;
    }
}
