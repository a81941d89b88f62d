/* term - the user's terminal, and the signals that come with it.
 *
 * Raw mode is a debt: once taken, every way out of the program pays it back (return, exit, and
 * the signals that kill). Caught signals arrive as bytes on a pipe, so that a poll loop reads
 * them like anything else. One terminal and one set of signals per program, hence no object. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct err;

int term_raw(struct err *err); /* stdin's terminal, until term_restore */
void term_restore(void);       /* fine to call at any time */
bool term_is_raw(void);
/* Ask a question on stderr and read a line of stdin's terminal without showing it, less its end. The
 * terminal is as before when this returns and when a signal ends the program. */
int term_ask_hidden(const char *question, char *out, size_t size, struct err *err);
/* The size of the terminal on stdout, stdin or stderr; false and 24x80 where there is none. */
bool term_size(unsigned *ret_rows, unsigned *ret_cols);
size_t term_width(int fd); /* columns of fd's terminal, 0 for what is none */

/* Catch INT, TERM, HUP, QUIT and, `with_size`, WINCH, TSTP and CONT; ignore PIPE. */
int signals_catch(bool with_size, struct err *err);
int signals_fd(void);   /* readable when one came; -1 before signals_catch */
int signals_next(void); /* a signal's number, 0 when there is none */
