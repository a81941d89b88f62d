"""Serves contexts on one port of the sandbox's loopback."""
import asyncio
import signal
import sys

from tornado.httpserver import HTTPServer

from .contexts import Contexts
from .server import BODY_MAX, HEAD_MAX, application

PORT = 49999


async def main(port):
    contexts = Contexts()
    await contexts.start()
    server = HTTPServer(application(contexts), max_header_size=HEAD_MAX, max_buffer_size=BODY_MAX)
    server.listen(port, "127.0.0.1")
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    server.stop()
    await contexts.close()


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else PORT))
