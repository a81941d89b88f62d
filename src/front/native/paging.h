/* paging - `limit` and `cursor` of a list, and its `next_cursor`.
 *
 * A list is walked in the order of a text that is unique to each item (a name, or a time and an
 * id written so that they sort); a cursor is the text of the last item that was given, so paging
 * stays stable while items come and go. The caller walks from the beginning: fine for lists in
 * memory; one that comes from the database can start at `after` itself. */
#pragma once
#include <stdbool.h>

#include "base/json.h"
#include "front/http/request.h"

#define PAGING_KEY_MAX 512
#define PAGING_LIMIT 100
#define PAGING_LIMIT_MAX 1000

struct paging {
    unsigned limit;
    char after[PAGING_KEY_MAX]; /* empty: from the beginning */
    /* its own */
    unsigned taken;
    bool more;
    char last[PAGING_KEY_MAX];
};

/* Reads both parameters; name them in request_params_known too. */
int paging_read(const struct request *req, struct paging *ret_p, struct err *err);
/* Call with every item's text, in ascending order (strcmp): true if it belongs to this page. */
bool paging_takes(struct paging *p, const char *key);
/* The member `next_cursor`, behind the list. */
void paging_put(const struct paging *p, struct jout *j);
