"""A sandbox's files through the API, for the tests."""
import contextlib
import email.parser
import urllib.parse

from harness import DEADLINE, Reply


class Files:
    """Requests under /v1/sandboxes/{id}/files; paths and options become the query."""

    def __init__(self, api, who):
        self.api, self.who = api, who

    def url(self, sub="", path=None, **query):
        if path is not None:
            query["path"] = path
        text = urllib.parse.urlencode(query, doseq=True, safe="/")
        return f"/v1/sandboxes/{self.who}/files{sub}" + (f"?{text}" if text else "")

    def call(self, method, sub="", path=None, body=None, headers=None, timeout=DEADLINE * 2, **query):
        return self.api.call(method, self.url(sub, path, **query), body, headers=headers,
                             timeout=timeout)

    def ok(self, method, sub="", path=None, body=None, headers=None, **query):
        reply = self.call(method, sub, path, body, headers, **query)
        assert 200 <= reply.status < 300, f"{method} {sub} {path}: {reply}"
        return reply.json if reply.body else None

    def refused(self, status, code, method, sub="", path=None, body=None, headers=None, **query):
        return self.api.refused(status, code, method, self.url(sub, path, **query), body,
                                headers=headers)

    def put(self, path, data=b"", headers=None, **query):
        return self.ok("PUT", "", path, data, headers, **query)

    def get(self, path, headers=None, **query):
        reply = self.call("GET", "", path, headers=headers, **query)
        assert reply.status in (200, 206), f"GET {path}: {reply}"
        return reply.body

    def stat(self, path, **query):
        return self.ok("GET", "/stat", path, **query)

    def names(self, path, **query):
        return [e["name"] for e in self.ok("GET", "/list", path, **query)["entries"]]

    def post(self, sub, **body):
        return self.ok("POST", sub, body=body)

    def exists(self, path):
        return self.call("GET", "/stat", path, follow="false").status == 200

    def raw(self, method, sub="", path=None, headers=None, **query):
        """A connection with the head of a request sent: the body is the caller's."""
        connection = self.api.connect(DEADLINE * 2)
        connection.putrequest(method, self.url(sub, path, **query))
        for name, value in self.api.headers(headers).items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection

    def workers(self):
        """Pids, inside, of what works on files at this moment."""
        return self.api.out(self.who, "grep -l warren-file /proc/[0-9]*/comm 2>/dev/null || true").split()

    def read_many(self, paths, **body):
        """{name: bytes or error code} of a bulk read."""
        reply = self.call("POST", "/read", body={"paths": list(paths), **body})
        assert reply.status == 200, reply
        return parts_of(reply)


def parts_of(reply):
    head = f"Content-Type: {reply.headers['Content-Type']}\r\n\r\n".encode("latin-1")
    message = email.parser.BytesParser().parsebytes(head + reply.body)
    assert message.is_multipart(), reply
    found = {}
    for part in message.get_payload():
        error = part.get("X-Warren-Error")
        found[part.get_filename()] = error or part.get_payload(decode=True)
    return found


def form_of(files, boundary="a-boundary-of-the-tests"):
    """A multipart/form-data body: files is a list of (path, bytes[, mode])."""
    out = []
    for path, data, *mode in files:
        out.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
                   f'filename="{path}"\r\n'.encode())
        if mode:
            out.append(f"X-Mode: {mode[0]}\r\n".encode())
        out.append(b"\r\n" + data + b"\r\n")
    out.append(f"--{boundary}--\r\n".encode())
    return b"".join(out), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def finish(connection):
    response = connection.getresponse()
    with contextlib.closing(connection):
        return Reply(response.status, response.headers, response.read())
