#include "cli/attack/attack.h"

const struct attempt_table attack_host = { NULL, 0 };
