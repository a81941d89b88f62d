/* doctor_private - shared by doctor.c (does this machine offer what is needed?) and
 * doctor_walls.c (what keeps sandboxes apart here?). */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "cli/doctor.h"

void finding_say(struct finding *f, enum finding_mark mark, const char *fmt, ...) _printf_(3, 4);
void finding_fix(struct finding *f, const char *text);

/* Read a small file as text, cut to `size`; "" if it cannot be read. Returns out. */
const char *doctor_read(const char *path, char *out, size_t size);
/* Whether `word` stands in text, between blanks, commas or line ends. */
bool doctor_has_word(const char *text, const char *word);
/* The version of control groups that has a controller: 2, 1, or 0 for neither. */
int doctor_controller(const char *name);
