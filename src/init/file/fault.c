#include "init/file/fault.h"

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"

static const struct {
    int code;
    struct fault fault;
} faults[] = {
    { ENOENT, { FAIL_FILE_NOT_FOUND, "does not exist" } },
    { EEXIST, { FAIL_FILE_EXISTS, "is there already" } },
    { ENOTDIR, { FAIL_NOT_A_DIRECTORY, "is not a directory, or one on the way to it is not" } },
    { EISDIR, { FAIL_IS_A_DIRECTORY, "is a directory" } },
    { ENXIO, { FAIL_NOT_A_FILE, "is not a regular file" } },
    { ENODEV, { FAIL_NOT_A_FILE, "is not a regular file" } },
    { ESPIPE, { FAIL_NOT_A_FILE, "is not a regular file" } },
    { EACCES, { FAIL_PERMISSION_DENIED, "is not permitted to this user" } },
    { EPERM, { FAIL_PERMISSION_DENIED, "is not permitted to this user" } },
    { EROFS, { FAIL_READ_ONLY, "is on a read-only filesystem" } },
    { ENOTEMPTY, { FAIL_DIRECTORY_NOT_EMPTY, "is a directory that is not empty" } },
    { ENAMETOOLONG, { FAIL_NAME_TOO_LONG, "has a name or a path that is too long" } },
    { ELOOP, { FAIL_TOO_MANY_LINKS, "leads through too many symbolic links" } },
    { EMLINK, { FAIL_TOO_MANY_LINKS, "has too many hard links" } },
    { ENOSPC, { FAIL_NO_SPACE, "has no room: the disk or the sandbox's disk limit is full" } },
    { EDQUOT, { FAIL_NO_SPACE, "has no room: the sandbox's disk limit is reached" } },
    { EBUSY, { FAIL_FILE_BUSY, "is in use, as a mount point or by the system" } },
    { ETXTBSY, { FAIL_FILE_BUSY, "is a program that runs" } },
    { EFBIG, { FAIL_FILE_TOO_LARGE, "would be larger than a file may be" } },
    { EOVERFLOW, { FAIL_FILE_TOO_LARGE, "is larger than can be handled" } },
    { ENODATA, { FAIL_XATTR_NOT_FOUND, "has no such extended attribute" } },
    { EOPNOTSUPP, { FAIL_NOT_SUPPORTED, "is on a filesystem that cannot do this" } },
    { ENOSYS, { FAIL_NOT_SUPPORTED, "is on a filesystem that cannot do this" } },
    { EXDEV, { FAIL_NOT_SUPPORTED, "is on another filesystem" } },
    { ESTALE, { FAIL_FILE_CHANGED, "changed while it was worked on" } },
    { ENOMEM, { FAIL_OUT_OF_MEMORY, "needs more memory than there is" } },
    { EMFILE, { FAIL_NAME_TOO_LONG, "is too deep: too many directories would be open at once" } },
    { ENFILE, { FAIL_OUT_OF_MEMORY, "needs more open files than the system has" } },
    { E2BIG, { FAIL_FILE_TOO_LARGE, "has an extended attribute that is too large" } },
    { ERANGE, { FAIL_FILE_TOO_LARGE, "has an extended attribute that is too large" } },
    { EINVAL, { FAIL_INVALID_FIELD, "is not something this can be done to" } },
    { EILSEQ, { FAIL_INVALID_FIELD, "has a name that its filesystem does not take" } },
};

const struct fault *fault_of(int code)
{
    static const struct fault other = { FAIL_NONE, "cannot be worked on: the system says no" };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        if (faults[i].code == code)
            return &faults[i].fault;
    return &other;
}
