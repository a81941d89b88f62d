/* warren-unpack - reads what nobody vouches for: layers, image archives, a sandbox's files.
 *
 * Started by the keeper for one job, as wire/unpack.h says; confines itself before the first byte
 * is read. A program of its own so that the privileged keeper holds no parser. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/oom.h"
#include "unpack/changes.h"
#include "unpack/confine.h"
#include "unpack/diff.h"
#include "unpack/layer.h"
#include "unpack/split.h"
#include "wire/unpack.h"

static struct unpack_bounds bounds;

static int open_root(struct err *err)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_set(err, errno, "cannot open the tree") : fd;
}

static int fill(enum confine_to to, struct unpack_report *rep, struct err *err)
{
    int r = confine(to, UNPACK_SECOND_FD, err);
    (void)close(UNPACK_SECOND_FD);
    _cleanup_fd_ int root = r < 0 ? -1 : open_root(err);
    if (r < 0 || root < 0)
        return r < 0 ? r : root;
    return to == CONFINE_LAY ? layer_apply_whole(UNPACK_FIRST_FD, root, rep, err)
                             : layer_apply(UNPACK_FIRST_FD, root, &bounds, rep, err);
}

static int run_apply(struct unpack_report *rep, struct err *err)
{
    return fill(CONFINE_FILL, rep, err);
}

static int run_lay(struct unpack_report *rep, struct err *err)
{
    return fill(CONFINE_LAY, rep, err);
}

static int write_down(enum diff_form form, struct err *err)
{
    int r = confine(CONFINE_READ, UNPACK_FIRST_FD, err);
    (void)close(UNPACK_FIRST_FD);
    _cleanup_fd_ int root = r < 0 ? -1 : open_root(err);
    if (r < 0 || root < 0)
        return r < 0 ? r : root;
    return diff_write(root, UNPACK_SECOND_FD, form, err);
}

static int run_diff(struct unpack_report *rep, struct err *err)
{
    return write_down(DIFF_LAYER, err);
}

static int run_read(struct unpack_report *rep, struct err *err)
{
    return write_down(DIFF_WHOLE, err);
}

static int run_changes(struct unpack_report *rep, struct err *err)
{
    static const struct wanted all;
    int r = confine(CONFINE_READ, UNPACK_SECOND_FD, err);
    if (r < 0)
        return r;
    return changes_write(-1, UNPACK_SECOND_FD, UNPACK_THIRD_FD, &all,
                         clock_mono_ms() + CHANGES_WALK_MS, UNPACK_FIRST_FD, err);
}

static int run_compare(struct unpack_report *rep, struct err *err)
{
    int r = confine(CONFINE_READ, UNPACK_SECOND_FD, err);
    struct wanted ask = { 0 };
    if (r == 0)
        r = wanted_read(UNPACK_FIFTH_FD, &ask, err);
    if (r == 0)
        r = changes_write(UNPACK_FOURTH_FD, UNPACK_SECOND_FD, UNPACK_THIRD_FD, &ask,
                          clock_mono_ms() + CHANGES_WALK_MS, UNPACK_FIRST_FD, err);
    wanted_done(&ask);
    return r;
}

static int run_split(struct unpack_report *rep, struct err *err)
{
    int r = confine(CONFINE_NOTHING, -1, err);
    return r < 0 ? r : split_write(UNPACK_FIRST_FD, UNPACK_SECOND_FD, bounds.ratio, err);
}

static const struct {
    const char *word;
    int (*run)(struct unpack_report *rep, struct err *err);
} jobs[] = {
    { UNPACK_APPLY, run_apply },     { UNPACK_DIFF, run_diff },   { UNPACK_READ, run_read },
    { UNPACK_LAY, run_lay },         { UNPACK_SPLIT, run_split }, { UNPACK_CHANGES, run_changes },
    { UNPACK_COMPARE, run_compare },
};

int main(int argc, char **argv)
{
    struct unpack_report rep = { 0 };
    struct err err = ERR_INIT;
    int r = -EINVAL;
    (void)umask(0);
    (void)oom_set(0, OOM_JOB);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL); /* it is out of reach */
    (void)setlocale(LC_CTYPE, "C.UTF-8");                         /* names in a tar are UTF-8 */
    if (argc != 4 || fcntl(UNPACK_SECOND_FD, F_GETFD) < 0) {
        (void)fprintf(stderr, "warren-unpack is started by warren-keeper\n");
        return 2;
    }
    bounds.bytes = strtoull(argv[2], NULL, 10);
    bounds.ratio = strtoull(argv[3], NULL, 10);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
        if (strcmp(argv[1], jobs[i].word) == 0)
            r = jobs[i].run(&rep, &err);
    rep.code = r < 0 ? -r : 0;
    if (r < 0) {
        rep.failure = err.failure;
        (void)snprintf(rep.msg, sizeof(rep.msg), "%s", err.msg);
    }
    (void)fd_write_full(UNPACK_REPORT_FD, &rep, sizeof(rep));
    _exit(r < 0 ? 1 : 0); /* a leak checker would look for files that are out of reach */
}
