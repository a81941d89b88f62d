/* save - an answer's bytes into a file that is there only when it is whole, or to standard output. */
#pragma once

struct cli;

/* GET path. output NULL or "-": standard output, which must not be a terminal. Returns the exit status. */
int save_answer(struct cli *cli, const char *path, const char *output);
