/* xml - the elements of a small document, one after the other.
 *
 * What S3's answers are made of and no more: elements, text, the five entities and numbered characters. Attributes
 * and comments are skipped; a document type, a processing instruction after the first, a name, a text or a nesting
 * beyond what those answers have are refused, so nothing here expands or grows. */
#pragma once
#include <stddef.h>

#define XML_DEPTH_MAX 8
#define XML_NAME_MAX 64
#define XML_TEXT_MAX 2048 /* a key has 1024 bytes, a token or a message some more */

enum xml_event { XML_END, XML_OPEN, XML_CLOSE };

struct xml {
    const char *p; /* kept until the last call */
    size_t n, at;
    unsigned depth;
    char names[XML_DEPTH_MAX]
              [XML_NAME_MAX];    /* of what is open; names[depth - 1] is the innermost */
    char text[XML_TEXT_MAX + 1]; /* at XML_CLOSE: what stood in it since its last child */
    size_t text_len;
    int empty; /* an element without content was opened: its close comes next */
    int closed, done;
};

void xml_init(struct xml *x, const char *p, size_t n);
/* An enum xml_event, or -EBADMSG. After XML_CLOSE the element is in x->names[x->depth]. */
int xml_next(struct xml *x);
