#include "keeper/filter.h"

#include "base/cleanup.h"
#include "confine/calls.h"

static const char *const refused[] = {
    /* parts of the kernel with a history */
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "perf_event_open", /* counting programs needs one, opened before (kernel/execs.h) */
    "add_key",
    "keyctl",
    "request_key",
    "modify_ldt",
    "lookup_dcookie",
    "fanotify_init",
    "open_by_handle_at", /* any file of a file system, whatever is mounted */
    /* other processes' memory; tracing stays, for kernel/inject.h */
    "process_vm_writev",
    "kcmp",
    "move_pages",
    "migrate_pages",
    /* the machine */
    "init_module",
    "finit_module",
    "delete_module",
    "create_module",
    "query_module",
    "get_kernel_syms",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "syslog",
    "iopl",
    "ioperm",
    "settimeofday",
    "stime",
    "clock_settime",
    "clock_settime64",
    "clock_adjtime",
    "clock_adjtime64",
    "adjtimex",
    "vhangup",
    "nfsservctl",
    "uselib",
    "sysfs",
    "_sysctl",
    "ustat",
};

int filter_enter(struct err *err)
{
    return calls_refuse_named(refused, ARRAY_LEN(refused), err);
}

const char *const *filter_refused(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(refused);
    return refused;
}
