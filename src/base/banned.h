/* banned - names that have a better spelling here. Force-included by the build. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef alloca
/* Under _FORTIFY_SOURCE clang has some of these as macros, which cannot be poisoned. */
#undef sprintf
#undef vsprintf
#undef strncpy
#undef strcpy
#undef strcat
#undef alloca
#pragma GCC poison strcpy strcat strncpy sprintf vsprintf strtok atoi atol gets alloca
