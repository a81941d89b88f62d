#include "broker/confine.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sanitized.h"

#define EMPTY_NAME "empty"
#define EMPTY_MODE 0555
#define FILES_WANTED 131072 /* two a proxied connection, of every kind at once */

int confine_enter(const char *run_dir, uid_t uid, gid_t gid, struct err *err)
{
    struct rlimit files = { FILES_WANTED, FILES_WANTED }, none = { 0, 0 }, now;
    bool known = getrlimit(RLIMIT_NOFILE, &now) == 0;
    if (known && now.rlim_max > files.rlim_max)
        files.rlim_max = now.rlim_max;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 && known) { /* root in a container, perhaps */
        now.rlim_cur = now.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &now);
    }
    (void)setrlimit(RLIMIT_CORE, &none);

#if !SANITIZED_ADDRESS /* whose reports are files */
    if (chdir(run_dir) < 0 || (mkdir(EMPTY_NAME, EMPTY_MODE) < 0 && errno != EEXIST) ||
        chroot(EMPTY_NAME) < 0 || chdir("/") < 0)
        return err_set(err, errno, "cannot make '%s/" EMPTY_NAME "' the broker's root", run_dir);
#endif
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return err_set(err, errno, "cannot become user %u", (unsigned)uid);
    uid_t ru, eu, su;
    gid_t rg, eg, sg;
    if (getresuid(&ru, &eu, &su) < 0 || getresgid(&rg, &eg, &sg) < 0 || ru != uid || eu != uid ||
        su != uid || rg != gid || eg != gid || sg != gid || getgroups(0, NULL) != 0 ||
        setresuid(0, 0, 0) == 0)
        return err_set(err, EPERM, "root was not given up");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(err, errno, "cannot set no_new_privs");
#if !SANITIZED_ADDRESS
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the leak checker attaches to its own process */
#endif
    return 0;
}
