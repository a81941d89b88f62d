#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/commands.h"
#include "cli/xmem.h"

#define PEM_MAX (64 * 1024)
#define STORE_DIR "/usr/local/share/ca-certificates"
#define STORE_FILE STORE_DIR "/warren.crt"
#define NICKNAME "Warren local CA"

static int take_bytes(void *arg, const void *p, size_t n)
{
    return buf_append(arg, p, n);
}

/* The authority's certificate, as the daemon tells it. */
static int fetch(struct cli *cli, struct buf *out, struct err *err)
{
    struct client *client = cli_client(cli, err);
    if (!client)
        return -err->code;
    _cleanup_(request_done) struct request call = {
        .method = "GET", .path = "/v1/ca", .sink = take_bytes, .arg = out
    };
    int r = client_perform(client, &call, err);
    if (r >= 0 && (!out->len || !strstr(out->data, "-----BEGIN CERTIFICATE-----")))
        r = err_set(err, EPROTO, "what answers at %s is not warrend", client_where(client));
    return r;
}

static int run_show(struct cli *cli, const void *opts, int argc, char **argv)
{
    _cleanup_(buf_done) struct buf pem = BUF_INIT(PEM_MAX);
    struct err err = ERR_INIT;
    if (fetch(cli, &pem, &err) < 0)
        return cli_fail(cli, &err);
    (void)fwrite(pem.data, 1, pem.len, stdout);
    return 0;
}

const struct command cmd_ca_show = {
    .name = "ca show",
    .summary = "Print the certificate of the daemon's local authority",
    .synopsis = "",
    .description =
        "A daemon that was started with --tls-listen and no certificate of its own makes "
        "an authority for its domain, and certificates with it. This prints the "
        "authority's, in PEM, for programs and machines that are to trust it.",
    .examples = (const struct example[]){ { "For one request",
                                            "warren ca show > warren.pem\n"
                                            "curl --cacert warren.pem https://localhost:7443/v1/"
                                            "health" },
                                          { NULL, NULL } },
    .stop_after = OPTS_ALL,
    .run = run_show,
};

/* ---- trust ---- */

struct trust_opts {
    bool remove;
};

static const struct opt trust_table[] = {
    { 0, "remove", OPT_FLAG, offsetof(struct trust_opts, remove), NULL,
      "Trust it no longer: undo what this command did.", NULL },
};

/* Who sits in front of it: with sudo it is not root's browser that is meant. */
struct person {
    uid_t uid;
    gid_t gid;
    char *home;
};

static struct person find_person(void)
{
    const char *sudo = getenv("SUDO_UID"), *home = getenv("HOME");
    uid_t uid = geteuid() == 0 && sudo ? (uid_t)strtoul(sudo, NULL, 10) : geteuid();
    const struct passwd *pw = getpwuid(uid);
    bool other = uid != geteuid();
    return (struct person){ .uid = uid,
                            .gid = pw ? pw->pw_gid : getegid(),
                            .home = xstrdup(other && pw ? pw->pw_dir
                                            : home      ? home
                                            : pw        ? pw->pw_dir
                                                        : "/") };
}

/* Its exit status; 127: it is not there. Quiet unless it fails is its own affair. */
static int run_program(const char *const *argv, const struct person *as)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (as && as->uid != geteuid() && (setgid(as->gid) < 0 || setuid(as->uid) < 0))
            _exit(126);
        if (null_fd >= 0 && (dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0))
            _exit(126);
        (void)execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

static int write_store(const struct buf *pem, struct err *err)
{
    if (mkdir(STORE_DIR, 0755) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make %s: %s", STORE_DIR, strerror(errno));
    _cleanup_fd_ int fd = open(STORE_FILE ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : fd_write_full(fd, pem->data, pem->len);
    if (r >= 0 && (fchmod(fd, 0644) < 0 || rename(STORE_FILE ".new", STORE_FILE) < 0))
        r = -errno;
    return r < 0 ? err_set(err, -r, "cannot write %s: %s", STORE_FILE, strerror(-r)) : 0;
}

/* The system's store: for curl, git, python, and whatever asks it. pem: NULL to remove. */
static int change_system(const struct buf *pem, struct err *err)
{
    static const char *const argv[] = { "update-ca-certificates", NULL };
    if (geteuid() != 0) {
        (void)printf("system store: left as it is; that needs root (sudo warren ca trust)\n");
        return 0;
    }
    int r = pem                       ? write_store(pem, err)
            : unlink(STORE_FILE) == 0 ? 0
            : errno == ENOENT         ? 1
                                      : err_set(err, errno, "cannot remove %s", STORE_FILE);
    if (r != 0) {
        if (r > 0)
            (void)printf("system store: it was not there\n");
        return r;
    }
    r = run_program(argv, NULL);
    if (r == 127)
        return err_set(err, ENOENT,
                       "update-ca-certificates is not there; install the package "
                       "ca-certificates");
    if (r != 0)
        return err_set(err, EIO, "update-ca-certificates failed with %d", r);
    (void)printf("system store: %s %s\n", pem ? "trusts" : "no longer trusts", STORE_FILE);
    return 0;
}

/* The user's own database: for Chromium, and for what else is built on NSS. */
static int change_nss(const struct buf *pem, struct err *err)
{
    struct person who = find_person();
    _cleanup_free_ char *home = who.home;
    _cleanup_free_ char *dir = xasprintf("%s/.pki/nssdb", home), *db = xasprintf("sql:%s", dir);
    char file[] = "/tmp/warren-ca-XXXXXX";
    const char *const remove[] = { "certutil", "-d", db, "-D", "-n", NICKNAME, NULL };
    const char *const add[] = { "certutil", "-d",     db,   "-A", "-t", "C,,",
                                "-n",       NICKNAME, "-i", file, NULL };
    struct stat st;
    if (stat(dir, &st) < 0) {
        (void)printf("browsers' store: %s is not there\n", dir);
        return 0;
    }
    int fd = mkstemp(file);
    if (fd < 0 || (pem && fd_write_full(fd, pem->data, pem->len) < 0) || fchmod(fd, 0644) < 0) {
        if (fd >= 0)
            (void)close(fd);
        return err_set(err, errno, "cannot write %s", file);
    }
    (void)close(fd);
    int r = pem ? run_program(add, &who) : run_program(remove, &who);
    (void)unlink(file);
    if (r == 127)
        (void)printf("browsers' store: left as it is; certutil is not there (package "
                     "libnss3-tools)\n");
    else if (r != 0 && pem)
        return err_set(err, EIO, "certutil failed with %d for %s", r, dir);
    else
        (void)printf("browsers' store: %s%s\n", dir,
                     pem      ? " trusts it"
                     : r != 0 ? " did not trust it"
                              : " no longer trusts it");
    return 0;
}

static int run_trust(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct trust_opts *o = opts;
    _cleanup_(buf_done) struct buf pem = BUF_INIT(PEM_MAX);
    struct err err = ERR_INIT;
    int r = o->remove ? 0 : fetch(cli, &pem, &err);
    if (r >= 0)
        r = change_system(o->remove ? NULL : &pem, &err);
    if (r >= 0)
        r = change_nss(o->remove ? NULL : &pem, &err);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_ca_trust = {
    .name = "ca trust",
    .summary = "Have this machine trust the daemon's local authority",
    .synopsis = "[OPTIONS]",
    .description =
        "Puts the authority's certificate (`warren ca show`) into the system's store, as root, and "
        "into the user's database of certificates that browsers read, if that and certutil are "
        "there. https:// addresses of previews then work without a warning. Says what it did.\n\n"
        "The authority can vouch for names of the daemon's domain and for this machine alone.",
    .examples = (const struct example[]){ { "Trust it", "sudo warren ca trust" },
                                          { "And no longer", "sudo warren ca trust --remove" },
                                          { NULL, NULL } },
    COMMAND_OPTS(trust_table, struct trust_opts),
    .stop_after = OPTS_ALL,
    .run = run_trust,
};
