#include "s3/xml.h"

#include <errno.h>

#include "base/check.h"

/* The texts of all closed elements, in brackets; or "!". */
static const char *read_all(const char *text)
{
    static char out[4096];
    struct xml x;
    int event;
    size_t n = 0;
    xml_init(&x, text, strlen(text));
    while ((event = xml_next(&x)) > XML_END)
        if (event == XML_CLOSE)
            n += (size_t)snprintf(out + n, sizeof(out) - n, "%s[%s]", x.names[x.depth], x.text);
    out[n] = '\0';
    return event < 0 ? "!" : out;
}

TEST(elements_and_their_text)
{
    CHECK_STR(read_all("<a/>"), "a[]");
    CHECK_STR(read_all("<?xml version='1.0'?>\n<a x=\"1>2\"><b>t</b> <c/></a>\n"), "b[t]c[]a[]");
    CHECK_STR(read_all("<a>&lt;&amp;&gt;&quot;&apos;&#65;&#x42;&#xe9;&#x1F600;</a>"),
              "a[<&>\"'AB\xc3\xa9\xf0\x9f\x98\x80]");
    CHECK_STR(read_all("<a><!-- <b> --><b >x</b ></a>"), "b[x]a[]");
}

TEST(what_is_not_such_a_document_is_refused)
{
    static const char *const bad[] = {
        "",
        "a",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "</a>",
        "<!DOCTYPE a><a/>",
        "<a>&b;</a>",
        "<a>&#0;</a>",
        "<a>&#xd800;</a>",
        "<a>&#9999999;</a>",
        "<a>&amp</a>",
        "<a><b></a></b>",
        "<a b=\"></a>",
        "<>",
        "<a><?p ?></a>",
        "<a/>x",
        "<a><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></a>",
        "<a>&#;</a>",
        "<a>&#x;</a>",
        "<a><![CDATA[x]]></a>",
        "<a <b/></a>",
        "<!-- ",
        "<?xml ",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_STR(read_all(bad[i]), "!");
    static const char open[] = { '<', 'a', '>' };
    char text[XML_TEXT_MAX + 16];
    memset(text, 'x', sizeof(text));
    memcpy(text, open, sizeof(open));
    memcpy(text + sizeof(text) - 5, "</a>", 5);
    CHECK_STR(read_all(text), "!");
}
