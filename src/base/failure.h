/* failure - every failure that a client can tell from another, in one table.
 *
 * A row: its name, which clients read and which never changes; the errno that callers inside see; how
 * HTTP and RPC (Connect and gRPC have the same codes) say it; and who may tell warrend of it. A
 * dialect chooses only the shape of an answer. Between processes a failure goes by its name: a
 * sandbox's init may be of an older version. Knows no client and no dialect. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
#define FAILURES(X) \
    /* enumerator, name, errno, HTTP status, RPC code, told by */ \
    X(INVALID_JSON, "invalid_json", EINVAL, 400, INVALID_ARGUMENT, US)                       \
    X(INVALID_FIELD, "invalid_field", EINVAL, 400, INVALID_ARGUMENT, ALL)                    \
    X(INVALID_NETWORK, "invalid_network", EINVAL, 400, INVALID_ARGUMENT, US)                 \
    X(INVALID_BINDING, "invalid_binding", EINVAL, 400, INVALID_ARGUMENT, US)                 \
    X(INVALID_PROXY, "invalid_proxy", EINVAL, 400, INVALID_ARGUMENT, US)                     \
    X(UNKNOWN_FIELD, "unknown_field", EINVAL, 400, INVALID_ARGUMENT, US)                     \
    X(MISSING_FIELD, "missing_field", EINVAL, 400, INVALID_ARGUMENT, INIT)                   \
    X(INVALID_QUERY, "invalid_query", EINVAL, 400, INVALID_ARGUMENT, US)                     \
    X(INVALID_PATH, "invalid_path", EINVAL, 400, INVALID_ARGUMENT, INIT)                     \
    X(INVALID_REQUEST, "invalid_request", EINVAL, 400, INVALID_ARGUMENT, US)                 \
    X(INVALID_IMAGE, "invalid_image", EINVAL, 400, INVALID_ARGUMENT, KEEPER)                 \
    X(INVALID_REFERENCE, "invalid_reference", EINVAL, 400, INVALID_ARGUMENT, US)             \
    X(UNSUPPORTED_PLATFORM, "unsupported_platform", ENOENT, 400, INVALID_ARGUMENT, US)       \
    X(INVALID_ARCHIVE, "invalid_archive", EINVAL, 400, INVALID_ARGUMENT, INIT)               \
    X(INVALID_DOCKERFILE, "invalid_dockerfile", EINVAL, 400, INVALID_ARGUMENT, US)           \
    X(INVALID_PATTERN, "invalid_pattern", EINVAL, 400, INVALID_ARGUMENT, INIT)               \
    X(NOT_A_DIRECTORY, "not_a_directory", ENOTDIR, 400, INVALID_ARGUMENT, INIT)              \
    X(IS_A_DIRECTORY, "is_a_directory", EISDIR, 400, INVALID_ARGUMENT, INIT)                 \
    X(NOT_A_FILE, "not_a_file", EINVAL, 400, INVALID_ARGUMENT, INIT)                         \
    X(NAME_TOO_LONG, "name_too_long", ENAMETOOLONG, 400, INVALID_ARGUMENT, INIT)             \
    X(TOO_MANY_LINKS, "too_many_links", ELOOP, 400, FAILED_PRECONDITION, INIT)               \
    X(NOT_SUPPORTED, "not_supported", EOPNOTSUPP, 400, UNIMPLEMENTED, INIT)                  \
    X(TOO_MANY_ENTRIES, "too_many_entries", E2BIG, 400, INVALID_ARGUMENT, INIT)              \
    X(FILE_TOO_LARGE, "file_too_large", EFBIG, 400, INVALID_ARGUMENT, INIT)                  \
    X(PROGRAM_NOT_FOUND, "program_not_found", ENOENT, 400, INVALID_ARGUMENT, INIT)           \
    X(PROGRAM_NOT_EXECUTABLE, "program_not_executable", EACCES, 400, INVALID_ARGUMENT, INIT) \
    X(WORKDIR_NOT_FOUND, "workdir_not_found", ENOENT, 400, INVALID_ARGUMENT, INIT)           \
    X(USER_NOT_FOUND, "user_not_found", ENOENT, 400, UNAUTHENTICATED, INIT)                  \
    X(ARGUMENT_TOO_LARGE, "argument_too_large", E2BIG, 400, INVALID_ARGUMENT, INIT)          \
    X(UNAUTHORIZED, "unauthorized", EACCES, 401, UNAUTHENTICATED, US)                        \
    X(FORBIDDEN, "forbidden", EPERM, 403, PERMISSION_DENIED, US)                             \
    X(QUOTA_EXCEEDED, "quota_exceeded", EDQUOT, 403, RESOURCE_EXHAUSTED, US)                 \
    X(PERMISSION_DENIED, "permission_denied", EACCES, 403, PERMISSION_DENIED, INIT)          \
    X(READ_ONLY, "read_only", EROFS, 403, PERMISSION_DENIED, INIT)                           \
    X(NOT_FOUND, "not_found", ENOENT, 404, NOT_FOUND, INIT)                                  \
    X(FILE_NOT_FOUND, "file_not_found", ENOENT, 404, NOT_FOUND, INIT)                        \
    X(XATTR_NOT_FOUND, "xattr_not_found", ENODATA, 404, NOT_FOUND, INIT)                     \
    X(WATCH_NOT_FOUND, "watch_not_found", ENOENT, 404, NOT_FOUND, US)                        \
    X(SANDBOX_NOT_FOUND, "sandbox_not_found", ENOENT, 404, NOT_FOUND, US)                    \
    X(SANDBOX_GONE, "sandbox_gone", ENOENT, 404, NOT_FOUND, US)                              \
    X(PROCESS_NOT_FOUND, "process_not_found", ESRCH, 404, NOT_FOUND, INIT)                   \
    X(IMAGE_NOT_FOUND, "image_not_found", ENOENT, 404, NOT_FOUND, KEEPER)                    \
    X(KEY_NOT_FOUND, "key_not_found", ENOENT, 404, NOT_FOUND, US)                            \
    X(TEAM_NOT_FOUND, "team_not_found", ENOENT, 404, NOT_FOUND, US)                          \
    X(TEMPLATE_NOT_FOUND, "template_not_found", ENOENT, 404, NOT_FOUND, US)                  \
    X(VOLUME_NOT_FOUND, "volume_not_found", ENOENT, 404, NOT_FOUND, KEEPER)                  \
    X(CHECKPOINT_NOT_FOUND, "checkpoint_not_found", ENOENT, 404, NOT_FOUND, KEEPER)          \
    X(LEASE_NOT_FOUND, "lease_not_found", ENOENT, 404, NOT_FOUND, US)                        \
    X(ARCHIVE_NOT_FOUND, "archive_not_found", ENOENT, 404, NOT_FOUND, US)                    \
    X(SECRET_NOT_FOUND, "secret_not_found", ENOENT, 404, NOT_FOUND, US)                      \
    X(TOKEN_NOT_FOUND, "token_not_found", ENOENT, 404, NOT_FOUND, US)                        \
    X(NAME_NOT_FOUND, "name_not_found", ENOENT, 404, NOT_FOUND, US)                          \
    X(BUILD_NOT_FOUND, "build_not_found", ENOENT, 404, NOT_FOUND, US)                        \
    X(UPLOAD_NOT_FOUND, "upload_not_found", ENOENT, 404, NOT_FOUND, US)                      \
    X(METHOD_NOT_ALLOWED, "method_not_allowed", EPERM, 405, UNIMPLEMENTED, US)               \
    X(NOT_ACCEPTABLE, "not_acceptable", EINVAL, 406, INVALID_ARGUMENT, US)                   \
    X(LEASE_LIMIT, "lease_limit", EBUSY, 409, FAILED_PRECONDITION, US)                       \
    X(NAME_TAKEN, "name_taken", EEXIST, 409, ALREADY_EXISTS, US)                             \
    X(AMBIGUOUS_NAME, "ambiguous_name", ENOTUNIQ, 409, FAILED_PRECONDITION, US)              \
    X(DIFFERENT_IMAGES, "different_images", EXDEV, 409, FAILED_PRECONDITION, US)             \
    X(ARCHIVE_CORRUPT, "archive_corrupt", EBADMSG, 409, FAILED_PRECONDITION, US)             \
    X(CHECKPOINT_AWAY, "checkpoint_away", EBUSY, 409, FAILED_PRECONDITION, US)               \
    X(SANDBOX_ARCHIVED, "sandbox_archived", EBUSY, 409, FAILED_PRECONDITION, US)             \
    X(NOT_A_FORK, "not_a_fork", EINVAL, 409, FAILED_PRECONDITION, US)                        \
    X(PARENT_GONE, "parent_gone", ENOENT, 409, FAILED_PRECONDITION, US)                      \
    X(BUILD_STARTED, "build_started", EALREADY, 409, FAILED_PRECONDITION, US)                \
    X(SANDBOX_NOT_RUNNING, "sandbox_not_running", ESRCH, 409, FAILED_PRECONDITION, KEEPER)   \
    X(SANDBOX_BUSY, "sandbox_busy", EBUSY, 409, UNAVAILABLE, ALL)                            \
    X(PROCESS_ENDED, "process_ended", ESRCH, 409, NOT_FOUND, INIT)                           \
    X(STDIN_CLOSED, "stdin_closed", EPIPE, 409, INTERNAL, INIT)                              \
    X(STDIN_FULL, "stdin_full", EAGAIN, 409, RESOURCE_EXHAUSTED, US)                         \
    X(IDEMPOTENCY_BUSY, "idempotency_busy", EBUSY, 409, FAILED_PRECONDITION, US)             \
    X(NOT_A_TERMINAL, "not_a_terminal", ENOTTY, 409, INTERNAL, INIT)                         \
    X(TOO_MANY_PROCESSES, "too_many_processes", EAGAIN, 409, RESOURCE_EXHAUSTED, INIT)       \
    X(OUT_OF_MEMORY, "out_of_memory", ENOMEM, 409, RESOURCE_EXHAUSTED, INIT)                 \
    X(IMAGE_IN_USE, "image_in_use", EBUSY, 409, FAILED_PRECONDITION, KEEPER)                 \
    X(VOLUME_IN_USE, "volume_in_use", EBUSY, 409, FAILED_PRECONDITION, US)                   \
    X(TEAM_NOT_EMPTY, "team_not_empty", EBUSY, 409, FAILED_PRECONDITION, US)                 \
    X(FILE_EXISTS, "file_exists", EEXIST, 409, ALREADY_EXISTS, INIT)                         \
    X(FILE_BUSY, "file_busy", ETXTBSY, 409, FAILED_PRECONDITION, INIT)                       \
    X(FILE_CHANGED, "file_changed", ESTALE, 409, FAILED_PRECONDITION, INIT)                  \
    X(DIRECTORY_NOT_EMPTY, "directory_not_empty", ENOTEMPTY, 409, FAILED_PRECONDITION, INIT) \
    X(TOO_MANY_WATCHES, "too_many_watches", EMFILE, 409, RESOURCE_EXHAUSTED, INIT)           \
    X(CHECKPOINT_IN_USE, "checkpoint_in_use", EBUSY, 409, FAILED_PRECONDITION, US)           \
    X(CANNOT_DUMP, "cannot_dump", EIO, 409, FAILED_PRECONDITION, KEEPER)                     \
    X(CANNOT_RESTORE, "cannot_restore", EIO, 409, FAILED_PRECONDITION, KEEPER)               \
    X(LIMIT_BELOW_USE, "limit_below_use", EBUSY, 409, FAILED_PRECONDITION, KEEPER)           \
    X(PRECONDITION_FAILED, "precondition_failed", ESTALE, 412, FAILED_PRECONDITION, INIT)    \
    X(BODY_TOO_LARGE, "body_too_large", EFBIG, 413, RESOURCE_EXHAUSTED, US)                  \
    X(LAYER_TOO_LARGE, "layer_too_large", EFBIG, 413, INVALID_ARGUMENT, KEEPER)              \
    X(RANGE_NOT_SATISFIABLE, "range_not_satisfiable", ERANGE, 416, OUT_OF_RANGE, INIT)       \
    X(IDEMPOTENCY_MISMATCH, "idempotency_mismatch", EINVAL, 422, FAILED_PRECONDITION, US)    \
    X(BUILD_FAILED, "build_failed", EINVAL, 422, FAILED_PRECONDITION, US)                    \
    X(REGISTRY_UNAUTHORIZED, "registry_unauthorized", EACCES, 424, UNAVAILABLE, US)          \
    X(REGISTRY_NOT_FOUND, "registry_not_found", ENOENT, 424, UNAVAILABLE, US)                \
    X(REGISTRY_FAILED, "registry_failed", EIO, 424, UNAVAILABLE, US)                         \
    X(BUCKET_UNREACHABLE, "bucket_unreachable", EHOSTUNREACH, 424, UNAVAILABLE, KEEPER)      \
    X(ARCHIVE_FAILED, "archive_failed", EIO, 424, UNAVAILABLE, US)                           \
    X(TEMPLATE_NOT_READY, "template_not_ready", ETIME, 424, UNAVAILABLE, US)                 \
    X(UPGRADE_REQUIRED, "upgrade_required", EPROTO, 426, FAILED_PRECONDITION, US)            \
    X(TOO_MANY_REQUESTS, "too_many_requests", EAGAIN, 429, RESOURCE_EXHAUSTED, US)           \
    X(MEMORY_UNSUPPORTED, "memory_unsupported", EOPNOTSUPP, 501, UNIMPLEMENTED, KEEPER)      \
    X(BUCKETS_UNSUPPORTED, "buckets_unsupported", EOPNOTSUPP, 501, UNIMPLEMENTED, KEEPER)    \
    X(ARCHIVE_UNAVAILABLE, "archive_unavailable", EOPNOTSUPP, 501, UNIMPLEMENTED, US)        \
    X(PORT_CLOSED, "port_closed", ECONNREFUSED, 502, UNAVAILABLE, US)                        \
    X(KEEPER_UNAVAILABLE, "keeper_unavailable", ENOTCONN, 503, UNAVAILABLE, US)              \
    X(CAPACITY, "capacity", ENOSPC, 503, UNAVAILABLE, KEEPER)                                \
    X(PORT_TIMEOUT, "port_timeout", ETIMEDOUT, 504, DEADLINE_EXCEEDED, US)                   \
    X(CHANGES_TIMEOUT, "changes_timeout", ETIMEDOUT, 504, DEADLINE_EXCEEDED, US)             \
    X(NO_SPACE, "no_space", ENOSPC, 507, RESOURCE_EXHAUSTED, ALL)                            \
    X(BLOB_BUSY, "blob_busy", EBUSY, 500, INTERNAL, US)                                      \
    X(CANCELLED, "cancelled", ECANCELED, 500, CANCELLED, US)                                 \
    X(CELL_EXISTS, "cell_exists", EEXIST, 500, INTERNAL, KEEPER)                             \
    X(SUPERSEDED, "superseded", ECANCELED, 500, INTERNAL, US)                                \
    X(UNSUPPORTED, "unsupported", ENOSYS, 500, INTERNAL, US)
/* clang-format on */

enum failure {
    FAIL_NONE, /* nothing that a client could tell apart: "internal", 500 */
#define FAILURE_ENUM(id_, name_, errno_, status_, rpc_, by_) FAIL_##id_,
    FAILURES(FAILURE_ENUM)
#undef FAILURE_ENUM
        FAILURES_END
};

/* As gRPC numbers them; Connect has names for the same. */
enum rpc_code {
    RPC_OK,
    RPC_CANCELLED,
    RPC_UNKNOWN,
    RPC_INVALID_ARGUMENT,
    RPC_DEADLINE_EXCEEDED,
    RPC_NOT_FOUND,
    RPC_ALREADY_EXISTS,
    RPC_PERMISSION_DENIED,
    RPC_RESOURCE_EXHAUSTED,
    RPC_FAILED_PRECONDITION,
    RPC_ABORTED,
    RPC_OUT_OF_RANGE,
    RPC_UNIMPLEMENTED,
    RPC_INTERNAL,
    RPC_UNAVAILABLE,
    RPC_DATA_LOSS,
    RPC_UNAUTHENTICATED,
};

/* Processes other than warrend that may name a failure. What an init says is a sandbox's word, so
 * it can tell of nothing that is not its to know. */
enum failure_teller {
    FAILURE_BY_US = 0,
    FAILURE_BY_INIT = 1,
    FAILURE_BY_KEEPER = 2,
    FAILURE_BY_ALL = FAILURE_BY_INIT | FAILURE_BY_KEEPER,
};

const char *failure_name(enum failure failure);
/* Whether clients learn its name; the others are between our own processes, "internal" to clients. */
bool failure_is_told(enum failure failure);
int failure_errno(enum failure failure); /* positive */
unsigned failure_status(enum failure failure);
enum rpc_code failure_rpc(enum failure failure);
/* From another process of the same version; FAIL_NONE for what no row is. */
enum failure failure_numbered(int number);
/* FAIL_NONE: nobody has heard of it, or that teller may not say it. */
enum failure failure_find(const char *name, size_t n, enum failure_teller teller);
