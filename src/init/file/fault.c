#include "init/file/fault.h"

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"

static const struct {
    int code;
    struct fault fault;
} faults[] = {
    { ENOENT, { "file_not_found", "does not exist" } },
    { EEXIST, { "file_exists", "is there already" } },
    { ENOTDIR, { "not_a_directory", "is not a directory, or one on the way to it is not" } },
    { EISDIR, { "is_a_directory", "is a directory" } },
    { ENXIO, { "not_a_file", "is not a regular file" } },
    { ENODEV, { "not_a_file", "is not a regular file" } },
    { ESPIPE, { "not_a_file", "is not a regular file" } },
    { EACCES, { "permission_denied", "is not permitted to this user" } },
    { EPERM, { "permission_denied", "is not permitted to this user" } },
    { EROFS, { "read_only", "is on a read-only filesystem" } },
    { ENOTEMPTY, { "directory_not_empty", "is a directory that is not empty" } },
    { ENAMETOOLONG, { "name_too_long", "has a name or a path that is too long" } },
    { ELOOP, { "too_many_links", "leads through too many symbolic links" } },
    { EMLINK, { "too_many_links", "has too many hard links" } },
    { ENOSPC, { "no_space", "has no room: the disk or the sandbox's disk limit is full" } },
    { EDQUOT, { "no_space", "has no room: the sandbox's disk limit is reached" } },
    { EBUSY, { "file_busy", "is in use, as a mount point or by the system" } },
    { ETXTBSY, { "file_busy", "is a program that runs" } },
    { EFBIG, { "file_too_large", "would be larger than a file may be" } },
    { EOVERFLOW, { "file_too_large", "is larger than can be handled" } },
    { ENODATA, { "xattr_not_found", "has no such extended attribute" } },
    { EOPNOTSUPP, { "not_supported", "is on a filesystem that cannot do this" } },
    { ENOSYS, { "not_supported", "is on a filesystem that cannot do this" } },
    { EXDEV, { "not_supported", "is on another filesystem" } },
    { ESTALE, { "file_changed", "changed while it was worked on" } },
    { ENOMEM, { "out_of_memory", "needs more memory than there is" } },
    { EMFILE, { "name_too_long", "is too deep: too many directories would be open at once" } },
    { ENFILE, { "out_of_memory", "needs more open files than the system has" } },
    { E2BIG, { "file_too_large", "has an extended attribute that is too large" } },
    { ERANGE, { "file_too_large", "has an extended attribute that is too large" } },
    { EINVAL, { "invalid_field", "is not something this can be done to" } },
    { EILSEQ, { "invalid_field", "has a name that its filesystem does not take" } },
};

const struct fault *fault_of(int code)
{
    static const struct fault other = { "internal", "cannot be worked on: the system says no" };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        if (faults[i].code == code)
            return &faults[i].fault;
    return &other;
}
