/* lineage - checkpoints in the order of a drawn tree.
 *
 * A checkpoint with one successor has it right below; where ways part, each begins with a dot of its own, further
 * to the right. So a hundred in a row are a straight line. Works on the API's objects; what has no
 * parent in the list is a root. Draws nothing itself. */
#pragma once
#include <jansson.h>
#include <stddef.h>

struct lineage_row {
    const json_t *checkpoint; /* borrowed */
    char *stem;               /* what stands before it: "│ ├─● " */
    size_t root;              /* which tree, counted from 0 */
};

/* As many rows as the list has members, each member once. The caller frees with lineage_free. */
struct lineage_row *lineage_draw(const json_t *checkpoints);
void lineage_free(struct lineage_row *rows, size_t n);
