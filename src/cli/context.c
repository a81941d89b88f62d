#include "cli/context.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define FILE_NAME "contexts.json"
#define FILE_BYTES_MAX (1u << 20) /* thousands of them */
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

struct contexts {
    char *dir, *file;
    int dir_fd; /* locked; -1: only read */
    json_t *root;
};

/* ---- where ---- */

static char *config_dir(void)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (xdg && *xdg == '/') /* one that is not absolute is to be ignored */
        return xasprintf("%s/warren", xdg);
    if (!home || *home != '/') {
        const struct passwd *pw = getpwuid(geteuid());
        home = pw ? pw->pw_dir : "/";
    }
    return xasprintf("%s/.config/warren", home);
}

static int make_dirs(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        int r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (r < 0)
            return r;
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int lock_dir(struct contexts *all, struct err *err)
{
    int r = make_dirs(all->dir);
    if (r < 0)
        return err_set(err, -r, "cannot make '%s': %s", all->dir, strerror(-r));
    all->dir_fd = open(all->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (all->dir_fd < 0)
        return err_set(err, errno, "cannot open '%s': %s", all->dir, strerror(errno));
    while (flock(all->dir_fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_set(err, errno, "cannot lock '%s': %s", all->dir, strerror(errno));
    return 0;
}

/* ---- reading ---- */

static int read_text(const char *file, struct buf *out)
{
    struct stat st;
    char piece[4096];
    ssize_t n;
    _cleanup_fd_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if (st.st_mode & 077)
        cli_note("others can read the keys in '%s'; `chmod 600` keeps them out", file);
    while ((n = read(fd, piece, sizeof(piece))) > 0) {
        int r = buf_append(out, piece, (size_t)n);
        if (r < 0)
            return r;
    }
    return n < 0 ? -errno : 0;
}

static bool is_sound(const json_t *root)
{
    const json_t *list = json_object_get(root, "contexts"), *one;
    const char *name;
    if (!json_is_object(list))
        return false;
    json_object_foreach((json_t *)(uintptr_t)list, name, one) {
        if (context_name_check(name, NULL) < 0 || !*member_text(one, "url") ||
            !*member_text(one, "key"))
            return false;
    }
    return true;
}

static int read_file(struct contexts *all, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_BYTES_MAX);
    int r = read_text(all->file, &text);
    if (r == -ENOENT) {
        all->root = json_pack("{s:{}}", "contexts");
        return 0;
    }
    if (r < 0)
        return err_set(err, -r, "cannot read '%s': %s", all->file, strerror(-r));
    all->root = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, NULL);
    if (text.data)
        explicit_bzero(text.data, text.len);
    if (!is_sound(all->root))
        return err_set(err, EINVAL,
                       "'%s' is not a list of contexts; move it away and `warren login` again",
                       all->file);
    return 0;
}

static int read_all(bool change, struct contexts **ret_all, struct err *err)
{
    _cleanup_(contexts_freep) struct contexts *all = xcalloc(1, sizeof(*all));
    all->dir_fd = -1;
    all->dir = config_dir();
    all->file = xasprintf("%s/" FILE_NAME, all->dir);
    int r = change ? lock_dir(all, err) : 0;
    if (r == 0)
        r = read_file(all, err);
    if (r < 0)
        return r;
    *ret_all = take_ptr(all);
    return 0;
}

int contexts_read(struct contexts **ret_all, struct err *err)
{
    return read_all(false, ret_all, err);
}

int contexts_read_to_change(struct contexts **ret_all, struct err *err)
{
    return read_all(true, ret_all, err);
}

void contexts_free(struct contexts *all)
{
    if (!all)
        return;
    if (all->dir_fd >= 0)
        (void)close(all->dir_fd);
    json_decref(all->root);
    free(all->dir);
    free(all->file);
    free(all);
}

const char *contexts_file(const struct contexts *all)
{
    return all->file;
}

/* ---- writing ---- */

static int write_new(int dir, const char *name, const char *text)
{
    _cleanup_fd_ int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fd_write_full(fd, text, strlen(text));
    if (r == 0)
        r = fd_write_full(fd, "\n", 1);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return r;
}

int contexts_write(struct contexts *all, struct err *err)
{
    static const char temp[] = FILE_NAME ".new";
    char *text = json_dumps(all->root, JSON_INDENT(2) | JSON_SORT_KEYS);
    if (!text)
        return err_set(err, ENOMEM, "cannot write '%s'", all->file);
    (void)unlinkat(all->dir_fd, temp, 0); /* a crash left it: the lock is ours */
    int r = write_new(all->dir_fd, temp, text);
    if (r == 0 && renameat(all->dir_fd, temp, all->dir_fd, FILE_NAME) < 0)
        r = -errno;
    if (r == 0)
        (void)fsync(all->dir_fd);
    else
        (void)unlinkat(all->dir_fd, temp, 0);
    explicit_bzero(text, strlen(text));
    free(text);
    return r < 0 ? err_set(err, -r, "cannot write '%s': %s", all->file, strerror(-r)) : 0;
}

/* ---- what is in it ---- */

const json_t *contexts_all(const struct contexts *all)
{
    return json_object_get(all->root, "contexts");
}

const json_t *contexts_get(const struct contexts *all, const char *name)
{
    return json_object_get(contexts_all(all), name);
}

const char *contexts_current(const struct contexts *all)
{
    const char *name = member_text(all->root, "current");
    return contexts_get(all, name) ? name : NULL;
}

int contexts_put(struct contexts *all, const char *name, json_t *context, struct err *err)
{
    return json_object_set_new(json_object_get(all->root, "contexts"), name, context) < 0
               ? err_set(err, EILSEQ, "the context '%s' is not UTF-8", name)
               : 0;
}

static int missing(const struct contexts *all, const char *name, struct err *err)
{
    return err_set(err, ENOENT, "there is no context '%s'; `warren context ls` lists them", name);
}

int contexts_use(struct contexts *all, const char *name, struct err *err)
{
    if (strcmp(name, CONTEXT_LOCAL) == 0) {
        (void)json_object_del(all->root, "current");
        return 0;
    }
    if (!contexts_get(all, name))
        return missing(all, name, err);
    (void)json_object_set_new(all->root, "current", json_string(name));
    return 0;
}

int contexts_remove(struct contexts *all, const char *name, struct err *err)
{
    const char *current = contexts_current(all);
    bool was_current = current && strcmp(current, name) == 0;
    if (json_object_del(json_object_get(all->root, "contexts"), name) < 0)
        return missing(all, name, err);
    if (was_current)
        (void)json_object_del(all->root, "current");
    return 0;
}

/* ---- names ---- */

int context_name_check(const char *name, struct err *err)
{
    size_t n = strlen(name);
    if (strcmp(name, CONTEXT_LOCAL) == 0)
        return err_set(err, EINVAL, "'" CONTEXT_LOCAL "' is this machine's own socket");
    if (n == 0 || n > CONTEXT_NAME_MAX || name[strspn(name, NAME_CHARS)] || *name == '-')
        return err_set(err, EINVAL,
                       "a context's name is up to %d letters, digits, dots, dashes and underscores",
                       CONTEXT_NAME_MAX);
    return 0;
}

char *context_name_of(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    _cleanup_free_ char *name = xstrndup(host, strcspn(host, ":/?#"));
    return context_name_check(name, NULL) < 0 ? NULL : take_ptr(name);
}
