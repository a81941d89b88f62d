#include "core/archive_manifest.h"

#include <errno.h>

#include "base/check.h"

static const char spec[] = "{\"image\":\"base\",\"user\":\"root\",\"env\":{\"TOKEN\":\"hush\"},"
                           "\"cpu_millis\":1000,\"memory_bytes\":536870912,"
                           "\"disk_bytes\":1073741824,\"pids\":512,\"nofile\":1024,"
                           "\"network\":\"open\\nproxy http://me:hush@192.0.2.1:3128\"}";

static struct archive_manifest example(void)
{
    struct archive_manifest m = { .n_layers = 0 };
    (void)snprintf(m.c.id, ID_SIZE, "%s", "abcdefghij0123456789");
    (void)snprintf(m.c.sandbox, ID_SIZE, "%s", "bbcdefghij0123456789");
    (void)snprintf(m.c.owner, OWNER_MAX, "%s", "default");
    (void)snprintf(m.c.reason, sizeof(m.c.reason), "%s", "asked");
    m.c.comment = strdup("as it \"was\"");
    m.c.spec = strdup(spec);
    m.c.created_ms = 1794814701000;
    m.c.bytes = 4096;
    (void)pairs_add(&m.c.metadata, "k", "v");
    m.layers = calloc(1, sizeof(*m.layers));
    m.n_layers = 1;
    memset(m.layers[0].digest, 'a', DIGEST_SIZE - 1);
    memcpy(m.layers[0].digest, "sha256:", 7);
    memcpy(m.layers[0].diff_id, m.layers[0].digest, DIGEST_SIZE);
    (void)snprintf(m.layers[0].media_type, OCI_TYPE_MAX, "%s", OCI_LAYER_GZIP);
    for (unsigned i = 0; i < 5; i++) {
        struct archive_piece p = { .raw = CHUNK_MIN + i, .packed = 100 + i };
        p.digest[0] = (uint8_t)i;
        CHECK_OK(archive_stream_add(&m.files, &p));
        m.files.bytes += p.raw;
    }
    return m;
}

static char *text_of(const struct archive_manifest *m)
{
    struct buf b = BUF_INIT(ARCHIVE_MANIFEST_MAX);
    CHECK_OK(archive_manifest_write(m, &b, NULL));
    return buf_steal(&b);
}

TEST(what_is_written_is_what_is_read)
{
    struct archive_manifest m = example(), back = { .n_layers = 0 };
    char *text = text_of(&m);
    CHECK_OK(archive_manifest_read(text, strlen(text), &back, NULL));
    CHECK_STR(back.c.id, m.c.id);
    CHECK_STR(back.c.comment, m.c.comment);
    CHECK_STR(pairs_get(&back.c.metadata, "k"), "v");
    CHECK_EQ(back.files.n, 5);
    CHECK_MEM(back.files.pieces, m.files.pieces, 5 * sizeof(*m.files.pieces));
    CHECK_EQ(back.n_layers, 1);
    CHECK(!back.has_memory);
    CHECK_EQ(archive_stream_stored(&back.files), 510);
    free(text);
    archive_manifest_done(&m);
    archive_manifest_done(&back);
}

TEST(what_may_be_secret_stays_at_home)
{
    struct archive_manifest m = example();
    char *text = text_of(&m);
    CHECK(strstr(text, "\"image\":\"base\"") && !strstr(text, "hush") && !strstr(text, "TOKEN"));
    free(text);
    archive_manifest_done(&m);
}

/* The manifest with one text in the place of another. */
static int read_with(const char *old, const char *new)
{
    struct archive_manifest m = example(), back = { .n_layers = 0 };
    char *text = text_of(&m), *at = strstr(text, old), *other = NULL;
    CHECK(at != NULL);
    CHECK(asprintf(&other, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old)) > 0);
    int r = archive_manifest_read(other, strlen(other), &back, NULL);
    archive_manifest_done(&back);
    archive_manifest_done(&m);
    free(text);
    free(other);
    return r;
}

TEST(a_manifest_that_is_not_one_is_refused)
{
    CHECK_OK(read_with("\"default\"", "\"other\""));
    static const char *const bad[][2] = {
        { "\"format\":1", "\"format\":2" },
        { "\"default\"", "\"../x\"" },
        { "abcdefghij0123456789", "../../etc/passwd" },
        { "\"parent\":\"\"", "\"parent\":\"x\"" },
        { "[\"00", "[\"0x" },
        { ",262144,100]", ",262145,100]" },      /* the sum is another */
        { ",262144,100]", ",262144,0]" },        /* nothing packs to nothing */
        { ",262144,100]", ",262144,99999999]" }, /* more than any piece */
        { ",262144,100]", ",262144]" },
        { "\"digest\":\"sha256:", "\"digest\":\"md5:" },
        { "\"disk_bytes\":4096", "\"disk_bytes\":-1" },
        { "\"spec\":{", "\"spec\":[{" },
        { "\"metadata\":{\"k\":\"v\"}", "\"metadata\":{\"k\":1}" },
        { "{\"format\"", "[{\"format\"" },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(read_with(bad[i][0], bad[i][1]), -EBADMSG);
}
