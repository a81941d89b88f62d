#include "cli/attack/attack.h"

const struct attempt_table attack_life = { NULL, 0 };
