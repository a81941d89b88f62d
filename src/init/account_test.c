#include "init/account.h"

#include <errno.h>

#include "base/check.h"

static const char passwd_text[] = "root:x:0:0:root:/root:/bin/bash\n"
                                  "broken line\n"
                                  "odd:x:notanumber:5::/:/bin/sh\n"
                                  "user:x:1000:1000:,,,:/home/user:/bin/zsh\n"
                                  "nohome:x:1001:50::\n"
                                  "4242:x:1002:1002::/digits:\n"
                                  "last:x:1003:1003::/last:/bin/sh";
static const char group_text[] = "root:x:0:\n"
                                 "sudo:x:27:user,other\n"
                                 "users:x:100:other,user\n"
                                 "user:x:1000:user\n"
                                 "near:x:101:user2,us\n"
                                 "docker:x:999:user";

static int resolve(const char *spec, struct account *a)
{
    return account_resolve(spec, (struct account_text){ passwd_text, sizeof(passwd_text) - 1 },
                           (struct account_text){ group_text, sizeof(group_text) - 1 }, a);
}

TEST(a_user_is_found_by_name_and_by_number)
{
    static const struct {
        const char *spec;
        int r;
        unsigned uid, gid;
        const char *name, *home, *shell;
    } cases[] = {
        { "", 0, 0, 0, "root", "/root", "/bin/bash" },
        { "root", 0, 0, 0, "root", "/root", "/bin/bash" },
        { "0", 0, 0, 0, "root", "/root", "/bin/bash" },
        { "user", 0, 1000, 1000, "user", "/home/user", "/bin/zsh" },
        { "1000", 0, 1000, 1000, "user", "/home/user", "/bin/zsh" },
        { "1000:27", 0, 1000, 27, "user", "/home/user", "/bin/zsh" },
        { "user:sudo", 0, 1000, 27, "user", "/home/user", "/bin/zsh" },
        { "user:777", 0, 1000, 777, "user", "/home/user", "/bin/zsh" },
        { ":sudo", 0, 0, 27, "root", "/root", "/bin/bash" },
        { "5000", 0, 5000, 0, "5000", "/", "/bin/sh" },
        { "5000:6000", 0, 5000, 6000, "5000", "/", "/bin/sh" },
        { "4242", 0, 1002, 1002, "4242", "/digits", "/bin/sh" },
        { "nohome", 0, 1001, 50, "nohome", "/", "/bin/sh" },
        { "last", 0, 1003, 1003, "last", "/last", "/bin/sh" },
        { "nobody", -ENOENT, 0, 0, NULL, NULL, NULL },
        { "odd", -ENOENT, 0, 0, NULL, NULL, NULL },
        { "-1", -ENOENT, 0, 0, NULL, NULL, NULL },
        { "4294967296", -ENOENT, 0, 0, NULL, NULL, NULL },
        { "2147483648", -ENOENT, 0, 0, NULL, NULL, NULL },
        { "user:nogroup", -ESRCH, 0, 0, NULL, NULL, NULL },
        { "user:", -ESRCH, 0, 0, NULL, NULL, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(account_done) struct account a = { 0 };
        CHECK_EQ(resolve(cases[i].spec, &a), cases[i].r);
        if (cases[i].r < 0)
            continue;
        CHECK_EQ(a.uid, cases[i].uid);
        CHECK_EQ(a.gid, cases[i].gid);
        CHECK_STR(a.name, cases[i].name);
        CHECK_STR(a.home, cases[i].home);
        CHECK_STR(a.shell, cases[i].shell);
    }
}

TEST(supplementary_groups_are_those_that_list_the_user)
{
    _cleanup_(account_done) struct account a = { 0 };
    CHECK_OK(resolve("user", &a));
    CHECK_EQ(a.ngroups, 3); /* its own group 1000 is the primary one */
    CHECK_EQ(a.groups[0], 27);
    CHECK_EQ(a.groups[1], 100);
    CHECK_EQ(a.groups[2], 999);
}

TEST(an_explicit_group_is_the_only_one)
{
    _cleanup_(account_done) struct account a = { 0 };
    CHECK_OK(resolve("user:user", &a));
    CHECK_EQ(a.ngroups, 0);
}

TEST(root_exists_where_no_file_does)
{
    _cleanup_(account_done) struct account a = { 0 };
    struct account_text none = { "", 0 };
    CHECK_OK(account_resolve("root", none, none, &a));
    CHECK_EQ(a.uid, 0);
    CHECK_STR(a.home, "/");
    struct account b;
    CHECK_EQ(account_resolve("user", none, none, &b), -ENOENT);
}

TEST(an_owner_is_a_user_a_group_or_both)
{
    static const struct {
        const char *spec;
        int r;
        uid_t uid;
        gid_t gid;
    } cases[] = {
        { "user", 0, 1000, (gid_t)-1 },
        { "user:", 0, 1000, 1000 },
        { "user:sudo", 0, 1000, 27 },
        { ":sudo", 0, (uid_t)-1, 27 },
        { ":", 0, (uid_t)-1, (gid_t)-1 },
        { "4242", 0, 1002, (gid_t)-1 }, /* a login name of digits */
        { "77:88", 0, 77, 88 },
        { "none", -ENOENT, 0, 0 },
        { "user:none", -ESRCH, 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uid_t uid = 0;
        gid_t gid = 0;
        CHECK_EQ(account_owner(
                     cases[i].spec, (struct account_text){ passwd_text, sizeof(passwd_text) - 1 },
                     (struct account_text){ group_text, sizeof(group_text) - 1 }, &uid, &gid),
                 cases[i].r);
        CHECK_EQ(uid, cases[i].uid);
        CHECK_EQ(gid, cases[i].gid);
    }
}

TEST(a_number_has_a_name_where_the_file_says_so)
{
    struct account_text passwd = { passwd_text, sizeof(passwd_text) - 1 };
    char name[8];
    CHECK(account_name_of(passwd, 1000, name, sizeof(name)));
    CHECK_STR(name, "user");
    CHECK(!account_name_of(passwd, 5, name, sizeof(name)));
    CHECK(!account_name_of(passwd, 1000, name, 4)); /* does not fit */
}
