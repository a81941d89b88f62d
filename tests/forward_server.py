"""A server on one port of a sandbox that does what the first line of a connection says."""
import hashlib
import socket
import socketserver
import struct
import sys


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        word, *rest = self.rfile.readline().decode().split()
        getattr(self, "do_" + word)(*rest)

    def do_echo(self):
        while piece := self.rfile.read1(65536):
            self.wfile.write(piece)

    def do_sum(self):
        """What came until its end, told when it is over: the client has half closed."""
        hashed, n = hashlib.sha256(), 0
        while piece := self.rfile.read1(65536):
            hashed.update(piece)
            n += len(piece)
        self.wfile.write(f"{n} {hashed.hexdigest()}\n".encode())

    def do_send(self, n):
        block = bytes(range(256)) * 256
        for _ in range(int(n) // len(block)):
            self.wfile.write(block)

    def do_end_first(self):
        """Our end at once; then what still comes."""
        self.wfile.write(b"bye\n")
        self.request.shutdown(socket.SHUT_WR)
        got = self.rfile.read()
        with open("/tmp/end-first", "wb") as f:
            f.write(got)

    def do_reset(self):
        self.wfile.write(b"half")
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.request.close()

    def do_how_it_ends(self):
        self.wfile.write(b"ok")
        try:
            while self.request.recv(65536):
                pass
            how = "end"
        except ConnectionResetError:
            how = "reset"
        with open("/tmp/how", "w") as f:
            f.write(how)

    def do_deaf(self):
        """Takes nothing until a file is there."""
        import os, time
        self.wfile.write(b"deaf\n")
        while not os.path.exists("/tmp/hear"):
            time.sleep(0.05)
        self.do_sum()


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
