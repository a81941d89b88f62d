#include "keeper/memory_meta.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

#define NAME "0123456789abcdef0123456789abcdef"
#define VOLUME "vol00000000000000001"
#define BOOT "0f6f6f9c-3a0e-4b1f-9d55-0123456789ab"

static const char mountinfo[] =
    "111 70 0:1636 / / rw,nodev,relatime - overlay warren rw,lowerdir=/proc/self/fd/50\n"
    "155 111 0:1544 / /dev ro,nosuid,noexec,relatime - tmpfs none rw,size=64k,mode=755\n"
    "156 111 0:1867 / /proc rw,nosuid,nodev,noexec,relatime - proc none rw\n"
    "159 155 0:1870 / /dev/shm rw,nosuid,nodev,relatime - tmpfs none rw,size=1048576k\n"
    "161 156 0:1546 /empty /proc/acpi ro,nosuid,nodev,noexec,relatime - tmpfs none rw\n"
    "165 156 0:1546 /nothing /proc/keys ro,nosuid,nodev,noexec,relatime - tmpfs none rw\n"
    "166 111 0:40 /volumes/" VOLUME " /my\\040data ro,nosuid,nodev shared:1 - btrfs /dev/loop0 rw\n"
    "167 162 0:1547 /" VOLUME " /proc/sys/kernel/random/boot_id ro,nosuid - tmpfs none rw\n"
    "168 156 0:1547 /" VOLUME ".stat /proc/stat ro,nosuid - tmpfs none rw\n"
    "169 156 0:1546 /loadavg /proc/loadavg ro,nosuid - tmpfs none rw\n"
    "170 111 0:1871 / /sys ro,nosuid - sysfs none rw\n"
    "171 170 0:1546 /class /sys/class ro,nosuid - tmpfs none rw\n"
    "172 171 0:1871 /class/net /sys/class/net ro,nosuid - sysfs none rw\n";

static int read_text(struct meta *m, const char *text, struct err *err)
{
    char copy[2048];
    (void)snprintf(copy, sizeof(copy), "%s", text);
    return meta_read_mounts(m, copy, err);
}

TEST(meta_tells_the_hosts_mounts_from_the_cells_own)
{
    _cleanup_(meta_done) struct meta m = META_INIT;
    CHECK_OK(read_text(&m, mountinfo, NULL));
    CHECK_EQ(m.nmounts, 8);
    CHECK_EQ(m.mounts[0].kind, META_DEV);
    CHECK_EQ(m.mounts[1].kind, META_EMPTY);
    CHECK_EQ(m.mounts[2].kind, META_NOTHING);
    CHECK_STR(m.mounts[2].path, "/proc/keys");
    CHECK_EQ(m.mounts[3].kind, META_VOLUME);
    CHECK_STR(m.mounts[3].path, "/my data");
    CHECK_STR(m.mounts[3].volume, VOLUME);
    CHECK(m.mounts[3].read_only);
    CHECK_EQ(m.mounts[4].kind, META_BOOT);
    CHECK_EQ(m.mounts[5].kind, META_STAT);
    CHECK_EQ(m.mounts[6].kind, META_SHOWN);
    CHECK_EQ(m.mounts[7].kind, META_SHOWN);
    CHECK_STR(m.mounts[7].path, "/sys/class");
    CHECK(meta_has(&m, META_BOOT) && !meta_has(&m, META_SHM));
}

TEST(meta_knows_a_sys_that_is_a_stand_in)
{
    _cleanup_(meta_done) struct meta m = META_INIT;
    CHECK_OK(read_text(&m, "170 111 0:1546 /sys /sys ro,nosuid - tmpfs none rw\n", NULL));
    CHECK_EQ(m.nmounts, 1);
    CHECK_EQ(m.mounts[0].kind, META_SHOWN);
    CHECK_STR(m.mounts[0].path, "/sys");
}

TEST(meta_names_a_mount_that_cannot_be_brought_back)
{
    static const char *const texts[] = {
        "1 2 0:3 / /bucket rw - fuse.s3fs s3fs rw\n",
        "1 2 0:3 / /tmp rw - tmpfs none rw\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        _cleanup_(meta_done) struct meta m = META_INIT;
        struct err err = ERR_INIT;
        CHECK_EQ(read_text(&m, texts[i], &err), -ENOTSUP);
        CHECK(strstr(err.msg, i == 0 ? "/bucket" : "/tmp") != NULL);
    }
}

TEST(meta_reads_what_it_printed)
{
    _cleanup_(meta_done) struct meta m = META_INIT, back = META_INIT;
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    CHECK_OK(read_text(&m, mountinfo, NULL));
    CHECK_OK(meta_add_shm(&m));
    CHECK_OK(meta_add_member(&m, 7, 42));
    memcpy(m.name, NAME, sizeof(NAME));
    m.steered = true;
    m.uptime_s = 86400;
    m.kib = 4096;
    memcpy(m.id, VOLUME, sizeof(VOLUME));
    memcpy(m.boot, BOOT, sizeof(BOOT));
    CHECK_OK(meta_print(&m, &b));
    CHECK_OK(meta_parse(b.data, &back, NULL));
    CHECK_EQ(back.nmounts, 9);
    CHECK_EQ(back.mounts[4].kind, META_BOOT);
    CHECK_EQ(back.mounts[5].kind, META_STAT);
    CHECK_EQ(back.mounts[6].kind, META_SHOWN);
    CHECK_STR(back.mounts[6].path, "/proc/loadavg");
    CHECK_EQ(back.mounts[8].kind, META_SHM);
    CHECK_EQ(back.uptime_s, 86400);
    CHECK_EQ(back.kib, 4096);
    CHECK_STR(back.mounts[3].path, "/my data");
    CHECK(back.mounts[3].read_only && back.steered);
    CHECK_EQ(back.nmembers, 1);
    CHECK_EQ(back.members[0].family, 7);
    CHECK_EQ(back.members[0].pid, 42);
    CHECK_STR(back.name, NAME);
    CHECK_STR(back.id, VOLUME);
    CHECK_STR(back.boot, BOOT);
}

TEST(meta_refuses_what_is_not_a_description)
{
    static const char *const texts[] = {
        "",
        "mount dev /dev\n",                    /* no name */
        "name " NAME "x\n",                    /* too long */
        "name " NAME "\nmount thing /x\n",     /* no such kind */
        "name " NAME "\nmount dev dev\n",      /* not a path */
        "name " NAME "\nvolume short rw /x\n", /* not an id */
        "name " NAME "\nvolume " VOLUME " maybe /x\n",
        "name " NAME "\nmember 1\n",
        "name " NAME "\nmember one two\n",
        "name " NAME "\nsteered 2\n",
        "name " NAME "\nuptime soon\n",
        "name " NAME "\nkib -1\n",
        "name " NAME "\nmount shown /etc/passwd\n", /* has no stand-in */
        "name " NAME "\nid x\n",
        "name " NAME "\nword\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char copy[256];
        struct meta m = META_INIT;
        (void)snprintf(copy, sizeof(copy), "%s", texts[i]);
        CHECK_EQ(meta_parse(copy, &m, NULL), -EPROTO);
    }
}
