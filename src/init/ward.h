/* ward - a child of ours that holds the terminals' master ends while we are parked.
 *
 * CRIU takes whoever it meets first with a terminal for the one that has it, and refuses a program that
 * opened it again as /dev/tty if that is another. It meets us first and our youngest child last. So
 * the youngest holds them, and gives them back; to us in a copy as well. */
#pragma once

int ward_begin(void); /* -errno: everything is as it was, and mostly fine */
void ward_end(void);
