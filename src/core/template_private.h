/* template_private - what template.c and template_row.c share. */
#pragma once
#include "core/private.h"
#include "core/template.h"

struct store_template;

int template_save(struct core *core, const struct template *t, struct err *err);
int template_from_row(const struct store_template *row, struct template *ret_t); /* -EPROTO: none */
