/* remove - everything below a name, and the name. Follows no link; what cannot be removed is left,
 * and the first failure is the job's, but all the rest goes. */
#pragma once
#include "init/file/job.h"

int remove_tree(struct job *j, int dir, const char *name, const char *path);
