#include "cli/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/check.h"

/* A directory of its own for each test, left to the system's cleaning of /tmp if one fails. */
struct place {
    char dir[64];
};

static void place_init(struct place *p)
{
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/warren-pack-XXXXXX");
    CHECK(mkdtemp(p->dir));
}

static void place_done(struct place *p)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", p->dir);
    CHECK_EQ(system(command), 0); /* NOLINT: our own name */
}

static void place_file(const struct place *p, const char *name, size_t size)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    for (char *slash = strchr(path + strlen(p->dir) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, (off_t)size), 0);
    (void)close(fd);
}

/* The names in the tar, each with a space behind it, read in small pieces. */
static void names_of(struct pack *pack, struct buf *names)
{
    _cleanup_(buf_done) struct buf tar = BUF_INIT(16 << 20);
    char piece[333];
    ssize_t n;
    while ((n = pack_read(pack, piece, sizeof(piece))) > 0)
        CHECK_OK(buf_append(&tar, piece, (size_t)n));
    CHECK_EQ(n, 0);
    CHECK_EQ(tar.len % 512, 0);
    CHECK_EQ(pack_sent(pack), tar.len);
    for (size_t at = 0; at + 512 <= tar.len && tar.data[at];) {
        const char *h = tar.data + at;
        size_t size = strtoull(h + 124, NULL, 8);
        CHECK_OK(buf_printf(names, "%c:%.100s ", h[156], h));
        CHECK_MEM(h + 257, "ustar", 6);
        at += 512 + (size + 511) / 512 * 512;
    }
}

static void check_pack(const struct place *p, const char *rules, const char *const *always,
                       const char *want)
{
    _cleanup_(buf_done) struct buf names = BUF_INIT(1 << 20);
    _cleanup_(pack_freep) struct pack *pack = NULL;
    _cleanup_(ignore_done) struct ignore ig = { 0 };
    struct err err = ERR_INIT;
    CHECK_OK(ignore_parse(rules, strlen(rules), &ig, &err));
    CHECK_OK(pack_new(p->dir, &ig, always, &pack, &err));
    names_of(pack, &names);
    CHECK_STR(names.data ? names.data : "", want);
}

TEST(a_directory_is_packed_in_order_without_what_is_ignored)
{
    static const char *const always[] = { "Dockerfile", "sub/.keep", NULL };
    _cleanup_(place_done) struct place p;
    place_init(&p);
    place_file(&p, "b", 1000);
    place_file(&p, "a/x", 0);
    place_file(&p, "a/y.o", 513);
    place_file(&p, "Dockerfile", 10);
    place_file(&p, "sub/.keep", 1);
    place_file(&p, "sub/other", 1);
    check_pack(&p, "", NULL, "0:Dockerfile 5:a/ 0:a/x 0:a/y.o 0:b 5:sub/ 0:sub/.keep 0:sub/other ");
    check_pack(&p, "**/*.o\nb", NULL, "0:Dockerfile 5:a/ 0:a/x 5:sub/ 0:sub/.keep 0:sub/other ");
    check_pack(&p, "*\n!a/x", NULL, "0:a/x ");
    check_pack(&p, "*", always, "0:Dockerfile 0:sub/.keep ");
}

TEST(long_names_and_links_go_before_their_header)
{
    _cleanup_(place_done) struct place p;
    char name[151], path[256];
    place_init(&p);
    memset(name, 'n', 150);
    name[150] = '\0';
    place_file(&p, name, 1);
    (void)snprintf(path, sizeof(path), "%s/link", p.dir);
    CHECK_EQ(symlink(name, path), 0);
    _cleanup_(buf_done) struct buf names = BUF_INIT(1 << 20);
    _cleanup_(pack_freep) struct pack *pack = NULL;
    CHECK_OK(pack_new(p.dir, NULL, NULL, &pack, NULL));
    pack_extra(pack, "more", "text", 4);
    names_of(pack, &names);
    CHECK_MEM(names.data, "x:more 2:link x:more 0:nnn", 26);
    CHECK(strstr(names.data, " 0:more "));
}

TEST(what_cannot_be_packed_says_so)
{
    struct pack *pack;
    struct err err = ERR_INIT;
    CHECK_EQ(pack_new("/nowhere/at/all", NULL, NULL, &pack, &err), -ENOENT);
    CHECK(strstr(err.msg, "/nowhere/at/all"));
}
