/* The JSON bodies of the file operations, up to the point where a sandbox would be asked. */
#include <stdint.h>

#include "front/native/files_ops.c" /* its tables and its reading are its own */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        enum wire_file_op op;
        const struct field *fields;
        size_t n;
    } asks[] = {
        { WIRE_FILE_MKDIR, mkdir_fields, ARRAY_LEN(mkdir_fields) },
        { WIRE_FILE_MOVE, move_fields, ARRAY_LEN(move_fields) },
        { WIRE_FILE_COPY, copy_fields, ARRAY_LEN(copy_fields) },
        { WIRE_FILE_CHMOD, chmod_fields, ARRAY_LEN(chmod_fields) },
        { WIRE_FILE_CHOWN, chown_fields, ARRAY_LEN(chown_fields) },
        { WIRE_FILE_SYMLINK, symlink_fields, ARRAY_LEN(symlink_fields) },
        { WIRE_FILE_TRUNCATE, truncate_fields, ARRAY_LEN(truncate_fields) },
        { WIRE_FILE_XATTR_SET, xattr_fields, ARRAY_LEN(xattr_fields) },
    };
    struct request req = { .fd = -1, .body = BUF_INIT(REQUEST_JSON_MAX) };
    if (buf_append(&req.body, data, size) < 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        struct body b = { 0 };
        struct file_ask ask = { 0 };
        struct err err = ERR_INIT;
        if (read_body(&req, asks[i].op, asks[i].fields, asks[i].n, &b, &ask, &err) >= 0 &&
            (!ask.paths || !ask.paths[0] || !ask.paths[0][0]))
            __builtin_trap(); /* an operation always has a path */
        body_done(&b);
    }
    buf_done(&req.body);
    return 0;
}
