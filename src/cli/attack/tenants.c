#include "cli/attack/attack.h"

const struct attempt_table attack_tenants = { NULL, 0 };
