/* Layers: any tar, and tars of well-formed entries in any order, laid on one another. Whatever they
 * say, nothing beside the tree changes; and image archives in pieces. */
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "core/oci.h"
#include "unpack/layer.h"
#include "unpack/split.h"

#define TAR_BLOCK 512
#define TAR_MAX (256 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const char *const parts[] = {
    "a",      "b",    "c",   "a",   "b", "..", ".", ".wh.a", ".wh.b", ".wh..wh..opq",
    ".wh...", ".wh.", "etc", "dev",
};
static const char types[] = "0000512226134"; /* files, directories, links of both kinds, others */

struct input {
    const uint8_t *p;
    size_t n;
};

static uint8_t take(struct input *in)
{
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->p++;
}

static void take_path(struct input *in, char out[100])
{
    uint8_t how = take(in);
    size_t at = 0;
    if (how & 0x40)
        out[at++] = '/';
    for (unsigned i = 0; i <= how % 4; i++)
        at += (size_t)snprintf(out + at, 100 - at, "%s%s", i ? "/" : "",
                               parts[take(in) % ARRAY_LEN(parts)]);
    if (how & 0x80 && at < 98)
        out[at++] = '/';
    out[at] = '\0';
}

static void put_entry(struct input *in, struct buf *tar)
{
    char h[TAR_BLOCK] = { 0 };
    unsigned sum = 0;
    size_t size = 0;
    h[156] = types[take(in) % (sizeof(types) - 1)];
    take_path(in, h);
    if (h[156] == '1' || h[156] == '2')
        take_path(in, h + 157);
    if (h[156] == '0')
        size = take(in) % 32;
    (void)snprintf(h + 100, 8, "%07o", take(in) & 0777);
    memcpy(h + 108, "0000000", 7);
    memcpy(h + 116, "0000000", 7);
    (void)snprintf(h + 124, 12, "%011zo", size);
    memcpy(h + 136, "00000000001", 11);
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + 148, 7, "%06o", sum & 0777777);
    (void)buf_append(tar, h, sizeof(h));
    memset(h, 'x', sizeof(h));
    if (size)
        (void)buf_append(tar, h, sizeof(h));
}

static int file_of(const void *p, size_t n)
{
    int fd = memfd_create("layer", MFD_CLOEXEC);
    if (fd < 0 || write(fd, p, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    return fd;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return remove(path);
}

/* A directory with the tree in it and a file beside it, made once a process. */
static const char *place(void)
{
    static char dir[] = "/dev/shm/warren-fuzz-XXXXXX"; /* in memory: no disk is waited for */
    static int made;
    if (!made++ && !mkdtemp(dir))
        abort();
    return dir;
}

static void apply(const char *root_path, const void *p, size_t n)
{
    struct unpack_report rep = { 0 };
    struct err err = ERR_INIT;
    int fd = file_of(p, n), root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)layer_apply(fd, root, &(struct unpack_bounds){ 0 }, &rep, &err);
    (void)close(fd);
    (void)close(root);
}

static void layers(struct input *in, bool raw)
{
    char root[128], beside[128], text[8] = "";
    (void)snprintf(root, sizeof(root), "%s/a", place());
    (void)snprintf(beside, sizeof(beside), "%s/b", place());
    FILE *f = fopen(beside, "w");
    if (!f || fputs("kept", f) < 0 || fclose(f) != 0 || mkdir(root, 0755) < 0)
        abort();
    if (raw)
        apply(root, in->p, in->n);
    while (!raw && in->n > 0) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(TAR_MAX);
        static const char end[2 * TAR_BLOCK];
        for (unsigned i = take(in) % 16; i > 0; i--)
            put_entry(in, &tar);
        (void)buf_append(&tar, end, sizeof(end));
        apply(root, tar.data, tar.len);
    }
    f = fopen(beside, "r");
    if (!f || !fgets(text, sizeof(text), f) || strcmp(text, "kept") != 0)
        abort();
    (void)fclose(f);
    (void)nftw(place(), remove_one, 64, FTW_DEPTH | FTW_PHYS);
    if (mkdir(place(), 0700) < 0)
        abort();
}

static void json(const struct input *in)
{
    struct oci_manifest m;
    struct image_config c;
    struct oci_blob b;
    if (oci_manifest_parse((const char *)in->p, in->n, &m, NULL) == 0)
        oci_manifest_done(&m);
    (void)oci_is_index((const char *)in->p, in->n);
    (void)oci_index_pick((const char *)in->p, in->n, "linux/amd64", "a:b", &b, NULL);
    if (image_config_parse((const char *)in->p, in->n, &c, NULL) == 0) {
        free(image_config_text(&c));
        image_config_done(&c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct input in = { p, n };
    switch (take(&in) % 4) {
    case 0: layers(&in, true); break;
    case 1: json(&in); break;
    case 2: {
        struct err err = ERR_INIT;
        int fd = file_of(in.p, in.n), out = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)split_write(fd, out, 0, &err);
        (void)close(fd);
        (void)close(out);
        break;
    }
    default: layers(&in, false);
    }
    return 0;
}
