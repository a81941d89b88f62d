#include "cli/attack/attack.h"

const struct attempt_table attack_volumes = { NULL, 0 };
