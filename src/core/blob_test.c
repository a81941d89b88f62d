#include "core/blob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "base/check.h"
#include "core/private.h"

struct place {
    char dir[32];
    struct core core;
};

static void begin(struct place *p)
{
    struct err err = ERR_INIT;
    memset(p, 0, sizeof(*p));
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/blob-test-XXXXXX");
    CHECK(mkdtemp(p->dir));
    p->core.blobs.dir = p->core.blobs.partial = -1;
    CHECK_OK(blobs_open(&p->core, p->dir, &err));
}

static void remove_all(int dir)
{
    DIR *d = fdopendir(dup(dir));
    for (const struct dirent *e; d && (e = readdir(d));)
        (void)unlinkat(dir, e->d_name, 0);
    (void)closedir(d);
}

static void end(struct place *p)
{
    static const char *const dirs[] = { "/blobs/sha256", "/blobs/partial", "/blobs", "" };
    remove_all(p->core.blobs.dir);
    remove_all(p->core.blobs.partial);
    blobs_close(&p->core);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "%s%s", p->dir, dirs[i]);
        CHECK_EQ(rmdir(path), 0); /* nothing was left behind */
    }
}

TEST(a_download_goes_on_where_it_was_left)
{
    struct place p;
    struct blob_writer *w = NULL, *other = NULL;
    struct err err = ERR_INIT;
    char digest[DIGEST_SIZE];
    uint64_t at = 1, size;
    begin(&p);
    CHECK_OK(digest_of("abcdef", 6, digest));
    CHECK_OK(blob_resume(&p.core, digest, &w, &at, &err));
    CHECK_EQ(at, 0);
    CHECK_OK(blob_write(w, "abc", 3, &err));
    CHECK_EQ(blob_resume(&p.core, digest, &other, &at, &err), -EBUSY);
    blob_abort(w);
    CHECK_OK(blob_resume(&p.core, digest, &w, &at, &err));
    CHECK_EQ(at, 3);
    CHECK_OK(blob_write(w, "def", 3, &err));
    CHECK_OK(blob_finish(w, digest, NULL, &size, &err));
    CHECK_EQ(size, 6);
    CHECK(blob_exists(&p.core, digest, &size));
    /* It is there: nobody begins it again, and nothing is left in its place. */
    CHECK_EQ(blob_resume(&p.core, digest, &w, &at, &err), -EBUSY);
    CHECK_EQ(faccessat(p.core.blobs.partial, digest + DIGEST_HEX, F_OK, 0), -1);
    end(&p);
}

TEST(wrong_bytes_are_dropped)
{
    struct place p;
    struct blob_writer *w = NULL;
    struct err err = ERR_INIT;
    char digest[DIGEST_SIZE];
    uint64_t at;
    begin(&p);
    CHECK_OK(digest_of("right", 5, digest));
    CHECK_OK(blob_resume(&p.core, digest, &w, &at, &err));
    CHECK_OK(blob_write(w, "wrong", 5, &err));
    CHECK_EQ(blob_finish(w, digest, NULL, NULL, &err), -EBADMSG);
    CHECK_STR(err.what, "invalid_image");
    CHECK(!blob_exists(&p.core, digest, NULL));
    CHECK_OK(blob_resume(&p.core, digest, &w, &at, &err));
    CHECK_EQ(at, 0);
    CHECK_OK(blob_write(w, "wro", 3, &err));
    CHECK_OK(blob_rewind(w, &err));
    CHECK_OK(blob_write(w, "right", 5, &err));
    CHECK_OK(blob_finish(w, digest, NULL, NULL, &err));
    end(&p);
}
