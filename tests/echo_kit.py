"""A server that says back what it was asked, in many forms: what a secret must not be seen through."""
import base64
import gzip
import hashlib
import json
import quopri
import re
import threading
import urllib.parse

FORMS = {
    "raw": lambda t: t,
    "base64": lambda t: base64.b64encode(t.encode()).decode(),
    "urlsafe": lambda t: base64.urlsafe_b64encode(t.encode()).decode(),
    "mime": lambda t: base64.encodebytes(t.encode()).decode(),
    "shifted": lambda t: base64.b64encode(b"x" + t.encode()).decode(),
    "percent": lambda t: urllib.parse.quote(t, safe=""),
    "all-percent": lambda t: "".join(f"%{b:02x}" for b in t.encode()),
    "json": lambda t: json.dumps({"head": t}),
    "unicode": lambda t: "".join(f"\\u{ord(c):04x}" for c in t),
    "html": lambda t: "".join(f"&#{ord(c)};" for c in t),
    "hex": lambda t: t.encode().hex(),
    "mixed-hex": lambda t: "".join(c.upper() if i % 3 else c for i, c in enumerate(t.encode().hex())),
    "colons": lambda t: t.encode().hex(":"),
    "hex-lines": lambda t: "\n".join(re.findall(".{1,60}", t.encode().hex())),
    "numbers": lambda t: json.dumps(list(t.encode())),
    "upper": lambda t: t.upper(),
    "percent-twice": lambda t: urllib.parse.quote(urllib.parse.quote(t, safe=""), safe=""),
    "json-twice": lambda t: json.dumps(json.dumps({"head": t})),
    "octal": lambda t: "".join(f"\\{b:03o}" for b in t.encode()),
    "quoted": lambda t: quopri.encodestring(t.encode()).decode(),
    "wrapped": lambda t: "\n".join(t[i:i + 40] for i in range(0, len(t), 40)),
    "base32": lambda t: base64.b32encode(t.encode()).decode(),
    "utf-16": lambda t: t.encode("utf-16-le").decode("latin-1"),
    "utf-16-be": lambda t: t.encode("utf-16-be").decode("latin-1"),
    "backwards": lambda t: t[::-1],
}


class Echo:
    """Requests that came are in `seen`: (head, body)."""

    def __init__(self):
        self.seen, self.stored, self.go = [], "", threading.Event()

    def __call__(self, s):
        with s.makefile("rb") as f:
            while head := self.read_head(f):
                body = b"" if "/lazy" in head.split()[1] else self.read_body(f, head)  # what it has no use for stays
                self.seen.append((head, body))
                if not self.answer(s, f, head, body):
                    return

    @staticmethod
    def read_head(f):
        lines = []
        while line := f.readline():
            if line == b"\r\n":
                return b"".join(lines).decode()
            lines.append(line)
        return None

    @staticmethod
    def read_body(f, head):
        if re.search(r"(?im)^transfer-encoding: chunked", head):
            body = b""
            while size := int(f.readline(), 16):
                body += f.read(size)
                f.readline()
            f.readline()
            return body
        length = re.search(r"(?im)^content-length: (\d+)", head)
        return f.read(int(length[1])) if length else b""

    @staticmethod
    def say(s, body, more="", status="200 OK"):
        s.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body)
        return True

    @staticmethod
    def chunk(s, piece):
        s.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))

    def answer(self, s, f, head, body):
        what = head.split()[1].split("?")[0].rsplit("/", 1)[-1]
        carried = (re.search(r"(?im)^(?:authorization|x-api-key): (.*)\r$", head) or ["", ""])[1]
        if what in FORMS:
            return self.say(s, FORMS[what](head).encode("latin-1" if what.startswith("utf-16") else "utf-8"), f"X-Echo: {carried}\r\n{carried}: x\r\n" if " " not in carried else "")
        if what == "chunks":
            s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for c in head.encode():
                self.chunk(s, bytes([c]))
            s.sendall(f"0\r\nX-Trailer: {carried}\r\n\r\n".encode())
            return True
        if what == "told":  # JSON, with what it carried in a member and in fields, at a status of one's choice
            told = json.dumps({"n": [1, 2.5, None, True], "carried": carried, "hex": carried.encode().hex()}).encode()
            return self.say(s, told, f"Content-Type: application/json; charset=utf-8\r\nSet-Cookie: k={carried[:12]}\r\n", "201 Made " + carried[:9])
        if what == "gzip":
            return self.say(s, gzip.compress(head.encode()), "Content-Encoding: gzip\r\n")
        if what == "redirect":
            return self.say(s, b"", f"Location: https://evil.test/?k={urllib.parse.quote(carried)}\r\n", f"302 {carried}")
        if what == "store":
            self.stored = carried
            return self.say(s, b"stored")
        if what == "stored":
            return self.say(s, self.stored.encode())
        if what == "events":
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            self.chunk(s, b"data: one\n\n")
            self.go.wait(60)
            self.chunk(s, b"data: two " + carried.encode() + b"\n\n")
            s.sendall(b"0\r\n\r\n")
            return True
        if what == "go":
            self.go.set()
            return self.say(s, b"")
        if what == "back":  # what it was told, as many servers do with this field
            number = re.search(r"(?im)^x-request-id: (.*)\r$", head)[1]
            return self.say(s, body, f"X-Request-Id: {number}\r\n")
        if what == "lazy":
            return self.say(s, b"ok")
        if what == "sum":
            return self.say(s, f"{len(body)} {hashlib.sha256(body).hexdigest()}".encode())
        if what == "close":  # an answer that ends with the connection
            s.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + head.encode())
            return False
        if what == "ws":
            accept = re.search(r"(?im)^sec-websocket-key: (.*)\r$", head)[1] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            accept = base64.b64encode(hashlib.sha1(accept.encode()).digest()).decode()
            s.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n"
                      "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n".encode())
            told = carried.encode()  # in two frames, the border in the middle of the secret
            s.sendall(bytes([0x01, 20]) + told[:20] + bytes([0x80, len(told) - 20]) + told[20:])
            start = f.read(2)
            mask, said = f.read(4), f.read(start[1] & 127)
            s.sendall(bytes([0x81, len(said)]) + bytes(b ^ mask[i % 4] for i, b in enumerate(said)))
            return False
        return self.say(s, b"what?", status="404 Not Found")


def serve(world, address, port, echo, context=None):
    def handle(s):
        with (context or world.context).wrap_socket(s, server_side=True) as tls:
            echo(tls)
            tls.unwrap()  # an end that is told: else the answer might have been cut
    return world.serve_each(address, port, handle)
