#include "confine/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitized.h"

/* As in linux/landlock.h, of which Debian 12 has the second version. */
#define CREATE_RULESET 444 /* the same number everywhere */
#define ADD_RULE 445
#define RESTRICT_SELF 446
#define ASK_VERSION 1u
#define RULE_BENEATH 1
#define EXECUTE (1ull << 0)
#define WRITE_FILE (1ull << 1)
#define READ_FILE (1ull << 2)
#define READ_DIR (1ull << 3)
#define CHANGE_DIR (0x1ffull << 4) /* remove and make of every kind: bits 4 to 12 */
#define REFER (1ull << 13)         /* version 2 */
#define TRUNCATE (1ull << 14)      /* version 3 */
#define SCOPE_ALL 3ull             /* version 6: abstract sockets, signals */

struct ruleset {
    uint64_t fs, net, scoped;
};
struct beneath {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

static uint64_t known(long version)
{
    uint64_t all = EXECUTE | WRITE_FILE | READ_FILE | READ_DIR | CHANGE_DIR;
    return all | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0);
}

static int add(int ruleset, const struct paths_rule *rule, uint64_t handled, struct err *err)
{
    uint64_t rights = rule->write ? handled : handled & (EXECUTE | READ_FILE | READ_DIR);
    _cleanup_fd_ int fd = open(rule->path, O_PATH | O_CLOEXEC);
    struct stat st;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return 0; /* a missing path stays out of reach */
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, errno, "cannot open '%s'", rule->path);
    if (!S_ISDIR(st.st_mode))
        rights &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;
    struct beneath b = { rights, fd };
    if (syscall(ADD_RULE, ruleset, RULE_BENEATH, &b, 0) < 0)
        return err_set(err, errno, "cannot allow path '%s'", rule->path);
    return 0;
}

int paths_confine(const struct paths_rule *rules, size_t n, bool alone, struct err *err)
{
#if SANITIZED /* a sanitizer writes its reports anywhere */
    return 0;
#endif
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    if (version < 2)
        return 1; /* version 1 lets nobody rename between directories */
    struct ruleset all = { .fs = known(version), .scoped = alone ? SCOPE_ALL : 0 };
    size_t size = version >= 6 ? sizeof(all) : sizeof(all.fs);
    _cleanup_fd_ int fd = (int)syscall(CREATE_RULESET, &all, size, 0);
    if (fd < 0)
        return err_set(err, errno, "cannot create a Landlock ruleset");
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = rules[i].path ? add(fd, &rules[i], all.fs, err) : 0;
    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(RESTRICT_SELF, fd, 0) < 0)
        return err_set(err, errno, "cannot enforce the Landlock ruleset");
    return 0;
}
