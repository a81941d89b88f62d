/* archives - archives that unpack outside of their directory, or to more than there is room for. */
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "cli/attack/attack.h"
#include "cli/attack/tar.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define TOP "/tmp/attack-unpack"
#define OUT "/tmp/attack-slipped"
#define BOMB_MB 192

static long unpack(struct attack *a, const char *box, const struct buf *b, json_t **ret_answer)
{
    _cleanup_free_ char *path = xasprintf("/v1/sandboxes/%s/files/archive?path=" TOP, box);
    return talk_raw(a->red.client, "PUT", path, "application/octet-stream", b->data, b->len,
                    ret_answer);
}

static long stat_of(struct attack *a, const char *box, const char *what, json_t **ret_answer)
{
    _cleanup_free_ char *rest = xasprintf("/files/stat?follow=false&path=%s", what);
    return talk_box(a->red.client, "GET", box, rest, NULL, ret_answer);
}

/* The archive must be refused, or its files must lie below the top. */
static void judge(struct attack *a, const char *box, const struct buf *b, struct trial *t)
{
    _cleanup_json_ json_t *answer = NULL;
    long status = unpack(a, box, b, &answer);
    if (stat_of(a, box, OUT, NULL) == 200)
        trial_broke(t, "a file lies outside of where the archive was unpacked");
    else if (status >= 500 || status == 0)
        trial_broke(t, "the answer is %ld %s", status, talk_code(answer));
    else
        trial_held(t, "%ld %s", status, talk_code(answer));
    (void)talk_box(a->red.client, "DELETE", box, "/files?recursive=true&force=true&path=" TOP, NULL,
                   NULL);
    (void)talk_box(a->red.client, "DELETE", box, "/files?force=true&path=" OUT, NULL, NULL);
}

/* text: the member's name, more: a link's target, number: its type. */
static void run_member(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(1 << 20);
    const char *box = stage_box(a, t);
    if (!box)
        return;
    tar_put(&b, self->text, (char)self->number, self->more, self->number == '0' ? "slipped" : NULL);
    if (self->number == '2') /* then a member that goes through the link */
        tar_put(&b, "link/attack-slipped", '0', NULL, "slipped");
    tar_end(&b);
    judge(a, box, &b, t);
    buf_done(&b);
}

static void run_pax(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(1 << 20);
    const char *box = stage_box(a, t);
    if (!box)
        return;
    tar_put(&b, "pax", 'x', NULL, "31 path=../attack-slipped-by-pax\n");
    tar_put(&b, "innocent", '0', NULL, "slipped");
    tar_put(&b, "pax", 'x', NULL, "26 path=../attack-slipped\n");
    tar_put(&b, "innocent", '0', NULL, "slipped");
    tar_end(&b);
    judge(a, box, &b, t);
    buf_done(&b);
}

static void run_long_name(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(1 << 20);
    const char *box = stage_box(a, t);
    if (!box)
        return;
    tar_put(&b, "././@LongLink", 'L', NULL, "../attack-slipped");
    tar_put(&b, "innocent", '0', NULL, "slipped");
    tar_end(&b);
    judge(a, box, &b, t);
    buf_done(&b);
}

static void run_zip(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(1 << 20);
    const char *box = stage_box(a, t);
    if (!box)
        return;
    zip_put(&b, self->text, "slipped");
    judge(a, box, &b, t);
    buf_done(&b);
}

/* A file, then a directory of the same name, then a file in it. */
static void run_twice(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(1 << 20);
    const char *box = stage_box(a, t);
    if (!box)
        return;
    tar_put(&b, "x", '5', NULL, NULL);
    tar_put(&b, "x", '2', "/tmp", NULL);
    tar_put(&b, "x/attack-slipped", '0', NULL, "slipped");
    tar_end(&b);
    judge(a, box, &b, t);
    buf_done(&b);
}

/* ---- bombs ---- */

/* A tar with one file of one letter, gzipped: BOMB_MB in 190 KB. A file of zeros would become a
 * hole, which takes no room. */
static void pack_bomb(struct buf *out)
{
    char letters[65536], zeros[1024] = { 0 };
    struct buf head = BUF_INIT(4096);
    z_stream z = { 0 };
    char packed[65536];
    tar_put(&head, "bomb", '0', NULL, NULL);
    (void)snprintf(head.data + 124, 12, "%011lo", (unsigned long)BOMB_MB << 20);
    unsigned sum = 0;
    memset(head.data + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += (unsigned char)head.data[i];
    (void)snprintf(head.data + 148, 8, "%06o", sum);
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    memset(letters, 'a', sizeof(letters));
    for (int i = -1; i <= BOMB_MB * 16; i++) {
        z.next_in = (Bytef *)(i < 0 ? head.data : i == BOMB_MB * 16 ? zeros : letters);
        z.avail_in = i < 0 ? 512 : i == BOMB_MB * 16 ? sizeof(zeros) : sizeof(letters);
        do {
            z.next_out = (Bytef *)packed;
            z.avail_out = sizeof(packed);
            (void)deflate(&z, i == BOMB_MB * 16 ? Z_FINISH : Z_NO_FLUSH);
            xputn(out, packed, sizeof(packed) - z.avail_out);
        } while (z.avail_out == 0);
    }
    (void)deflateEnd(&z);
    buf_done(&head);
}

static void judge_bomb(struct trial *t, long status, const char *code, int64_t took)
{
    if (status >= 200 && status < 300)
        trial_broke(t, "%d MiB were unpacked", BOMB_MB);
    else if (status == 0 || status == 500)
        trial_broke(t, "the answer is %ld %s", status, code);
    else
        trial_held(t, "%ld %s after %lld ms", status, code, (long long)took);
}

static void run_bomb(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(16 << 20);
    _cleanup_json_ json_t *answer = NULL;
    const char *box = stage_box(a, t);
    if (!box)
        return;
    pack_bomb(&b);
    int64_t began = clock_mono_ms();
    long status = unpack(a, box, &b, &answer);
    judge_bomb(t, status, talk_code(answer), clock_mono_ms() - began);
    (void)talk_box(a->red.client, "DELETE", box, "/files?recursive=true&force=true&path=" TOP, NULL,
                   NULL);
    buf_done(&b);
}

/* ---- images: a layer's members, and what it unpacks to ---- */

static long import(struct attack *a, const struct buf *b, const char *name, json_t **ret_answer)
{
    _cleanup_free_ char *path = xasprintf("/v1/images/%s-%s", a->tag, name);
    return talk_raw(a->red.client, "PUT", path, "application/octet-stream", b->data, b->len,
                    ret_answer);
}

static void forget(struct attack *a, const char *name)
{
    _cleanup_free_ char *path = xasprintf("/v1/images/%s-%s", a->tag, name);
    (void)talk(a->red.client, "DELETE", path, NULL, NULL);
}

/* No file of this host may appear, whatever the member's name: the secret's directory is
 * watched. */
static void run_image(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(1 << 20);
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *escaped = xasprintf("/tmp/%s-escaped", a->tag);
    _cleanup_free_ char *name = xasprintf("%s%s-escaped", self->text, a->tag);
    if (!a->secret_path) {
        trial_not_here(t, "the daemon is on another machine");
        return;
    }
    tar_put(&b, "bin/", '5', NULL, NULL);
    if (self->number == '2')
        tar_put(&b, "out", '2', "/tmp", NULL);
    if (self->number == '1')
        tar_put(&b, "hard", '1', a->secret_path, NULL);
    tar_put(&b, name, '0', NULL, "escaped");
    tar_end(&b);
    long status = import(a, &b, "image", &answer);
    if (access(escaped, F_OK) == 0)
        trial_broke(t, "the layer wrote a file of this host");
    else if (status >= 500 || status == 0)
        trial_broke(t, "the answer is %ld %s", status, talk_code(answer));
    else
        trial_held(t, "%ld %s", status, talk_code(answer));
    (void)unlink(escaped);
    forget(a, "image");
    buf_done(&b);
}

/* No honest image unpacks to a thousand times its size. */
static void run_image_bomb(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(16 << 20);
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *team = xasprintf("/v1/teams/%s", a->red.team);
    pack_bomb(&b);
    (void)talk(a->admin, "PATCH", team, json_pack("{s:{s:i}}", "quotas", "disk_mb", BOMB_MB / 2),
               NULL);
    int64_t began = clock_mono_ms();
    long status = import(a, &b, "bomb", &answer);
    judge_bomb(t, status, talk_code(answer), clock_mono_ms() - began);
    forget(a, "bomb");
    (void)talk(a->admin, "PATCH", team, json_pack("{s:{s:n}}", "quotas", "disk_mb"), NULL);
    buf_done(&b);
}

static void run_image_junk(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf b = BUF_INIT(1 << 20);
    _cleanup_json_ json_t *answer = NULL;
    for (int i = 0; i < 4096; i++)
        xputn(&b, self->text, strlen(self->text));
    long status = import(a, &b, "junk", &answer);
    if (status == 400)
        trial_held(t, "400 %s", talk_code(answer));
    else
        trial_broke(t, "junk as an image: %ld %s", status, talk_code(answer));
    forget(a, "junk");
    buf_done(&b);
}

#define TAR(name_, title_, member_, type_, link_)                                         \
    {                                                                                     \
        .name = "tar-" name_, .category = "archives", .title = title_, .run = run_member, \
        .text = member_, .number = type_, .more = link_                                   \
    }
#define IMAGE(name_, title_, member_, type_)                                               \
    {                                                                                      \
        .name = "image-" name_, .category = "archives", .title = title_, .run = run_image, \
        .text = member_, .number = type_                                                   \
    }

/* clang-format off */
static const struct attempt_row rows[] = {
    TAR("dotdot", "a member with ..", "../attack-slipped", '0', NULL),
    TAR("dotdot-deep", "a member with .. in the middle", "a/b/../../../attack-slipped", '0', NULL),
    TAR("absolute", "a member with an absolute name", OUT, '0', NULL),
    TAR("symlink", "a link out, and a file through it", "link", '2', "/tmp"),
    TAR("hardlink", "a hard link to a file outside", "link", '1', "/etc/passwd"),
    TAR("hardlink-dotdot", "a hard link with ..", "link", '1', "../../etc/passwd"),
    TAR("device", "a device", "mem", '3', NULL),
    { .name = "tar-pax-path", .category = "archives", .title = "a name in an extended header", .run = run_pax },
    { .name = "tar-long-name", .category = "archives", .title = "a name in GNU's way", .run = run_long_name },
    { .name = "tar-twice", .category = "archives", .title = "a directory that becomes a link", .run = run_twice },
    { .name = "zip-dotdot", .category = "archives", .title = "a zip member with ..", .run = run_zip, .text = "../attack-slipped" },
    { .name = "zip-absolute", .category = "archives", .title = "a zip member with an absolute name", .run = run_zip, .text = OUT },
    { .name = "zip-backslash", .category = "archives", .title = "a zip member with ..\\", .run = run_zip, .text = "..\\attack-slipped" },
    { .name = "gzip-bomb", .category = "archives", .title = "192 MB of one letter", .run = run_bomb },
    IMAGE("dotdot", "a layer with ..", "../../../../../../../../tmp/", '0'),
    IMAGE("absolute", "a layer with an absolute name", "/tmp/", '0'),
    IMAGE("symlink", "a layer that writes through its own link", "out/", '2'),
    IMAGE("hardlink", "a layer that links to a file of the host", "x/", '1'),
    { .name = "image-bomb", .category = "archives", .title = "a layer of 192 MB under a quota of 96", .run = run_image_bomb },
    { .name = "image-junk", .category = "archives", .title = "no image at all", .run = run_image_junk, .text = "junk" },
};
/* clang-format on */

const struct attempt_table attack_archives = { rows, ARRAY_LEN(rows) };
