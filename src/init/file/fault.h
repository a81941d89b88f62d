/* fault - what an errno of a file operation is called, and how it is said of a path. Pure. */
#pragma once
#include "base/failure.h"

struct fault {
    enum failure failure;
    const char *says; /* what follows a quoted path */
};

const struct fault *fault_of(int code); /* never NULL */
