#include "cli/attack/attack.h"

const struct attempt_table attack_files = { NULL, 0 };
