/* confine - give up everything that reading and writing a few descriptors does not need.
 *
 * What comes after parses bytes of strangers: it may compute, use memory, read and write what is
 * open, and end. Nothing it could open, start, or connect to. */
#pragma once
#include "base/err.h"

int confine(struct err *err);
