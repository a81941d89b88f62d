#include "core/proof.h"

#include "base/check.h"
#include "core/private.h"

static void digest_number(unsigned n, char out[DIGEST_SIZE])
{
    (void)snprintf(out, DIGEST_SIZE, "sha256:%064u", n);
}

TEST(what_an_owner_fetched_is_known_of_that_owner)
{
    struct core core = { 0 };
    char digest[DIGEST_SIZE], other[DIGEST_SIZE];
    (void)pthread_mutex_init(&core.registries.lock, NULL);
    digest_number(1, digest);
    digest_number(2, other);
    CHECK(!proof_known(&core, "a", digest));
    proof_add(&core, "a", digest);
    CHECK(proof_known(&core, "a", digest));
    CHECK(!proof_known(&core, "b", digest));
    CHECK(!proof_known(&core, "a", other));
    free(core.registries.proofs);
}

TEST(the_oldest_are_forgotten_first)
{
    struct core core = { 0 };
    char digest[DIGEST_SIZE];
    (void)pthread_mutex_init(&core.registries.lock, NULL);
    for (unsigned i = 0; i <= PROOFS_MAX; i++) {
        digest_number(i, digest);
        proof_add(&core, "a", digest);
    }
    CHECK(proof_known(&core, "a", digest));
    digest_number(0, digest);
    CHECK(!proof_known(&core, "a", digest));
    digest_number(1, digest);
    CHECK(proof_known(&core, "a", digest));
    free(core.registries.proofs);
}
