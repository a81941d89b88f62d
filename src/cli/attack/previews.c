#include "cli/attack/attack.h"

const struct attempt_table attack_previews = { NULL, 0 };
