/* warren.toml: any bytes are read or refused with a sentence; what is read has a line for each value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    json_t *root = NULL, *lines = NULL;
    struct err err = ERR_INIT;
    const char *name;
    json_t *v;
    if (toml_parse((const char *)p, n, &root, &lines, &err) < 0) {
        if (strncmp(err.msg, "line ", 5) != 0 || root || lines)
            abort();
        return 0;
    }
    json_object_foreach(root, name, v) {
        if (!json_object_get(lines, name))
            abort();
    }
    json_decref(root);
    json_decref(lines);
    return 0;
}
