/* warren - the command line of Warren. What it can do is in commands.c. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
