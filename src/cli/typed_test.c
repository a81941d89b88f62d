#include "cli/typed.h"

#include "base/check.h"
#include "cli/commands.h"

TEST(a_refused_member_is_told_of_as_the_option_that_was_typed)
{
    static const char *const cases[][2] = {
        { "'memory_mb' must be from 16 to 1048576", "--memory must be from 16m to 1024g" },
        { "'disk_mb' must be a number from 64 to 2048", "--disk must be from 64m to 2g" },
        { "'idle_timeout_s' must be from 0 (none) to 31536000",
          "--idle-timeout must be from 0 (none) to 365d" },
        { "'pids' must be from 8 to 4096", "--pids must be from 8 to 4096" },
        { "'network' must be \"none\"", "--net must be \"none\"" },
        { "'preview' must not", "--preview must not" },
        { "there is no image 'memory_mb'", "there is no image 'memory_mb'" },
        { "'elsewhere' must be 5", "'elsewhere' must be 5" },
        { "'", "'" },
        { "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_free_ char *text = typed_sentence(&cmd_create, cases[i][0]);
        CHECK_STR(text, cases[i][1]);
    }
}

TEST(a_synopsis_says_which_word_is_missing)
{
    static const struct {
        const char *synopsis;
        int n;
        const char *name;
    } cases[] = {
        { "[OPTIONS] SANDBOX [--] PROGRAM [ARG...]", 0, "SANDBOX" },
        { "[OPTIONS] SANDBOX [--] PROGRAM [ARG...]", 1, "PROGRAM" },
        { "[OPTIONS] SANDBOX [--] PROGRAM [ARG...]", 2, NULL },
        { "[OPTIONS] SANDBOX PORT[:LOCAL]...", 1, "PORT" },
        { "-t NAME [OPTIONS] PATH|-", 0, "PATH|-" },
        { "OPTIONS SANDBOX...", 0, "SANDBOX" },
        { "[--cold] SANDBOX CHECKPOINT | --new X", 2, NULL },
        { "", 0, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_free_ char *name = typed_operand(cases[i].synopsis, cases[i].n);
        CHECK((name == NULL) == (cases[i].name == NULL));
        if (name)
            CHECK_STR(name, cases[i].name);
    }
}

TEST(every_command_can_say_which_word_is_missing)
{
    for (size_t i = 0; i < commands_n; i++) {
        for (int n = 0; n < commands[i]->min_args; n++) {
            _cleanup_free_ char *name = typed_operand(commands[i]->synopsis, n);
            CHECK(name != NULL);
        }
    }
}
