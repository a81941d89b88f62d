/* typed - an API's refusal in the words of the command line.
 *
 * The API names members of its objects in its own units ('memory_mb'); a person typed an option
 * ('--memory 1k'). A refusal that begins with a member is told of the option that set it, if the
 * command has one, and its numbers as the option takes them. Pure functions over text. */
#pragma once

struct command;

/* The sentence to show; the caller's. A copy where no option of the command is meant. */
char *typed_sentence(const struct command *command, const char *message);

/* The word that a synopsis calls its operand `n` (from 0), the caller's; NULL: it needs no more. */
char *typed_operand(const char *synopsis, int n);
