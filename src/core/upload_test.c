#include "core/upload.h"

#include "core/fake_keeper.h"

#define HASH "0123456789abcdef"

static int put(struct world *w, const char *owner, const char *hash, const char *text)
{
    struct upload *up = NULL;
    int r = upload_begin(w->core, owner, hash, &up, NULL);
    if (r < 0)
        return r;
    CHECK_OK(upload_write(up, text, strlen(text), NULL));
    return upload_finish(up, NULL);
}

TEST(an_upload_is_there_once_it_is_whole_and_only_for_its_owner)
{
    struct world *w = world_new(0);
    struct upload *up = NULL;
    struct err err = ERR_INIT;
    char text[8] = "";
    CHECK_OK(upload_begin(w->core, "ours", HASH, &up, &err));
    CHECK_OK(upload_write(up, "ab", 2, &err));
    CHECK(!upload_exists(w->core, "ours", HASH));
    upload_abort(up);
    CHECK(!upload_exists(w->core, "ours", HASH));
    CHECK_OK(put(w, "ours", HASH, "first"));
    CHECK_OK(put(w, "ours", HASH, "again")); /* the last one counts */
    CHECK(!upload_exists(w->core, "theirs", HASH));
    int fd = upload_open(w->core, "ours", HASH, &err);
    CHECK_OK(fd);
    CHECK_EQ(read(fd, text, sizeof(text)), 5);
    CHECK_STR(text, "again");
    (void)close(fd);
    CHECK_EQ(upload_open(w->core, "theirs", HASH, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "upload_not_found");
    uploads_drop(w->core, "ours");
    CHECK(!upload_exists(w->core, "ours", HASH));
    world_free(w);
}

TEST(a_hash_is_hex_and_no_path)
{
    static const char *const wrong[] = { "", ".", "..", "a/b", "../a", "AB", "g", "a b" };
    char longest[UPLOAD_HASH_MAX + 2];
    struct world *w = world_new(0);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK(!upload_hash_valid(wrong[i]));
        CHECK_EQ(put(w, "ours", wrong[i], "x"), -EINVAL);
    }
    memset(longest, 'a', sizeof(longest) - 1);
    longest[UPLOAD_HASH_MAX + 1] = '\0';
    CHECK(!upload_hash_valid(longest));
    longest[UPLOAD_HASH_MAX] = '\0';
    CHECK(upload_hash_valid(longest));
    world_free(w);
}
