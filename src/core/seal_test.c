#include "core/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

static const unsigned char key[SEAL_KEY_BYTES] = "0123456789abcdef0123456789abcde";

TEST(what_was_sealed_opens_again_and_is_never_the_same_text)
{
    _cleanup_(buf_done) struct buf a = BUF_INIT(4096), b = BUF_INIT(4096), out = BUF_INIT(4096);
    CHECK_OK(seal_close(key, "x:1", "value", 5, &a));
    CHECK_OK(seal_close(key, "x:1", "value", 5, &b));
    CHECK(a.len != b.len || memcmp(a.data, b.data, a.len) != 0);
    CHECK_OK(buf_append(&a, "", 1));
    CHECK_OK(seal_open(key, "x:1", a.data, &out));
    CHECK_EQ(out.len, 5);
    CHECK_MEM(out.data, "value", 5);
}

TEST(an_empty_value_can_be_sealed)
{
    _cleanup_(buf_done) struct buf a = BUF_INIT(4096), out = BUF_INIT(4096);
    CHECK_OK(seal_close(key, "x", "", 0, &a));
    CHECK_OK(buf_append(&a, "", 1));
    CHECK_OK(seal_open(key, "x", a.data, &out));
    CHECK_EQ(out.len, 0);
}

TEST(a_seal_about_something_else_or_a_changed_one_does_not_open)
{
    _cleanup_(buf_done) struct buf a = BUF_INIT(4096), out = BUF_INIT(4096);
    unsigned char other[SEAL_KEY_BYTES] = "another";
    CHECK_OK(seal_close(key, "x:1", "value", 5, &a));
    CHECK_OK(buf_append(&a, "", 1));
    CHECK_EQ(seal_open(key, "x:2", a.data, &out), -EBADMSG);
    CHECK_EQ(seal_open(other, "x:1", a.data, &out), -EBADMSG);
    for (size_t i = 0; i + 3 < a.len; i++) { /* the last letters may say the same in two ways */
        char was = a.data[i];
        a.data[i] = was == 'A' ? 'B' : 'A';
        CHECK_EQ(seal_open(key, "x:1", a.data, &out), -EBADMSG);
        a.data[i] = was;
    }
    CHECK_EQ(seal_open(key, "x:1", "", &out), -EBADMSG);
    CHECK_EQ(seal_open(key, "x:1", "!!!", &out), -EBADMSG);
    CHECK_EQ(out.len, 0);
}

TEST(a_key_is_made_once_and_is_its_owners_alone)
{
    char dir[] = "/tmp/warren-seal-XXXXXX", path[64];
    unsigned char a[SEAL_KEY_BYTES], b[SEAL_KEY_BYTES];
    struct stat st;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/key", dir);
    CHECK_OK(seal_key(path, a, NULL));
    CHECK_OK(seal_key(path, b, NULL));
    CHECK_MEM(a, b, sizeof(a));
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0600);
    CHECK_EQ(truncate(path, 5), 0); /* a damaged one is not silently replaced */
    CHECK_EQ(seal_key(path, b, NULL), -EBADMSG);
    (void)unlink(path);
    (void)rmdir(dir);
}
