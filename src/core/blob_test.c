#include "core/blob.h"

#include "core/fake_keeper.h"

#define ABC "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

TEST(a_blob_has_its_name_only_when_it_is_whole_and_right)
{
    struct world *w = world_new(0);
    struct blob_writer *b;
    struct err err = ERR_INIT;
    char digest[DIGEST_SIZE];
    uint64_t size = 0;
    CHECK_OK(blob_begin(w->core, NULL, &b, &err));
    CHECK_OK(blob_write(b, "ab", 2, &err));
    CHECK(!blob_exists(w->core, ABC, NULL));
    CHECK_EQ(blob_finish(b, ABC, digest, &size, &err), -EBADMSG);
    CHECK_STR(failure_name(err.failure), "invalid_image");
    CHECK_OK(blob_put(w->core, "abc", 3, digest, &err));
    CHECK_STR(digest, ABC);
    CHECK_OK(blob_put(w->core, "abc", 3, digest, &err)); /* again is fine */
    CHECK(blob_exists(w->core, ABC, &size));
    CHECK_EQ(size, 3);
    _cleanup_(buf_done) struct buf text = BUF_INIT(16), small = BUF_INIT(2);
    CHECK_OK(blob_read(w->core, ABC, &text, &err));
    CHECK_STR(text.data, "abc");
    CHECK_EQ(blob_read(w->core, ABC, &small, &err), -EMSGSIZE);
    blob_remove(w->core, ABC);
    CHECK(!blob_exists(w->core, ABC, NULL));
    CHECK_EQ(blob_read(w->core, "sha256:../../x", &text, &err), -ENOENT);
    world_free(w);
}

TEST(a_download_goes_on_where_it_was_cut_even_after_a_restart)
{
    struct world *w = world_new(0);
    struct blob_writer *b, *other;
    struct err err = ERR_INIT;
    char digest[DIGEST_SIZE];
    uint64_t offset = 9, size = 0;
    CHECK_OK(blob_resume(w->core, NULL, ABC, &b, &offset, &err));
    CHECK_EQ(offset, 0);
    CHECK_EQ(blob_resume(w->core, NULL, ABC, &other, &offset, &err), -EBUSY);
    CHECK_OK(blob_write(b, "ab", 2, &err));
    blob_abort(b);
    world_restart(w, 0);
    CHECK_OK(blob_resume(w->core, NULL, ABC, &b, &offset, &err));
    CHECK_EQ(offset, 2);
    CHECK_OK(blob_write(b, "c", 1, &err));
    CHECK_OK(blob_finish(b, ABC, digest, &size, &err));
    CHECK_EQ(size, 3);
    blob_remove(w->core, ABC);
    CHECK_OK(blob_resume(w->core, NULL, ABC, &b, &offset, &err));
    CHECK_EQ(offset, 0);
    CHECK_OK(blob_write(b, "xx", 2, &err));
    CHECK_OK(blob_rewind(b, &err));
    CHECK_OK(blob_write(b, "abc", 3, &err));
    CHECK_OK(blob_finish(b, ABC, digest, &size, &err));
    world_free(w);
}

TEST(blobs_of_nothing_go_at_the_next_start_or_a_prune_unless_somebody_holds)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct image_hold hold;
    struct image_pruned pruned;
    char digest[DIGEST_SIZE];
    CHECK_OK(blob_put(w->core, "abc", 3, digest, &err));
    world_restart(w, 0);
    CHECK(!blob_exists(w->core, ABC, NULL));
    image_hold_begin(w->core, OWNER_DEFAULT, &hold);
    CHECK_OK(blob_put(w->core, "abc", 3, digest, &err));
    CHECK_OK(image_prune(w->core, NULL, &pruned, &err));
    CHECK(blob_exists(w->core, ABC, NULL));
    image_hold_end(w->core, &hold);
    CHECK_OK(image_prune(w->core, NULL, &pruned, &err));
    CHECK_EQ(pruned.freed_bytes, 3);
    CHECK(!blob_exists(w->core, ABC, NULL));
    free(pruned.layers);
    world_free(w);
}

TEST(a_blob_that_is_there_is_not_begun_again)
{
    struct world *w = world_new(0);
    struct blob_writer *b;
    struct err err = ERR_INIT;
    char digest[DIGEST_SIZE];
    uint64_t offset;
    CHECK_OK(blob_put(w->core, "abc", 3, digest, &err));
    CHECK_EQ(blob_resume(w->core, NULL, ABC, &b, &offset, &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "blob_busy");
    CHECK_EQ(faccessat(w->core->blobs.partial, &(ABC)[DIGEST_HEX], F_OK, 0), -1);
    world_free(w);
}

TEST(a_prune_takes_the_downloads_that_nobody_goes_on_with)
{
    struct world *w = world_new(0);
    struct blob_writer *b, *import;
    struct err err = ERR_INIT;
    char digest[DIGEST_SIZE];
    uint64_t offset, size;
    CHECK_OK(blob_begin(w->core, NULL, &import, &err));
    CHECK_OK(blob_resume(w->core, NULL, ABC, &b, &offset, &err));
    CHECK_OK(blob_write(b, "ab", 2, &err));
    (void)blobs_drop_partial(w->core); /* it is being written */
    blob_abort(b);
    CHECK_OK(blob_resume(w->core, NULL, ABC, &b, &offset, &err));
    CHECK_EQ(offset, 2);
    blob_abort(b);
    (void)blobs_drop_partial(w->core);
    CHECK_OK(blob_resume(w->core, NULL, ABC, &b, &offset, &err));
    CHECK_EQ(offset, 0);
    blob_abort(b);
    CHECK_OK(blob_finish(import, NULL, digest, &size, &err));
    world_free(w);
}
