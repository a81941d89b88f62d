/* banned - names that have a better spelling here. Force-included by the build. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef alloca
#pragma GCC poison strcpy strcat strncpy sprintf vsprintf strtok atoi atol gets alloca
