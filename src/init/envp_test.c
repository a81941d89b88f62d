#include "init/envp.h"

#include "base/check.h"

static char root_name[] = "root", root_home[] = "/root", root_shell[] = "/bin/bash";
static const struct account root = { .name = root_name, .home = root_home, .shell = root_shell };

static char **build(const char *const *given, size_t n, bool terminal)
{
    char **envp = NULL;
    CHECK_OK(envp_build((char *const *)(uintptr_t)given, n, &root, terminal, &envp));
    return envp;
}

TEST(a_command_without_env_gets_what_a_login_has)
{
    _cleanup_free_ char **envp = build(NULL, 0, false);
    CHECK_STR(envp_get(envp, "PATH"), ENVP_PATH);
    CHECK_STR(envp_get(envp, "HOME"), "/root");
    CHECK_STR(envp_get(envp, "USER"), "root");
    CHECK_STR(envp_get(envp, "LOGNAME"), "root");
    CHECK_STR(envp_get(envp, "SHELL"), "/bin/bash");
    CHECK(envp_get(envp, "TERM") == NULL);
}

TEST(a_terminal_has_a_type)
{
    _cleanup_free_ char **envp = build(NULL, 0, true);
    CHECK_STR(envp_get(envp, "TERM"), "xterm-256color");
}

TEST(the_last_of_a_name_wins_and_the_caller_wins_over_the_usual)
{
    static const char *const given[] = {
        "A=1", "HOME=/x", "AB=2", "A=3", "TERM=dumb", "A=", "B=y=z"
    };
    _cleanup_free_ char **envp = build(given, ARRAY_LEN(given), true);
    CHECK_STR(envp[0], "HOME=/x");
    CHECK_STR(envp[1], "AB=2");
    CHECK_STR(envp_get(envp, "A"), "");
    CHECK_STR(envp_get(envp, "B"), "y=z");
    CHECK_STR(envp_get(envp, "TERM"), "dumb");
    size_t n = 0;
    while (envp[n])
        n++;
    CHECK_EQ(n, 5 + 4); /* PATH, USER, LOGNAME, SHELL */
}

TEST(thousands_of_entries_with_one_name_become_one)
{
    const char *given[5000];
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        given[i] = i % 2 ? "X=odd" : "X=even";
    _cleanup_free_ char **envp = build(given, ARRAY_LEN(given), false);
    CHECK_STR(envp[0], "X=odd");
    CHECK(strncmp(envp[1], "PATH=", 5) == 0);
}
