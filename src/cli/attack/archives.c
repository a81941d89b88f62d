#include "cli/attack/attack.h"

const struct attempt_table attack_archives = { NULL, 0 };
