/* doctor_private - what doctor.c (does this machine offer what is needed?) and doctor_walls.c (what keeps sandboxes apart
 * here?) share. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "cli/doctor.h"

void finding_say(struct finding *f, enum finding_mark mark, const char *fmt, ...) _printf_(3, 4);
void finding_fix(struct finding *f, const char *text);

/* A small file as text; "" where it cannot be read. Longer ones are cut. Returns out. */
const char *doctor_read(const char *path, char *out, size_t size);
/* Does `word` stand in text, between blanks, commas or line ends? */
bool doctor_has_word(const char *text, const char *word);
/* In which version of control groups a controller is found: 2, 1, or 0. */
int doctor_controller(const char *name);
