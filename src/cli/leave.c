#include "cli/leave.h"

#define KEY_TELNET 0x1d /* Ctrl-] */
#define KEY_FIRST 0x10  /* Ctrl-P */
#define KEY_SECOND 0x11 /* Ctrl-Q */

bool leave_typed(struct leave *l, char *in, size_t n, char **ret_at, size_t *ret_n)
{
    char *at = l->held ? in : in + 1, *end = in + 1 + n;
    if (l->held)
        in[0] = KEY_FIRST;
    l->held = false;
    *ret_at = at;
    for (char *p = at; p < end; p++) {
        bool leaves = *p == KEY_TELNET || (*p == KEY_FIRST && p + 1 < end && p[1] == KEY_SECOND);
        l->held = *p == KEY_FIRST && p + 1 == end;
        if (leaves || l->held) {
            *ret_n = (size_t)(p - at);
            return leaves;
        }
    }
    *ret_n = (size_t)(end - at);
    return false;
}
