"""The HTTP side: each request is checked here, what runs is in contexts.py.

Failures are plain text. An execution is a line of JSON an event, all ASCII, so that a client may cut
the stream anywhere without cutting a character; silence is broken by keepalive lines.
"""
import asyncio
import base64
import json

from tornado import iostream, web

from .contexts import Refused

BODY_MAX = 256 * 1024 * 1024  # code with its data in it; the sandbox's memory is the real limit
HEAD_MAX = 2 * 1024 * 1024    # the sandbox's environment comes in a header
KEEPALIVE_S = 5


class Handler(web.RequestHandler):
    def initialize(self, contexts):
        self.contexts = contexts

    def prepare(self):
        """The sandbox's own variables, which the daemon knows: this server may be older than they are."""
        text = self.request.headers.get("E2b-Sandbox-Env")
        if text:
            try:
                self.contexts.adopt(environment(json.loads(base64.b64decode(text))))
            except ValueError:
                raise Refused(400, "the header E2b-Sandbox-Env is not understood")

    def write_error(self, status_code, exc_info=None, **kwargs):
        error = exc_info[1] if exc_info else None
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(error.message if isinstance(error, Refused) else self._reason)

    def body(self):
        try:
            value = json.loads(self.request.body or b"{}")
        except ValueError:
            raise Refused(400, "the body is not JSON")
        if not isinstance(value, dict):
            raise Refused(400, "the body is not a JSON object")
        return value

    def reply(self, value):
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(value))

    def log_exception(self, kind, value, trace):
        if not isinstance(value, Refused):
            super().log_exception(kind, value, trace)


def environment(value):
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(
            isinstance(v, str) and k and "=" not in k and "\0" not in k + v for k, v in value.items()):
        raise Refused(400, "env_vars must be an object of names and texts")
    return value


def text_of(body, name, default=None):
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(400, f"{name} must be a text")
    return default if value is None else value


class Health(Handler):
    def get(self):
        self.reply("OK")


class ContextList(Handler):
    def get(self):
        self.reply([c.describe() for c in self.contexts.all()])

    async def post(self):
        body = self.body()
        context = await self.contexts.create(text_of(body, "language", "python"), text_of(body, "cwd"))
        self.reply(context.describe())


class OneContext(Handler):
    async def delete(self, name):
        await self.contexts.remove(name)
        self.reply(None)


class Restart(Handler):
    async def post(self, name):
        await self.contexts.get(name).restart()
        self.reply(None)


class Execute(Handler):
    task = None

    async def post(self):
        body = self.body()
        code = text_of(body, "code")
        if code is None:
            raise Refused(400, "code is missing")
        env = environment(body.get("env_vars"))
        name, language = text_of(body, "context_id"), text_of(body, "language")
        if name and language:
            raise Refused(400, "Only one of context_id or language can be provided")
        context = self.contexts.get(name) if name else await self.contexts.default(language or "python")
        self.set_header("Content-Type", "application/x-ndjson")
        self.request.connection.stream.set_nodelay(True)
        self.task = asyncio.ensure_future(self.stream(context.execute(code, language, env)))
        try:
            await self.task
        except (asyncio.CancelledError, iostream.StreamClosedError):
            pass  # nobody listens; the context has been told

    async def stream(self, events):
        """Lines as they come. Leaving early closes `events`, which interrupts what runs."""
        try:
            coming = None
            await self.flush()
            while True:
                coming = coming or asyncio.ensure_future(events.__anext__())
                done, _ = await asyncio.wait([coming], timeout=KEEPALIVE_S)
                if not done:
                    await self.line({"type": "keepalive"})
                    continue
                event = await coming
                coming = None
                await self.line(event)
        except StopAsyncIteration:
            pass
        finally:
            if coming and not coming.done():
                coming.cancel()
                await asyncio.wait([coming])
            await events.aclose()

    async def line(self, event):
        self.write(json.dumps(event) + "\n")
        await self.flush()

    def on_connection_close(self):
        if self.task:
            self.task.cancel()


def application(contexts):
    with_contexts = {"contexts": contexts}
    return web.Application([
        ("/health", Health, with_contexts),
        ("/execute", Execute, with_contexts),
        ("/contexts", ContextList, with_contexts),
        ("/contexts/([^/]+)", OneContext, with_contexts),
        ("/contexts/([^/]+)/restart", Restart, with_contexts),
    ], log_function=lambda handler: None)
