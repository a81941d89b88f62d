/* check - a thin skin over cmocka, so that a unit test is a few lines.
 *
 * TEST(a_sentence_that_is_true_when_it_passes) { ... } in noun_test.c registers
 * itself; dropping the file in is all there is to do. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

#define CHECK_TESTS_MAX 256

void check_register(const char *name, CMUnitTestFunction fn);
/* What this machine cannot run is left out; where MUST_RUN=1 says that it can, that is a failure. */
void check_skip(const char *why);

#define TEST(name_)                                                 \
    static void name_(void **state);                                \
    __attribute__((constructor)) static void register_##name_(void) \
    {                                                               \
        check_register(#name_, name_);                              \
    }                                                               \
    static void name_(void **state __attribute__((unused)))

#define CHECK(cond_) assert_true(cond_)
#define CHECK_EQ(a_, b_) assert_int_equal((a_), (b_))
#define CHECK_OK(r_) assert_true((r_) >= 0)
#define CHECK_STR(a_, b_) assert_string_equal((a_), (b_))
#define CHECK_MEM(a_, b_, n_) assert_memory_equal((a_), (b_), (n_))

/* Waits for what other threads or processes do, for as long as a loaded machine may take. */
#define WAIT_FOR(cond_)                            \
    do {                                           \
        int64_t until_ = clock_mono_ms() + 60000;  \
        while (!(cond_)) {                         \
            assert_true(clock_mono_ms() < until_); \
            (void)usleep(1000);                    \
        }                                          \
    } while (0)
