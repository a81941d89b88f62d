"""The frames of src/wire/wire.h, for tests that talk to a sandbox's init on its own socket.

The numbers are read from the header, so that they cannot drift apart.
"""
import re
import socket
import struct

from harness import ROOT


def enums(header="wire.h"):
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "src/wire" / header).read_text(), flags=re.S)
    numbers = {}
    for body in re.findall(r"enum \w+ \{(.*?)\}", text, flags=re.S):
        at = -1
        for member in filter(None, (m.strip() for m in body.split(","))):
            name, _, value = (p.strip() for p in member.partition("="))
            n, _, shift = value.partition("<<")
            at = int(n) << int(shift or 0) if value else at + 1
            numbers[name] = at
    return numbers


N = enums()
TAGS = {v: k[7:].lower() for k, v in N.items() if k.startswith("WIRE_T_")}
TYPES = {N["WIRE_" + t]: t for t in ("ENTRY", "DATA", "MATCH", "CHANGE", "SKIPPED", "OK", "ERROR")}
TEXT = {"path", "to", "owner", "group", "link", "etag", "after", "text", "what", "message", "user"}


def field(tag, value):
    if isinstance(value, int):
        value = struct.pack("<Q", value)
    elif isinstance(value, str):
        value = value.encode()
    return struct.pack("<BI", N["WIRE_T_" + tag.upper()], len(value)) + value


def fields(**values):
    out = b""
    for tag, value in values.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            out += field(tag, one)
    return out


def frame(kind, payload=b""):
    return struct.pack("<IBBHQ", len(payload), N["WIRE_" + kind], 0, 0, 0) + payload


class File:
    """One FILE operation. Iterating gives (kind, payload or fields) up to OK or ERROR."""

    def __init__(self, daemon, box, op, **values):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.sock.connect(str(daemon.run / "cells" / box / "init.sock"))
        flags = 0
        for name in values.pop("flags", "").split():
            flags |= N["WIRE_F_" + name.upper()]
        self.request = frame("FILE", fields(op=N["WIRE_FILE_" + op.upper()], flags=flags, **values))
        self.sent = False

    def send(self, *frames):
        """The request and what follows it, in one write: what init reads past the first frame."""
        first = b"" if self.sent else self.request
        self.sent = True
        self.sock.sendall(first + b"".join(frames))
        return self

    def exactly(self, n):
        parts = []
        while n:
            part = self.sock.recv(min(n, 1 << 20))
            if not part:
                raise EOFError("init closed the connection")
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def next(self):
        if not self.sent:
            self.send()
        n, kind = struct.unpack("<IBxxxQ", self.exactly(16))[:2]
        payload = self.exactly(n)
        kind = TYPES[kind]
        return kind, payload if kind == "DATA" else self.decode(payload)

    @staticmethod
    def decode(payload):
        found = {}
        while payload:
            tag, n = struct.unpack_from("<BI", payload)
            value, payload = payload[5:5 + n], payload[5 + n:]
            name = TAGS[tag]
            if name == "xattr":
                key, _, value = value.partition(b"\0")
                found.setdefault("xattrs", {})[key.decode()] = value
                continue
            found[name] = (value.decode(errors="surrogateescape") if name in TEXT
                           else struct.unpack("<Q", value)[0])
        return found

    def __iter__(self):
        while True:
            kind, body = self.next()
            yield kind, body
            if kind in ("OK", "ERROR"):
                self.close()
                return

    def close(self):
        self.sock.close()


def run(daemon, box, op, *frames, **values):
    """Everything that came, which ended well."""
    got = list(File(daemon, box, op, **values).send(*frames))
    assert got[-1][0] == "OK", got[-1]
    return got


def fails(daemon, box, op, *frames, **values):
    """The name of the failure."""
    got = list(File(daemon, box, op, **values).send(*frames))
    assert got[-1][0] == "ERROR", got[-1]
    return got[-1][1]["what"]


def entry(**values):
    return frame("ENTRY", fields(**values))
