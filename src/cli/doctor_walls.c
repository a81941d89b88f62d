#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor_private.h"

#define CPU "/sys/devices/system/cpu/"
#define TEXT_MAX 4096
#define DAY_S 86400
#define OLD_DAYS 365 /* distributions close holes in their kernels every few weeks */

/* ---- what keeps sandboxes apart ---- */

static bool has_namespace(const char *kind)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    return access(path, F_OK) == 0;
}

/* Report a wall that the kernel has or lacks. */
static void wall(struct finding *f, bool up, enum finding_mark without, const char *held,
                 const char *how)
{
    finding_say(f, up ? FINDING_OK : without, "%s%s", up ? "" : "missing: ", held);
    if (!up)
        finding_fix(f, how);
}

static void look_users(struct finding *f)
{
    wall(f, has_namespace("user"), FINDING_FAIL,
         "a user namespace with 65,536 host ids of its own; root inside is nobody outside",
         "use a distribution's own kernel");
}

static void look_processes(struct finding *f)
{
    wall(f, has_namespace("pid") && has_namespace("ipc"), FINDING_FAIL,
         "pid and ipc namespaces, a bounding set of twelve capabilities",
         "use a distribution's own kernel");
}

static void look_calls(struct finding *f)
{
    char text[TEXT_MAX];
    doctor_read("/proc/sys/kernel/seccomp/actions_avail", text, sizeof(text));
    wall(f, doctor_has_word(text, "errno"), FINDING_FAIL,
         "a seccomp allow list: no namespaces, mounts, BPF, io_uring or odd sockets inside",
         "use a kernel with CONFIG_SECCOMP_FILTER, as distributions' own have");
}

static void look_view(struct finding *f)
{
    wall(f, has_namespace("mnt") && has_namespace("uts") && has_namespace("cgroup"), FINDING_FAIL,
         "mount, uts and cgroup namespaces; what counts for the whole machine is masked",
         "use a distribution's own kernel");
}

static void look_network(struct finding *f)
{
    wall(f, has_namespace("net"), FINDING_FAIL,
         "a network namespace with loopback alone; the broker is the one way out",
         "use a distribution's own kernel");
}

static void look_clocks(struct finding *f)
{
    wall(f, has_namespace("time"), FINDING_WARN,
         "a time namespace: the host's uptime does not show",
         "use a kernel with CONFIG_TIME_NS, as distributions' own have");
}

static void look_shares(struct finding *f)
{
    static const char *const kinds[] = { "memory", "cpu", "pids" };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (doctor_controller(kinds[i]) == 0) {
            wall(f, false, FINDING_FAIL, "control groups for memory, cpu and pids",
                 "boot with cgroup_enable=memory; mount cgroup2, as systemd does");
            return;
        }
    finding_say(f, FINDING_OK, "control groups v%d: memory, cpu, pids",
                doctor_controller("memory"));
}

/* ---- what weakens them ---- */

bool vulnerability_open(const char *text)
{
    return strncmp(text, "Vulnerable", strlen("Vulnerable")) == 0 ||
           strstr(text, "SMT vulnerable") != NULL;
}

static void look_mitigations(struct finding *f)
{
    char path[512], text[TEXT_MAX], open_ones[FINDING_TEXT_MAX / 2] = "";
    size_t n = 0, known = 0;
    DIR *d = opendir(CPU "vulnerabilities");
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), CPU "vulnerabilities/%s", e->d_name);
        known++;
        if (vulnerability_open(doctor_read(path, text, sizeof(text))) && n < sizeof(open_ones) - 1)
            n += (size_t)snprintf(open_ones + n, sizeof(open_ones) - n, " %s", e->d_name);
    }
    if (d)
        (void)closedir(d);
    if (!known) {
        finding_say(f, FINDING_WARN, "this kernel does not say which processor leaks are closed");
        finding_fix(f, "use a kernel that reports " CPU "vulnerabilities");
    } else if (open_ones[0]) {
        finding_say(f, FINDING_WARN, "the processor leaks between sandboxes by:%s", open_ones);
        finding_fix(f, "boot without mitigations=off (or with mitigations=auto,nosmt); update the "
                       "microcode: intel-microcode, amd64-microcode");
    } else {
        finding_say(f, FINDING_OK, "all %zu known processor leaks are closed or absent", known);
    }
}

static void look_smt(struct finding *f)
{
    char text[TEXT_MAX];
    if (strtol(doctor_read(CPU "smt/active", text, sizeof(text)), NULL, 10) != 1) {
        doctor_read("/proc/cpuinfo", text, sizeof(text));
        finding_say(f, FINDING_OK, "off: no two sandboxes share a core at one time%s",
                    doctor_has_word(text, "hypervisor") ? " (as far as a virtual machine can tell)"
                                                        : "");
        return;
    }
    finding_say(f, FINDING_WARN,
                "on: two sandboxes may run on one core at one time and time each other");
    finding_fix(f, "for tenants who do not trust each other: echo off > " CPU
                   "smt/control; for good, boot with nosmt");
}

static void look_ksm(struct finding *f)
{
    char text[TEXT_MAX];
    doctor_read("/sys/kernel/mm/ksm/run", text, sizeof(text));
    if (strtol(text, NULL, 10) != 1) {
        finding_say(f, FINDING_OK, "off: sandboxes share no pages of memory");
        return;
    }
    finding_say(f, FINDING_WARN, "on: by timing, a sandbox can tell which pages others have");
    finding_fix(f, "echo 2 > /sys/kernel/mm/ksm/run; disable ksmtuned");
}

/* Whether a swap device is in memory, or encrypted. */
static bool swap_is_closed(const char *device)
{
    char path[128], text[128];
    const char *name = strrchr(device, '/');
    if (name && strncmp(name, "/zram", strlen("/zram")) == 0)
        return true;
    if (!name || strncmp(name, "/dm-", strlen("/dm-")) != 0)
        return false;
    (void)snprintf(path, sizeof(path), "/sys/block%.32s/dm/uuid", name);
    return strncmp(doctor_read(path, text, sizeof(text)), "CRYPT-", strlen("CRYPT-")) == 0;
}

static void look_swap(struct finding *f)
{
    char text[TEXT_MAX], *save = NULL;
    size_t count = 0;
    doctor_read("/proc/swaps", text, sizeof(text));
    char *line = strtok_r(text, "\n", &save); /* skip the headings */
    while (line && (line = strtok_r(NULL, "\n", &save))) {
        line[strcspn(line, " \t")] = '\0';
        count++;
        if (swap_is_closed(line))
            continue;
        finding_say(f, FINDING_WARN, "%.80s: secrets and sandboxes' memory reach the disk in clear",
                    line);
        finding_fix(f, "swapoff -a; or swap to zram, or to an encrypted device (crypttab: swap)");
        return;
    }
    finding_say(f, FINDING_OK, count ? "in memory or encrypted" : "none: memory stays in memory");
}

static void look_bpf(struct finding *f)
{
    char text[TEXT_MAX];
    doctor_read("/proc/sys/kernel/unprivileged_bpf_disabled", text, sizeof(text));
    if (!text[0]) {
        finding_say(f, FINDING_OK, "no BPF in this kernel, or not for users without rights");
        return;
    }
    if (strtol(text, NULL, 10) != 0) {
        finding_say(f, FINDING_OK, "there for the keeper; closed to users without rights");
        return;
    }
    finding_say(f, FINDING_WARN, "any user of this host may load BPF programs (sandboxes may not)");
    finding_fix(f, "sysctl -w kernel.unprivileged_bpf_disabled=1");
}

/* Sandboxes can make no user namespaces; a user of the host could. */
static void look_userns(struct finding *f)
{
    char debian[16], ubuntu[16];
    doctor_read("/proc/sys/kernel/unprivileged_userns_clone", debian, sizeof(debian));
    doctor_read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", ubuntu, sizeof(ubuntu));
    finding_say(f, FINDING_OK, "sandboxes can make none; users of this host %s",
                debian[0] == '0'   ? "cannot either (unprivileged_userns_clone=0)"
                : ubuntu[0] == '1' ? "only with an AppArmor profile"
                                   : "can");
}

static void look_lsm(struct finding *f)
{
    char text[TEXT_MAX];
    doctor_read("/sys/kernel/security/lsm", text, sizeof(text));
    text[strcspn(text, "\n")] = '\0';
    if (!text[0])
        finding_say(f, FINDING_WARN, "cannot see which security modules are on");
    else if (!doctor_has_word(text, "landlock"))
        finding_say(f, FINDING_WARN, "%.100s: without landlock", text);
    else
        finding_say(f, FINDING_OK, "%.150s", text);
    if (f->mark != FINDING_OK)
        finding_fix(f, text[0] ? "boot with lsm=landlock, and the present list behind it"
                               : "mount -t securityfs securityfs /sys/kernel/security");
}

static long days_of(int year, int month, int day)
{
    struct tm tm = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
    time_t at = timegm(&tm);
    return year < 1991 || year > 9999 || at < 0 ? -1 : (long)(at / DAY_S);
}

long kernel_built(const char *version)
{
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    int year, month, day;
    char name[4];
    const char *bracket = strrchr(version, '(');
    if (bracket && sscanf(bracket, "(%4d-%2d-%2d)", &year, &month, &day) == 3)
        return days_of(year, month, day);
    for (const char *p = version; (p = strchr(p, ' ')); p++)
        if (sscanf(p, " %*3s %3s %2d %*8s %*s %4d", name, &day, &year) == 3)
            for (int i = 0; i < 12; i++)
                if (strcmp(name, months[i]) == 0)
                    return days_of(year, i + 1, day);
    return -1;
}

static void look_age(struct finding *f)
{
    struct utsname u;
    long built = uname(&u) < 0 ? -1 : kernel_built(u.version);
    long age = built < 0 ? 0 : (long)(time(NULL) / DAY_S) - built;
    if (access("/run/reboot-required", F_OK) == 0) {
        finding_say(f, FINDING_WARN, "an update waits for a restart of the machine");
        finding_fix(f, "reboot");
    } else if (age > OLD_DAYS) {
        finding_say(f, FINDING_WARN, "built %ld days ago: holes found since are open", age);
        finding_fix(f, "apt-get update && apt-get dist-upgrade, then reboot");
    } else if (built < 0) {
        finding_say(f, FINDING_OK, "the kernel does not say when it was built");
    } else {
        finding_say(f, FINDING_OK, "built %ld days ago", age);
    }
}

const struct check doctor_walls[] = {
    { "users", look_users },
    { "processes", look_processes },
    { "system calls", look_calls },
    { "view", look_view },
    { "clocks", look_clocks },
    { "network", look_network },
    { "shares", look_shares },
    { "mitigations", look_mitigations },
    { "smt", look_smt },
    { "ksm", look_ksm },
    { "swap", look_swap },
    { "kernel age", look_age },
    { "bpf", look_bpf },
    { "user namespaces", look_userns },
    { "lsm", look_lsm },
};
const size_t doctor_walls_n = ARRAY_LEN(doctor_walls);
