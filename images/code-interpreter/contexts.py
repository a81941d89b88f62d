"""Contexts: a language, a directory and a session that keeps its state.

Executions of one context come one after the other. A context whose session died gets a new one for
the next execution.
"""
import asyncio
import os
import shutil
import uuid
from datetime import datetime, timezone

from tornado import web

from .driver import BashSession, JavaSession, NodeSession
from .jupyter import JupyterSession, PythonSession, RSession

HOME = os.path.expanduser("~")
CONTEXTS_MAX = 100
QUEUED_MAX = 64  # events that the client has not taken yet
AGAIN_S = 1      # between interrupts of what does not stop
PATIENCE_S = 3   # then a session that can be stuck for good is ended
ALIASES = {"js": "javascript", "ts": "typescript", "py": "python", "python3": "python", "sh": "bash"}
KERNELS = {  # and the program that it needs
    "python": (PythonSession, "python3"), "javascript": (NodeSession, "node"), "typescript": (NodeSession, "node"),
    "bash": (BashSession, "bash"), "r": (RSession, "R"), "java": (JavaSession, "java"),
}


ALL = "interpreter-all"  # the template that has them all


class Refused(web.HTTPError):
    """A failure that the client is told of in these words."""

    def __init__(self, status, message):
        super().__init__(status)
        self.message = message


def lacking(language):
    return f"this template has no kernel for '{language}'; the template '{ALL}' has {', '.join(KERNELS)}"


def session_for(language):
    kind, program = KERNELS.get(language, (None, None))
    if not kind:
        return JupyterSession(language)
    if not shutil.which(program):
        raise Refused(500, lacking(language))
    return kind()


def known(language):
    language = language.strip().lower()
    return ALIASES.get(language, language)


def unexpected(value):
    return {"type": "error", "name": "UnexpectedEndOfExecution", "value": value, "traceback": ""}


class Context:
    def __init__(self, contexts, language, cwd):
        self.id, self.language, self.cwd = str(uuid.uuid4()), known(language), cwd
        self.contexts = contexts
        self.lock = asyncio.Lock()      # held while something runs
        self.changing = asyncio.Lock()  # held while the session is exchanged
        self.session = None
        self.applied = {}  # of the sandbox's variables, what this session has

    def describe(self):
        return {"id": self.id, "language": self.language, "cwd": self.cwd}

    async def start(self):
        if not os.path.isdir(self.cwd):
            raise Refused(400, f"the directory '{self.cwd}' does not exist")
        session = session_for(self.language)
        env = dict(self.contexts.env)
        try:
            await session.start(self.cwd, {**os.environ, **env})
        except Exception as error:
            await session.stop()
            if self.language not in KERNELS:
                raise Refused(500, lacking(self.language))
            raise Refused(500, f"the kernel for '{self.language}' did not start: {error}")
        self.session, self.applied = session, env

    async def restart(self):
        """At once, also when something runs: that ends with an error."""
        async with self.changing:
            await self.stop()
            await self.start()

    async def stop(self):
        session, self.session = self.session, None
        if session:
            await session.stop()

    async def living(self):
        async with self.changing:
            if not self.session or not self.session.alive():
                await self.stop()
                await self.start()
            return self.session

    async def execute(self, code, language, env):
        """Events of one execution. Closing this early interrupts it, and waits until it has stopped."""
        async with self.lock:
            if self.contexts.by_id.get(self.id) is not self:
                yield unexpected("the context was removed")
                yield {"type": "end_of_execution"}
                return
            try:
                session = await self.living()
            except Refused as refused:
                yield unexpected(refused.message)
                yield {"type": "end_of_execution"}
                return
            news = {k: v for k, v in self.contexts.env.items() if self.applied.get(k) != v}
            self.applied.update(news)
            queue = asyncio.Queue(QUEUED_MAX)
            pump = asyncio.ensure_future(fill(queue, session.run(code, known(language or self.language), env, news)))
            ended = False
            try:
                while event := await queue.get():
                    if event["type"] in ("stdout", "stderr"):
                        event["timestamp"] = datetime.now(timezone.utc).isoformat()
                    ended = event["type"] == "end"
                    if not ended:
                        yield event
                if not ended:
                    yield unexpected("the kernel died before the execution was finished; its state is lost")
                yield {"type": "end_of_execution"}
            finally:
                # The lock is held until it is quiet: the next one must not be interrupted instead.
                if not pump.done():
                    await asyncio.shield(self.quiet(session, pump, queue))

    async def quiet(self, session, pump, queue):
        """Whoever asked is gone: interrupt until it ends, and forget what it says."""
        waited = 0
        rest = asyncio.ensure_future(forget(queue))
        while not rest.done():
            if waited >= PATIENCE_S and session.may_hang:
                await session.stop()
            else:
                session.interrupt()
            await asyncio.wait([rest], timeout=AGAIN_S)
            waited += AGAIN_S


async def fill(queue, run):
    """On its own: a cancelled reader must not cut the conversation with the kernel."""
    try:
        async for event in run:
            await queue.put(event)
    finally:
        await queue.put(None)


async def forget(queue):
    while await queue.get():
        pass


class Contexts:
    def __init__(self):
        self.by_id = {}
        self.defaults = {}
        self.making = {}
        self.env = {}  # the sandbox's own variables

    async def start(self):
        """The one that a first execution must not wait for. Sandboxes are copies of one that was ready: what runs by then
        is brought back in each, and node's random numbers would go on alike in all."""
        await self.default("python")

    def adopt(self, env):
        self.env = env

    def all(self):
        return list(self.by_id.values())

    def get(self, name):
        if name not in self.by_id:
            raise Refused(404, f"Context {name} not found")
        return self.by_id[name]

    async def create(self, language, cwd=None):
        context = Context(self, language, cwd or HOME)
        if len(self.by_id) >= CONTEXTS_MAX:
            raise Refused(429, f"there are {CONTEXTS_MAX} contexts already; remove one first")
        self.by_id[context.id] = context
        try:
            await context.start()
        except BaseException:
            self.by_id.pop(context.id, None)
            raise
        return context

    async def default(self, language):
        language = known(language)
        if language == "typescript":
            language = "javascript"  # one kernel, one state
        context = self.by_id.get(self.defaults.get(language))
        if context:
            return context
        if language not in self.making:  # two first requests share one
            self.making[language] = asyncio.ensure_future(self.create(language))
        try:
            context = await asyncio.shield(self.making[language])
        finally:
            self.making.pop(language, None)
        self.defaults[language] = context.id
        return context

    async def remove(self, name):
        context = self.get(name)
        del self.by_id[name]
        await context.stop()

    async def close(self):
        for context in self.all():
            await context.stop()
