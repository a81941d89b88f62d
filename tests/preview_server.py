"""A server for previews to lead to; runs inside a sandbox: preview_server.py PORT [ADDRESS]."""
import base64
import hashlib
import http.server
import json
import socket
import sys
import time
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while (n := int(self.rfile.readline().split(b";")[0], 16)) > 0:
                data += self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, data, **headers):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def echo(self):
        digest, n = hashlib.sha256(), 0
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = self.body()
            digest.update(data)
            n = len(data)
        else:
            left = int(self.headers.get("Content-Length", 0))
            while left > 0 and (piece := self.rfile.read(min(left, 1 << 16))):
                digest.update(piece)
                n += len(piece)
                left -= len(piece)
        self.reply(json.dumps({"method": self.command, "path": self.path, "n": n,
                               "sha256": digest.hexdigest(),
                               "connection": self.client_address[1],
                               "headers": [[k.lower(), v] for k, v in self.headers.items()]}
                              ).encode(), Content_Type="application/json")

    def big(self, n):
        self.send_response(200)
        self.send_header("Content-Length", str(n))
        self.end_headers()
        piece = bytes(range(256)) * 256
        while n > 0:
            self.wfile.write(piece[:n])
            n -= len(piece)

    def chunked(self, query):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for i in range(int(query.get("n", 3))):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(b"data: %d\n\n" % i), b"data: %d\n\n" % i))
            self.wfile.flush()
            if query.get("wait"):  # until the client has answered what it got, on another connection
                while not Handler.told > i:
                    time.sleep(0.005)
        self.wfile.write(b"0\r\n\r\n")

    told = 0

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept",
                         base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        while piece := self.rfile.read1(1 << 16):  # what comes goes back, frames or not
            self.wfile.write(piece)
            self.wfile.flush()

    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/big":
            return self.big(int(query["n"]))
        if url.path == "/chunked":
            return self.chunked(query)
        if url.path == "/think":
            for _ in range(int(query["times"])):
                time.sleep(1)
            return self.reply(b"thought")
        if url.path == "/told":
            Handler.told += 1  # and what else came with it is not read
            return self.reply(b"ok")
        if url.path == "/times-told":
            return self.reply(str(Handler.told).encode())
        if url.path == "/ws":
            return self.websocket()
        if url.path == "/until-end":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"all of it")
            self.close_connection = True
            return None
        if url.path == "/raw":  # the answer, byte for byte
            self.wfile.write(base64.b64decode(query["b64"].encode()))
            self.wfile.flush()
            self.close_connection = True
            return None
        return self.echo()

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_HEAD = do_PATCH = answer


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in (sys.argv + [""])[2] else socket.AF_INET
    request_queue_size = 128


Server((sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
