"""What a cell showed, by MIME type, as one line of the stream."""

MEMBERS = {
    "text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
    "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
    "application/json": "json", "application/javascript": "javascript", "e2b/data": "data", "e2b/chart": "chart",
}
BINARY = ("png", "jpeg", "pdf")


def result_of(data, main):
    line = {"type": "result", "is_main_result": main}
    extra = {}
    for mime, value in data.items():
        name = MEMBERS.get(mime)
        if name is None:
            extra[mime] = value
            continue
        if isinstance(value, list) and name not in ("json", "data", "chart"):
            value = "".join(value)  # a text may come as its lines
        if name in BINARY and isinstance(value, str):
            value = value.replace("\n", "")
        line[name] = unquoted(value) if name == "text" else value
    line["extra"] = extra
    return line


def unquoted(text):
    """A text is shown as itself, not as it would be typed."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text
