#include "cli/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "cli/xmem.h"

#define TAR_BLOCK 512
#define NAME_FIELD 100
#define OCTAL_SIZE_MAX 077777777777ULL /* of an 11-digit field */
#define DEPTH_MAX 256

/* A directory that is being gone through. */
struct level {
    int fd;
    char **names; /* sorted */
    size_t n, next;
    size_t path_len; /* of the directory's own path, in pack->path */
};

struct pack {
    const struct ignore *ignore;
    const char *const *always;
    struct level levels[DEPTH_MAX];
    size_t depth;
    char path[PATH_MAX]; /* of the entry at hand, relative */
    struct buf head;     /* bytes made here that are not yet sent */
    size_t head_sent;
    int fd;        /* the file that is being sent */
    uint64_t left; /* of it */
    size_t padding;
    const char *extra_name;
    const void *extra;
    size_t extra_len;
    bool ended;
    uint64_t sent;
    struct err err;
};

/* ---- the tar format ---- */

static void octal(char *field, size_t size, uint64_t v)
{
    field[size - 1] = '\0';
    for (size_t i = size - 1; i-- > 0; v >>= 3)
        field[i] = (char)('0' + (v & 7));
}

struct member {
    const char *name, *link; /* link NULL: none */
    char type; /* '0' file, '5' directory, '2' symbolic link, 'x' more about the next */
    unsigned mode;
    uint64_t size;
    int64_t mtime;
};

static void put_header(struct buf *out, const struct member *m)
{
    static const char magic[] = { 'u', 's', 't', 'a', 'r', 0, '0', '0' };
    char h[TAR_BLOCK] = { 0 };
    unsigned sum = 0;
    memcpy(h, m->name, strnlen(m->name, NAME_FIELD)); /* no NUL where it fills the field */
    octal(h + 100, 8, m->mode);
    octal(h + 108, 8, 0);
    octal(h + 116, 8, 0);
    octal(h + 124, 12, m->size <= OCTAL_SIZE_MAX ? m->size : 0);
    octal(h + 136, 12, m->mtime > 0 ? (uint64_t)m->mtime & OCTAL_SIZE_MAX : 0);
    memset(h + 148, ' ', 8);
    h[156] = m->type;
    if (m->link)
        memcpy(h + 157, m->link, strnlen(m->link, NAME_FIELD));
    memcpy(h + 257, magic, sizeof(magic));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    octal(h + 148, 7, sum);
    xputn(out, h, sizeof(h));
}

static void pad(struct buf *out, uint64_t size)
{
    static const char zeros[TAR_BLOCK];
    xputn(out, zeros, (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK));
}

/* "LENGTH key=value\n", where LENGTH counts itself. */
static void put_record(struct buf *out, const char *key, const char *value)
{
    size_t body = strlen(key) + strlen(value) + 3; /* space, '=', newline */
    size_t digits = 1;
    while (snprintf(NULL, 0, "%zu", body + digits) != (int)digits)
        digits++;
    _cleanup_free_ char *text = xasprintf("%zu %s=%s\n", body + digits, key, value);
    xputs(out, text);
}

/* What the old header has no room for goes before it. */
static void put_member(struct buf *out, const struct member *m)
{
    _cleanup_(buf_done) struct buf more = BUF_INIT(64 * 1024);
    char size[24];
    (void)snprintf(size, sizeof(size), "%llu", (unsigned long long)m->size);
    if (strlen(m->name) > NAME_FIELD)
        put_record(&more, "path", m->name);
    if (m->link && strlen(m->link) > NAME_FIELD)
        put_record(&more, "linkpath", m->link);
    if (m->size > OCTAL_SIZE_MAX)
        put_record(&more, "size", size);
    if (more.len) {
        struct member x = { .name = "more", .type = 'x', .mode = 0644, .size = more.len };
        put_header(out, &x);
        xputn(out, more.data, more.len);
        pad(out, more.len);
    }
    put_header(out, m);
}

/* ---- the walk ---- */

static int failed(struct pack *p, int code, const char *what)
{
    return err_set(&p->err, code, "cannot %s '%s': %s", what, p->path[0] ? p->path : ".",
                   strerror(code));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void level_done(struct level *l)
{
    if (l->fd >= 0)
        (void)close(l->fd);
    for (size_t i = 0; i < l->n; i++)
        free(l->names[i]);
    free(l->names);
}

static int read_names(struct level *l, DIR *dir)
{
    const struct dirent *d;
    size_t cap = 0;
    for (errno = 0; (d = readdir(dir)); errno = 0) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (l->n == cap) {
            cap = cap ? cap * 2 : 16;
            l->names = xrealloc(l->names, cap, sizeof(*l->names));
        }
        l->names[l->n++] = xstrdup(d->d_name);
    }
    if (errno)
        return -errno;
    if (l->n)
        qsort(l->names, l->n, sizeof(*l->names), by_name);
    return 0;
}

/* Takes fd. */
static int descend(struct pack *p, int fd)
{
    struct level l = { .fd = fd, .path_len = strlen(p->path) };
    if (p->depth == DEPTH_MAX) {
        (void)close(fd);
        return failed(p, ELOOP, "go deeper than");
    }
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    int r = dir ? read_names(&l, dir) : -errno;
    if (dir)
        (void)closedir(dir);
    else if (again >= 0)
        (void)close(again);
    if (r < 0) {
        level_done(&l);
        return failed(p, -r, "read");
    }
    p->levels[p->depth++] = l;
    return 0;
}

static bool wanted(const struct pack *p)
{
    for (const char *const *a = p->always; a && *a; a++)
        if (strcmp(*a, p->path) == 0)
            return true;
    return !p->ignore || !ignore_match(p->ignore, p->path);
}

/* Nothing below an ignored directory can be wanted, unless `always` names it. */
static bool worth_looking(const struct pack *p, bool want)
{
    size_t n = strlen(p->path);
    for (const char *const *a = p->always; a && *a; a++)
        if (strncmp(*a, p->path, n) == 0 && (*a)[n] == '/')
            return true;
    return want || !ignore_prunes(p->ignore, p->path);
}

static int open_file(struct pack *p, int dirfd, const char *name, struct stat *st)
{
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return failed(p, errno, "open");
    if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
        (void)close(fd);
        return failed(p, EAGAIN, "read (it changed)");
    }
    p->fd = fd;
    p->left = (uint64_t)st->st_size;
    p->padding = (size_t)((TAR_BLOCK - p->left % TAR_BLOCK) % TAR_BLOCK);
    return 0;
}

static int add_link(struct pack *p, int dirfd, const char *name, const struct member *entry)
{
    struct member m = *entry;
    char target[PATH_MAX];
    ssize_t n = readlinkat(dirfd, name, target, sizeof(target) - 1);
    if (n < 0)
        return failed(p, errno, "read the link");
    target[n] = '\0';
    m.type = '2';
    m.link = target;
    put_member(&p->head, &m);
    return 0;
}

static int add_directory(struct pack *p, int dirfd, const char *name, struct member *m, bool want)
{
    if (want) {
        _cleanup_free_ char *slashed = xasprintf("%s/", p->path);
        m->type = '5';
        m->name = slashed;
        put_member(&p->head, m);
    }
    if (!worth_looking(p, want))
        return 0;
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? failed(p, errno, "open") : descend(p, fd);
}

static int add_entry(struct pack *p, int dirfd, const char *name)
{
    struct stat st;
    bool want = wanted(p);
    int r = 0;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(p, errno, "look at");
    if (!want && !S_ISDIR(st.st_mode))
        return 0;
    if (S_ISREG(st.st_mode))
        r = open_file(p, dirfd, name, &st);
    if (r < 0)
        return r;
    struct member m = { .name = p->path, .mode = st.st_mode & 07777, .mtime = st.st_mtime };
    if (S_ISLNK(st.st_mode))
        return add_link(p, dirfd, name, &m);
    if (S_ISDIR(st.st_mode))
        return add_directory(p, dirfd, name, &m, want);
    if (!S_ISREG(st.st_mode))
        return 0;
    m.type = '0';
    m.size = p->left;
    put_member(&p->head, &m);
    return 0;
}

static void add_end(struct pack *p)
{
    static const char zeros[2 * TAR_BLOCK];
    if (p->extra_name) {
        struct member m = {
            .name = p->extra_name, .type = '0', .mode = 0644, .size = p->extra_len
        };
        put_member(&p->head, &m);
        xputn(&p->head, p->extra, p->extra_len);
        pad(&p->head, p->extra_len);
    }
    xputn(&p->head, zeros, sizeof(zeros));
    p->ended = true;
}

/* The next entry, or the end, into head. */
static int advance(struct pack *p)
{
    struct level *l = p->depth ? &p->levels[p->depth - 1] : NULL;
    if (!l) {
        add_end(p);
        return 0;
    }
    if (l->next == l->n) {
        level_done(l);
        p->depth--;
        return 0;
    }
    const char *name = l->names[l->next++];
    int n = snprintf(p->path + l->path_len, sizeof(p->path) - l->path_len, "%s%s",
                     l->path_len ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof(p->path) - l->path_len)
        return failed(p, ENAMETOOLONG, "pack");
    return add_entry(p, l->fd, name);
}

/* ---- reading it ---- */

static ssize_t read_file(struct pack *p, void *out, size_t n)
{
    ssize_t r;
    if (n > p->left)
        n = (size_t)p->left;
    do {
        r = read(p->fd, out, n);
    } while (r < 0 && errno == EINTR);
    if (r <= 0)
        return failed(p, r < 0 ? errno : EAGAIN, r < 0 ? "read" : "read all of");
    p->left -= (uint64_t)r;
    return r;
}

static ssize_t read_some(struct pack *p, void *out, size_t n)
{
    for (;;) {
        if (p->head_sent < p->head.len) {
            size_t k = p->head.len - p->head_sent < n ? p->head.len - p->head_sent : n;
            memcpy(out, p->head.data + p->head_sent, k);
            p->head_sent += k;
            return (ssize_t)k;
        }
        buf_clear(&p->head);
        p->head_sent = 0;
        if (p->left)
            return read_file(p, out, n);
        if (p->fd >= 0) {
            static const char zeros[TAR_BLOCK];
            (void)close(take_fd(p->fd));
            xputn(&p->head, zeros, p->padding);
            continue;
        }
        if (p->ended)
            return 0;
        int r = advance(p);
        if (r < 0)
            return r;
    }
}

ssize_t pack_read(struct pack *pack, void *p, size_t n)
{
    ssize_t r = n ? read_some(pack, p, n) : 0;
    if (r > 0)
        pack->sent += (uint64_t)r;
    return r;
}

int pack_new(const char *dir, const struct ignore *ignore, const char *const *always,
             struct pack **ret_pack, struct err *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open the directory '%s': %s", dir, strerror(errno));
    struct pack *p = xcalloc(1, sizeof(*p));
    p->ignore = ignore;
    p->always = always;
    p->fd = -1;
    p->head = (struct buf)BUF_INIT(64u << 20); /* an extra file goes through it whole */
    int r = descend(p, fd);
    if (r < 0) {
        *err = p->err;
        pack_free(p);
        return r;
    }
    *ret_pack = p;
    return 0;
}

void pack_extra(struct pack *pack, const char *name, const void *p, size_t n)
{
    pack->extra_name = name;
    pack->extra = p;
    pack->extra_len = n;
}

const struct err *pack_error(const struct pack *pack)
{
    return &pack->err;
}

uint64_t pack_sent(const struct pack *pack)
{
    return pack->sent;
}

void pack_free(struct pack *pack)
{
    if (!pack)
        return;
    while (pack->depth)
        level_done(&pack->levels[--pack->depth]);
    if (pack->fd >= 0)
        (void)close(pack->fd);
    buf_done(&pack->head);
    free(pack);
}
