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

#include "base/fd.h"
#include "unpack/confine.h"
#include "unpack/diff.h"
#include "unpack/layer.h"
#include "unpack/split.h"
#include "wire/unpack.h"

static int open_root(struct err *err)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_set(err, errno, "cannot open the tree") : fd;
}

static int run_apply(struct unpack_report *rep, struct err *err)
{
    int r = confine(CONFINE_FILL, UNPACK_SECOND_FD, err);
    (void)close(UNPACK_SECOND_FD);
    _cleanup_fd_ int root = r < 0 ? -1 : open_root(err);
    if (r < 0 || root < 0)
        return r < 0 ? r : root;
    return layer_apply(UNPACK_FIRST_FD, root, rep, err);
}

static int run_diff(struct unpack_report *rep, struct err *err)
{
    int r = confine(CONFINE_READ, UNPACK_FIRST_FD, err);
    (void)close(UNPACK_FIRST_FD);
    _cleanup_fd_ int root = r < 0 ? -1 : open_root(err);
    if (r < 0 || root < 0)
        return r < 0 ? r : root;
    return diff_write(root, UNPACK_SECOND_FD, err);
}

static int run_split(struct unpack_report *rep, struct err *err)
{
    int r = confine(CONFINE_NOTHING, -1, err);
    return r < 0 ? r : split_write(UNPACK_FIRST_FD, UNPACK_SECOND_FD, err);
}

static const struct {
    const char *word;
    int (*run)(struct unpack_report *rep, struct err *err);
} jobs[] = {
    { UNPACK_APPLY, run_apply },
    { UNPACK_DIFF, run_diff },
    { UNPACK_SPLIT, run_split },
};

int main(int argc, char **argv)
{
    struct unpack_report rep = { 0 };
    struct err err = ERR_INIT;
    int r = -EINVAL;
    (void)umask(0);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL); /* it is out of reach */
    (void)setlocale(LC_CTYPE, "C.UTF-8");                         /* names in a tar are UTF-8 */
    if (argc != 2 || fcntl(UNPACK_SECOND_FD, F_GETFD) < 0) {
        (void)fprintf(stderr, "warren-unpack is started by warren-keeper\n");
        return 2;
    }
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
        if (strcmp(argv[1], jobs[i].word) == 0)
            r = jobs[i].run(&rep, &err);
    rep.code = r < 0 ? -r : 0;
    if (r < 0) {
        (void)snprintf(rep.what, sizeof(rep.what), "%s", err.what ? err.what : "");
        (void)snprintf(rep.msg, sizeof(rep.msg), "%s", err.msg);
    }
    (void)fd_write_full(UNPACK_REPORT_FD, &rep, sizeof(rep));
    _exit(r < 0 ? 1 : 0); /* a leak checker would look for files that are out of reach */
}
