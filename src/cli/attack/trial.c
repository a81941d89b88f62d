#include <stdarg.h>
#include <string.h>

#include "cli/attack/attack.h"

_printf_(3, 0) static void say(struct trial *t, enum trial_verdict verdict, const char *fmt,
                               va_list ap)
{
    if (t->said && t->verdict == TRIAL_BROKE)
        return;
    t->said = true;
    t->verdict = verdict;
    (void)vsnprintf(t->why, sizeof(t->why), fmt, ap);
    for (char *p = t->why; (p = strpbrk(p, "\n\t"));)
        *p = ' ';
}

/* clang-format off */
#define SAYS(name_, verdict_)                             \
    void name_(struct trial *t, const char *fmt, ...)     \
    {                                                     \
        va_list ap;                                       \
        va_start(ap, fmt);                                \
        say(t, verdict_, fmt, ap);                        \
        va_end(ap);                                       \
    }
SAYS(trial_held, TRIAL_HELD)
SAYS(trial_broke, TRIAL_BROKE)
SAYS(trial_not_here, TRIAL_NOT_HERE)
SAYS(trial_error, TRIAL_ERROR)
/* clang-format on */
