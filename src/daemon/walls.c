#include "daemon/walls.h"

#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "confine/calls.h"
#include "confine/paths.h"
#include "confine/rights.h"
#include "daemon/child.h"
#include "daemon/options.h"

#define LOG_MODULE "warrend"

/* A list of refused calls, not of allowed ones: warrend runs SQLite, OpenSSL, libcurl and uacme,
 * whose calls change with the system's updates. None of them needs these, nor calls_refused, with
 * which a hijacked process would attack the kernel or its neighbours. */
static const char *const refused[] = {
    /* other processes */
    "ptrace",
    "process_vm_readv",
    "process_madvise",
    "pidfd_getfd",
    /* namespaces, mounts and roots */
    "unshare",
    "setns",
    "mount",
    "umount2",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "pivot_root",
    "chroot",
    "name_to_handle_at",
    /* parts of the kernel with a history */
    "bpf",
    "vmsplice",
    /* the machine */
    "sethostname",
    "setdomainname",
};

int walls_bound(struct err *err)
{
    return rights_bound(NULL, 0, err);
}

int walls_enter(const struct options *o, const char *data, const char *run, struct err *err)
{
    char archive[PATH_MAX];
    int r = child_program("warren-archive", archive, err);
    if (r < 0)
        return r;
    const struct paths_rule rules[] = {
        { data, true },
        { run, true },
        { "/tmp", true }, /* SQLite, when memory is short */
        { "/var/tmp", true },
        { "/dev/null", true },
        { "/dev", false },
        { "/usr", false }, /* libraries, zones, uacme */
        { "/bin", false },
        { "/sbin", false },
        { "/lib", false },
        { "/lib64", false },
        { "/etc", false },  /* names, resolvers, certificates */
        { "/run", false },  /* where /etc/resolv.conf often leads */
        { "/proc", false }, /* itself, and the machine's load */
        { "/sys", false },
        { dirname(archive), false }, /* the programs beside this one */
        { o->tls_certs, false },
        { o->archive_ca, false },
        { o->egress_ca, false },
        { getenv("SSL_CERT_FILE"), false },
        { getenv("SSL_CERT_DIR"), false },
        { getenv("CURL_CA_BUNDLE"), false },
    };
    r = paths_confine(rules, ARRAY_LEN(rules), false, err);
    if (r > 0)
        log_info("no Landlock in this kernel: warrend can reach every path that its user may");
    return r < 0 ? r : calls_refuse(refused, ARRAY_LEN(refused), err);
}
