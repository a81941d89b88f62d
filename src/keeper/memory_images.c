#include "keeper/memory_images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/pb.h"

/* An image: two magic numbers, then messages, each behind its length. */
#define COMMON_MAGIC 0x54564319u
#define USERNS_MAGIC 0x55474906u
#define UTSNS_MAGIC 0x54473203u
#define FILES_MAGIC 0x56303138u
#define MM_MAGIC 0x57492820u
#define TTY_INFO_MAGIC 0x59453036u
#define HEAD_SIZE 8

#define IDS_COUNT 65536
#define IMAGE_MAX (64u * 1024 * 1024) /* files: some hundred bytes for each that is open */
#define INIT_FILE_ID 0x7ffffff0u      /* CRIU counts from 1 */
enum { MM_EXE_FILE_ID = 12 };
enum { TTY_UID = 14, TTY_GID = 15 };
enum { FILE_TYPE = 1, FILE_ID = 2, FILE_REG = 3, TYPE_REG = 1 };
enum { REG_ID = 1, REG_FLAGS = 2, REG_POS = 3, REG_FOWN = 5, REG_NAME = 6 };

static int put_head(struct buf *b, uint32_t magic)
{
    const uint32_t head[] = { COMMON_MAGIC, magic };
    return buf_append(b, head, sizeof(head));
}

static int put_message(struct buf *b, const struct buf *message)
{
    uint32_t n = (uint32_t)message->len;
    int r = buf_append(b, &n, sizeof(n));
    return r < 0 ? r : buf_append(b, message->data, message->len);
}

static int write_image(int dir, const char *name, const struct buf *b)
{
    _cleanup_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : fd_write_full(fd, b->data, b->len);
}

static int write_one(int dir, const char *name, uint32_t magic, const struct buf *message)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(IMAGE_MAX);
    int r = put_head(&b, magic);
    if (r == 0)
        r = put_message(&b, message);
    return r < 0 ? r : write_image(dir, name, &b);
}

static int read_image(int dir, const char *name, uint32_t magic, struct buf *b)
{
    struct stat sb;
    uint32_t head[2];
    _cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &sb) < 0)
        return -errno;
    if (sb.st_size < HEAD_SIZE || sb.st_size > IMAGE_MAX)
        return -EPROTO;
    int r = buf_reserve(b, (size_t)sb.st_size);
    if (r == 0)
        r = fd_read_full(fd, b->data, (size_t)sb.st_size);
    if (r < 0)
        return r;
    b->len = (size_t)sb.st_size;
    memcpy(head, b->data, sizeof(head));
    return head[0] == COMMON_MAGIC && head[1] == magic ? 0 : -EPROTO;
}

/* ---- each of them ---- */

static int put_userns(int dir, const char *name, uint32_t uid_base)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(256), extent = BUF_INIT(64);
    int r = pb_put_int(&extent, 1, 0);
    if (r == 0)
        r = pb_put_int(&extent, 2, uid_base);
    if (r == 0)
        r = pb_put_int(&extent, 3, IDS_COUNT);
    for (unsigned map = 1; r == 0 && map <= 2; map++) /* users, groups */
        r = pb_put_bytes(&b, map, extent.data, extent.len);
    return r < 0 ? r : write_one(dir, name, USERNS_MAGIC, &b);
}

static int put_utsns(int dir, const char *name, const char *hostname)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(512);
    int r = pb_put_str(&b, 1, hostname);
    if (r == 0)
        r = pb_put_str(&b, 2, "(none)");
    return r < 0 ? r : write_one(dir, name, UTSNS_MAGIC, &b);
}

/* The entry of init's program: a regular file by a name that nothing has but the descriptor given. */
static int put_program(struct buf *files)
{
    _cleanup_(buf_done) struct buf fown = BUF_INIT(64), reg = BUF_INIT(256), entry = BUF_INIT(512);
    int r = 0;
    for (unsigned i = 1; r == 0 && i <= 5; i++)
        r = pb_put_int(&fown, i, 0);
    if (r == 0)
        r = pb_put_int(&reg, REG_ID, INIT_FILE_ID);
    if (r == 0)
        r = pb_put_int(&reg, REG_FLAGS, O_RDONLY);
    if (r == 0)
        r = pb_put_int(&reg, REG_POS, 0);
    if (r == 0)
        r = pb_put_bytes(&reg, REG_FOWN, fown.data, fown.len);
    if (r == 0)
        r = pb_put_str(&reg, REG_NAME, "/" MEMORY_INIT_KEY);
    if (r == 0)
        r = pb_put_int(&entry, FILE_TYPE, TYPE_REG);
    if (r == 0)
        r = pb_put_int(&entry, FILE_ID, INIT_FILE_ID);
    if (r == 0)
        r = pb_put_bytes(&entry, FILE_REG, reg.data, reg.len);
    return r < 0 ? r : put_message(files, &entry);
}

static int change_files(int images, int changed)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(IMAGE_MAX + 1024);
    int r = read_image(images, "files.img", FILES_MAGIC, &b);
    if (r == 0)
        r = put_program(&b);
    return r < 0 ? r : write_image(changed, "files.img", &b);
}

/* One process's mappings: *program is what its program has as a number, or 0 to learn it; another's are left. */
static int change_mm(int images, int changed, const char *name, uint64_t *program)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(IMAGE_MAX), message = BUF_INIT(IMAGE_MAX);
    uint32_t len;
    int r = read_image(images, name, MM_MAGIC, &b);
    if (r < 0)
        return r;
    if (b.len < HEAD_SIZE + sizeof(len))
        return -EPROTO;
    memcpy(&len, b.data + HEAD_SIZE, sizeof(len));
    if (len > b.len - HEAD_SIZE - sizeof(len))
        return -EPROTO;
    struct pb_reader in = { b.data + HEAD_SIZE + sizeof(len), len };
    struct pb_field f;
    const char *at = in.p;
    bool its = false;
    while (r == 0 && (r = pb_next(&in, &f)) > 0) {
        bool exe = f.number == MM_EXE_FILE_ID && !f.p;
        if (exe && *program == 0)
            *program = f.value;
        its |= exe && f.value == *program;
        r = exe ? pb_put_int(&message, MM_EXE_FILE_ID, INIT_FILE_ID)
                : buf_append(&message, at, (size_t)(in.p - at));
        at = in.p;
    }
    return r < 0 || !its ? r : write_one(changed, name, MM_MAGIC, &message);
}

/* A terminal without the owner that has no number inside: /dev/tty is the host's, and nobody's to give away. */
static int without_nobody(const char *p, size_t n, struct buf *out)
{
    struct pb_reader in = { p, n };
    struct pb_field f;
    int r = 0;
    while (r == 0 && (r = pb_next(&in, &f)) > 0) {
        bool nobody =
            (f.number == TTY_UID || f.number == TTY_GID) && !f.p && (uint32_t)f.value == UINT32_MAX;
        r = nobody ? 0 : buf_append(out, p, (size_t)(in.p - p));
        p = in.p;
    }
    return r;
}

static int change_ttys(int images, int changed)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(IMAGE_MAX), out = BUF_INIT(IMAGE_MAX);
    int r = read_image(images, "tty-info.img", TTY_INFO_MAGIC, &b);
    if (r == -ENOENT)
        return 0;
    if (r == 0)
        r = put_head(&out, TTY_INFO_MAGIC);
    for (size_t at = HEAD_SIZE; r == 0 && at < b.len;) {
        _cleanup_(buf_done) struct buf message = BUF_INIT(IMAGE_MAX);
        uint32_t len;
        if (b.len - at < sizeof(len))
            return -EPROTO;
        memcpy(&len, b.data + at, sizeof(len));
        at += sizeof(len);
        if (len > b.len - at)
            return -EPROTO;
        r = without_nobody(b.data + at, len, &message);
        if (r == 0)
            r = put_message(&out, &message);
        at += len;
    }
    return r < 0 ? r : write_image(changed, "tty-info.img", &out);
}

int memory_images_change(int images, int changed, uint32_t uid_base, const char *hostname,
                         struct err *err)
{
    int copy = openat(images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    uint64_t program = 0;
    int r = d ? change_mm(images, changed, "mm-1.img", &program) : -errno;
    for (struct dirent *e; r == 0 && d && (e = readdir(d));) {
        if (strncmp(e->d_name, "mm-", 3) == 0) /* init's own children have its program too */
            r = change_mm(images, changed, e->d_name, &program);
        else if (strncmp(e->d_name, "userns-", 7) == 0)
            r = put_userns(changed, e->d_name, uid_base);
        else if (strncmp(e->d_name, "utsns-", 6) == 0)
            r = put_utsns(changed, e->d_name, hostname);
    }
    if (d)
        (void)closedir(d);
    if (r == 0)
        r = change_files(images, changed);
    if (r == 0)
        r = change_ttys(images, changed);
    return r < 0 ? err_set(err, -r, "the checkpoint's memory cannot be read") : 0;
}
