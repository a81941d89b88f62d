#include "cli/attack/attack.h"

const struct attempt_table attack_egress = { NULL, 0 };
