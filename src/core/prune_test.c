#include <stdlib.h>
#include <string.h>

#include "core/fake_keeper.h"
#include "core/images.h"

#define CHAIN(c_) "sha256:" c_ c_ c_ c_ c_ c_ c_ c_
#define A8(c_) c_ c_ c_ c_ c_ c_ c_ c_
#define OF_RED CHAIN(A8("1"))
#define OF_BLUE CHAIN(A8("2"))
#define OF_BOTH CHAIN(A8("3"))

static void add(struct world *w, const char *chain, const char *owner, bool kept)
{
    struct layer l = { .kept = kept };
    l.l.size_bytes = 1000;
    (void)snprintf(l.l.chain, sizeof(l.l.chain), "%s", chain);
    (void)snprintf(l.l.digest, sizeof(l.l.digest), "%s", chain);
    (void)snprintf(l.l.tree, sizeof(l.l.tree), "%.32s", chain + DIGEST_HEX);
    (void)snprintf(l.owner, sizeof(l.owner), "%s", owner);
    CHECK_OK(layer_record(w->core, &l, NULL));
    CHECK_OK(images_add_layer(&w->core->images, &l));
}

static bool here(struct world *w, const char *chain)
{
    struct image_layer l;
    return image_find_layer(w->core, chain, &l) == 0;
}

TEST(a_team_prunes_its_own_cache_and_the_operator_everyones)
{
    struct world *w = world_new(0);
    struct image_pruned pruned;
    struct err err = ERR_INIT;
    add(w, OF_RED, "red", true);
    add(w, OF_BLUE, "blue", true);
    add(w, OF_BOTH, "red", true);
    CHECK_OK(store_build_put(w->core->store, "1", "red", OF_RED, 1, NULL));
    CHECK_OK(store_build_put(w->core->store, "2", "red", OF_BOTH, 1, NULL));
    CHECK_OK(store_build_put(w->core->store, "3", "blue", OF_BOTH, 1, NULL));
    CHECK_OK(image_prune(w->core, "red", &pruned, &err));
    CHECK_EQ(pruned.n, 1);
    CHECK_STR(pruned.layers[0], OF_RED);
    CHECK_EQ(pruned.freed_bytes, 1000);
    free(pruned.layers);
    CHECK(!here(w, OF_RED));
    CHECK(here(w, OF_BLUE));
    CHECK(here(w, OF_BOTH));
    CHECK_EQ(images_bytes(&w->core->images, "red"), 0); /* it counts for the one who has it */
    CHECK_EQ(images_bytes(&w->core->images, "blue"), 2000);
    CHECK_OK(image_prune(w->core, NULL, &pruned, &err));
    CHECK_EQ(pruned.n, 2);
    free(pruned.layers);
    world_free(w);
}

TEST(a_layer_of_another_team_below_a_pruned_one_stays_cached)
{
    struct world *w = world_new(0);
    struct image_pruned pruned;
    struct err err = ERR_INIT;
    add(w, OF_BLUE, "blue", true);
    add(w, OF_RED, "red", true);
    memcpy(w->core->images.layers[w->core->images.n_layers - 1].parent, OF_BLUE, DIGEST_SIZE);
    CHECK_OK(image_prune(w->core, "red", &pruned, &err));
    CHECK_EQ(pruned.n, 1);
    free(pruned.layers);
    CHECK(here(w, OF_BLUE));
    world_free(w);
}
