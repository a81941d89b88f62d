/* project - warren.toml: the sandbox that a directory wants, as its file describes it.
 *
 * The file is read strictly: what is unknown, or of another kind than its key takes, is refused with
 * its line. What it says becomes a struct shape, as the options of `warren create` do, and the rest of
 * what `warren up` does. Paths in it count from its own directory. Asks nobody. */
#pragma once
#include <jansson.h>

#include "cli/opts.h"
#include "cli/shape.h"

#define PROJECT_FILE "warren.toml"
#define PROJECT_PORTS_MAX 32

struct project {
    char *file, *dir; /* of the file; dir is where it lies */
    char *name;       /* the sandbox's */
    struct shape shape;
    const char *build, *dockerfile; /* NULL: the image is there already */
    char *image;          /* what it is called, or is to be called; NULL: the daemon's default */
    struct opt_list copy; /* "FROM:TO" */
    int64_t ports[PROJECT_PORTS_MAX];
    size_t nports;
    json_t *start; /* words; NULL: nothing is started */
    /* what the rest borrows from */
    json_t *root;
    char **made;
    size_t nmade;
};

/* file NULL: the one of this directory. The caller frees. */
int project_read(const char *file, struct project **ret_project, struct err *err);
void project_free(struct project *p);
DEFINE_FREEP(struct project *, project_free)

/* A name for a sandbox from a directory's; NULL: nothing of it can be one. The caller frees. */
char *project_name_of(const char *dir);
