#include "base/oom.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/fd.h"

int oom_set(pid_t pid, int adj)
{
    char path[48], text[16];
    if (pid)
        (void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    else
        (void)snprintf(path, sizeof(path), "/proc/self/oom_score_adj");
    (void)snprintf(text, sizeof(text), "%d", adj);
    return fd_write_file_at(AT_FDCWD, path, text);
}
