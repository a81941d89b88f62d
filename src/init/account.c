#include "init/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (1024u * 1024) /* some ten thousand accounts; what lies beyond is not looked at */
#define FIELDS_MAX 7            /* a line of passwd */
#define ID_MAX_VALUE 2147483647u

struct span {
    const char *p;
    size_t n;
};

static bool span_is(struct span s, const char *text, size_t n)
{
    return s.n == n && memcmp(s.p, text, n) == 0;
}

static bool parse_id(const char *p, size_t n, uint32_t *ret_id)
{
    uint64_t v = 0;
    if (n == 0 || n > 10)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(p[i] - '0');
    }
    if (v > ID_MAX_VALUE)
        return false;
    *ret_id = (uint32_t)v;
    return true;
}

/* Cut the next line of `text` into its colon-separated fields: their number, 0 at the end. */
static size_t next_line(struct account_text *text, struct span f[FIELDS_MAX])
{
    if (text->n == 0)
        return 0;
    const char *end = memchr(text->p, '\n', text->n);
    size_t len = end ? (size_t)(end - text->p) : text->n;
    const char *p = text->p;
    size_t left = len, count = 0;
    for (;;) {
        const char *colon = count < FIELDS_MAX - 1 ? memchr(p, ':', left) : NULL;
        size_t n = colon ? (size_t)(colon - p) : left;
        f[count++] = (struct span){ p, n };
        if (!colon)
            break;
        p = colon + 1;
        left -= n + 1;
    }
    text->p += end ? len + 1 : len;
    text->n -= end ? len + 1 : len;
    return count;
}

struct passwd_line {
    struct span name, home, shell;
    uint32_t uid, gid;
};

/* By name first, as a login name may be all digits; then by number. */
static bool find_user(struct account_text passwd, const char *user, size_t n, bool by_id,
                      uint32_t id, struct passwd_line *ret)
{
    struct span f[FIELDS_MAX];
    size_t count;
    while ((count = next_line(&passwd, f)) > 0) {
        struct passwd_line l = { .name = f[0] };
        if (count < 6 || !parse_id(f[2].p, f[2].n, &l.uid) || !parse_id(f[3].p, f[3].n, &l.gid))
            continue;
        if (by_id ? l.uid != id : !span_is(f[0], user, n))
            continue;
        l.home = f[5];
        l.shell = count > 6 ? f[6] : (struct span){ "", 0 };
        *ret = l;
        return true;
    }
    return false;
}

static bool find_group(struct account_text group, const char *name, size_t n, gid_t *ret_gid)
{
    struct span f[FIELDS_MAX];
    size_t count;
    while ((count = next_line(&group, f)) > 0) {
        if (count >= 3 && span_is(f[0], name, n) && parse_id(f[2].p, f[2].n, ret_gid))
            return true;
    }
    return parse_id(name, n, ret_gid);
}

static bool is_member(struct span members, struct span name)
{
    while (members.n > 0) {
        const char *comma = memchr(members.p, ',', members.n);
        size_t n = comma ? (size_t)(comma - members.p) : members.n;
        if (span_is((struct span){ members.p, n }, name.p, name.n))
            return true;
        size_t used = comma ? n + 1 : n;
        members.p += used;
        members.n -= used;
    }
    return false;
}

static int collect_groups(struct account_text group, struct span name, struct account *a)
{
    struct span f[FIELDS_MAX];
    size_t count;
    while ((count = next_line(&group, f)) > 0 && a->ngroups < ACCOUNT_GROUPS_MAX) {
        uint32_t gid;
        if (count < 4 || !parse_id(f[2].p, f[2].n, &gid) || gid == a->gid || !is_member(f[3], name))
            continue;
        gid_t *more = realloc(a->groups, (a->ngroups + 1) * sizeof(*more));
        if (!more)
            return -ENOMEM;
        a->groups = more;
        a->groups[a->ngroups++] = gid;
    }
    return 0;
}

int account_resolve(const char *spec, struct account_text passwd, struct account_text group,
                    struct account *ret_a)
{
    _cleanup_(account_done) struct account a = { 0 };
    const char *colon = strchr(spec, ':');
    size_t user_n = colon ? (size_t)(colon - spec) : strlen(spec);
    const char *user = spec;
    if (user_n == 0) {
        user = "root";
        user_n = 4;
    }
    uint32_t id = 0;
    bool numeric = parse_id(user, user_n, &id);
    struct passwd_line l = { { user, user_n }, { "/", 1 }, { "", 0 }, id, 0 };

    bool listed = find_user(passwd, user, user_n, false, 0, &l) ||
                  (numeric && find_user(passwd, NULL, 0, true, id, &l));
    if (!listed && !numeric) {
        if (!span_is(l.name, "root", 4)) /* uid 0 exists even where no file says so */
            return -ENOENT;
    }
    a.uid = l.uid;
    a.gid = l.gid;
    if (colon && !find_group(group, colon + 1, strlen(colon + 1), &a.gid))
        return -ESRCH;
    if (!colon && listed && collect_groups(group, l.name, &a) < 0)
        return -ENOMEM;
    a.name = strndup(l.name.p, l.name.n);
    a.home = l.home.n ? strndup(l.home.p, l.home.n) : strdup("/");
    a.shell = l.shell.n ? strndup(l.shell.p, l.shell.n) : strdup("/bin/sh");
    if (!a.name || !a.home || !a.shell)
        return -ENOMEM;

    *ret_a = a;
    a = (struct account){ 0 };
    return 0;
}

void account_done(struct account *a)
{
    free(a->groups);
    free(a->name);
    free(a->home);
    free(a->shell);
    *a = (struct account){ 0 };
}

bool account_name_of(struct account_text text, uint32_t id, char *out, size_t size)
{
    struct span f[FIELDS_MAX];
    size_t count;
    while ((count = next_line(&text, f)) > 0) {
        uint32_t found;
        if (count < 3 || !parse_id(f[2].p, f[2].n, &found) || found != id)
            continue;
        if (f[0].n == 0 || f[0].n >= size || memchr(f[0].p, 0, f[0].n))
            return false;
        memcpy(out, f[0].p, f[0].n);
        out[f[0].n] = '\0';
        return true;
    }
    return false;
}

int account_owner(const char *spec, struct account_text passwd, struct account_text group,
                  uid_t *ret_uid, gid_t *ret_gid)
{
    const char *colon = strchr(spec, ':');
    size_t user_n = colon ? (size_t)(colon - spec) : strlen(spec);
    uid_t uid = (uid_t)-1;
    gid_t gid = (gid_t)-1;
    struct passwd_line l;
    if (user_n > 0) {
        bool listed = find_user(passwd, spec, user_n, false, 0, &l);
        if (!listed && parse_id(spec, user_n, &uid))
            listed = find_user(passwd, NULL, 0, true, uid, &l);
        else if (!listed)
            return -ENOENT;
        if (listed)
            uid = l.uid;
        if (listed && colon && colon[1] == '\0')
            gid = l.gid;
    }
    if (colon && colon[1] != '\0' && !find_group(group, colon + 1, strlen(colon + 1), &gid))
        return -ESRCH;
    *ret_uid = uid;
    *ret_gid = gid;
    return 0;
}

/* ---- the files ---- */

/* What tells whether a file is still the one that was read. */
struct stamp {
    bool there;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime, ctime;
};

static struct {
    char *spec; /* NULL: nothing kept */
    struct stamp passwd, group;
    struct account account;
} kept;

static struct stamp stamp_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return (struct stamp){ 0 };
    return (struct stamp){ true, st.st_dev, st.st_ino, st.st_size, st.st_mtim, st.st_ctim };
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_stamp(struct stamp a, struct stamp b)
{
    return a.there == b.there && a.dev == b.dev && a.ino == b.ino && a.size == b.size &&
           same_time(a.mtime, b.mtime) && same_time(a.ctime, b.ctime);
}

/* A missing or unreadable file is an empty one: root works without. */
char *account_read(const char *path, struct account_text *ret_text)
{
    *ret_text = (struct account_text){ "", 0 };
    /* Someone inside may have put a pipe or a terminal there: never wait, never take it. */
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return NULL;
    size_t max = (uint64_t)st.st_size < FILE_MAX ? (size_t)st.st_size : FILE_MAX;
    char *p = malloc(max);
    size_t len = 0;
    while (p && len < max) {
        ssize_t r = read(fd, p + len, max - len);
        if (r <= 0)
            break;
        len += (size_t)r;
    }
    if (p)
        *ret_text = (struct account_text){ p, len };
    return p;
}

int account_lookup(const char *spec, const struct account **ret_a)
{
    struct stamp passwd = stamp_of("/etc/passwd"), group = stamp_of("/etc/group");
    if (kept.spec && strcmp(kept.spec, spec) == 0 && same_stamp(kept.passwd, passwd) &&
        same_stamp(kept.group, group)) {
        *ret_a = &kept.account;
        return 0;
    }
    struct account_text passwd_text, group_text;
    _cleanup_free_ char *key = strdup(spec);
    if (!key)
        return -ENOMEM;
    char *passwd_memory = account_read("/etc/passwd", &passwd_text);
    char *group_memory = account_read("/etc/group", &group_text);
    struct account a;
    int r = account_resolve(spec, passwd_text, group_text, &a);
    free(passwd_memory);
    free(group_memory);
    if (r < 0)
        return r;
    account_done(&kept.account);
    free(kept.spec);
    kept.spec = take_ptr(key);
    kept.account = a;
    kept.passwd = passwd;
    kept.group = group;
    *ret_a = &kept.account;
    return 0;
}
