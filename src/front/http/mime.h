/* mime - the type of a file by its name's ending. */
#pragma once

const char *mime_of(const char *path); /* application/octet-stream where nothing is known */
