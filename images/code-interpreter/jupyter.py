"""A session on a Jupyter kernel: ours for Python, any that is installed by its name.

What the kernel publishes is read as it comes and kept until it is asked for: it would be dropped
otherwise. A kernel that is far ahead of its client is halted until the client has caught up.
"""
import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tempfile

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from .results import result_of

START_S = 60
LOOK_S = 0.3  # how often a silent kernel is looked after
KEPT_MAX = 8 * 1024 * 1024  # characters that the client has not taken; then the kernel is halted
MESSAGE_COST = 1024         # what an empty message counts for
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class JupyterSession:
    may_hang = False  # long code in C ends some time, and the state is worth the wait

    def __init__(self, name):
        self.place = tempfile.mkdtemp(prefix="interpreter-", dir="/var/tmp")
        self.manager = AsyncKernelManager(kernel_name=name, transport="ipc",
                                          connection_file=os.path.join(self.place, "kernel.json"))
        self.client = self.readers = None
        self.queue, self.running = asyncio.Queue(), None
        self.kept, self.halted = 0, False

    async def start(self, cwd, env):
        await self.manager.start_kernel(cwd=cwd, env=env)
        self.client = self.manager.client()
        self.client.context.rcvhwm = 0
        self.client.start_channels(shell=True, iopub=True, stdin=False, hb=False, control=False)
        await self.client.wait_for_ready(timeout=START_S)
        await self.until_heard()
        self.readers = [asyncio.ensure_future(self.read_published()), asyncio.ensure_future(self.read_replies())]

    async def until_heard(self):
        """A subscription takes a moment; what is published before is lost."""
        for _ in range(100):
            self.client.kernel_info()
            try:
                await self.client.get_iopub_msg(timeout=0.2)
                return
            except Exception:
                continue
        raise RuntimeError("it publishes nothing")

    async def read_published(self):
        while True:
            message = await self.client.get_iopub_msg(timeout=None)
            if self.running and message["parent_header"].get("msg_id") == self.running:
                self.queue.put_nowait(message)
                self.count(cost_of(message))

    def count(self, change):
        self.kept += change
        halt = self.kept > (KEPT_MAX // 2 if self.halted else KEPT_MAX)
        if halt != self.halted and self.alive():
            os.kill(self.manager.provisioner.process.pid, signal.SIGSTOP if halt else signal.SIGCONT)
            self.halted = halt

    async def read_replies(self):
        while True:
            await self.client.get_shell_msg(timeout=None)

    def alive(self):
        process = getattr(self.manager.provisioner, "process", None)
        return process is not None and process.poll() is None and not any(r.done() for r in self.readers or [])

    def interrupt(self):
        if self.alive():
            asyncio.ensure_future(self.manager.signal_kernel(signal.SIGINT))

    async def stop(self):
        for reader in self.readers or []:
            reader.cancel()
        self.readers = None
        if self.client:
            self.client.stop_channels()
        if self.manager.has_kernel:
            await self.manager.shutdown_kernel(now=True)
        self.running = None
        shutil.rmtree(self.place, ignore_errors=True)

    def send(self, code, env, news, silent=False):
        session = self.client.session
        message = session.msg("execute_request", {
            "code": code, "silent": silent, "store_history": not silent, "user_expressions": {}, "allow_stdin": False,
            "stop_on_error": False}, metadata={"warren": {"env": env, "news": news}})
        self.queue, self.running = asyncio.Queue(), message["header"]["msg_id"]
        self.count(-self.kept)
        self.client.shell_channel.send(message)

    async def quietly(self, code):
        """Code of ours, between executions."""
        self.send(code, {}, {}, silent=True)
        async for event in self.events():
            if event["type"] == "error":
                raise RuntimeError(event["value"])

    async def run(self, code, language, env, news):
        self.send(code, env, news)
        async for event in self.events():
            yield event

    async def events(self):
        while True:
            try:
                message = await asyncio.wait_for(self.queue.get(), LOOK_S)
            except asyncio.TimeoutError:
                if self.running and self.alive():
                    continue
                return
            self.count(-cost_of(message))
            event = event_of(message)
            if event:
                yield event
                if event["type"] == "end":
                    self.running = None
                    return


class RSession(JupyterSession):
    def __init__(self):
        super().__init__("ir")
        self.manager._kernel_spec = KernelSpec(
            argv=["R", "--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"], display_name="R",
            language="R")

    async def start(self, cwd, env):
        await super().start(cwd, env)
        await self.quietly("options(jupyter.rich_display = TRUE)")

    async def run(self, code, language, env, news):
        """R's kernel knows nothing of our variables: they are set by code of ours before and put back after."""
        if news:
            await self.quietly(f"Sys.setenv({assignments(news)})")
        if env:
            names = ", ".join(map(r_text, env))
            await self.quietly(f".warren_before <- Sys.getenv(c({names}), unset = NA, names = TRUE); "
                               f"Sys.setenv({assignments(env)})")
        last = None  # a value that is shown: the result if nothing comes after it
        async for event in super().run(code, language, {}, {}):
            if last:
                last["is_main_result"] = event["type"] == "end"
                yield last
            last = event if event["type"] == "result" else None
            if last:
                continue
            if event["type"] == "end" and env:
                await self.quietly("for (.n in names(.warren_before)) if (is.na(.warren_before[[.n]])) "
                                   "Sys.unsetenv(.n) else do.call(Sys.setenv, as.list(.warren_before[.n]))")
            yield event
        if last:
            yield last


def r_text(text):
    return json.dumps(text, ensure_ascii=False)


def assignments(env):
    return ", ".join(f"`{name}` = {r_text(value)}" for name, value in env.items() if "`" not in name)


class PythonSession(JupyterSession):
    def __init__(self):
        super().__init__("python3")
        self.manager._kernel_spec = KernelSpec(
            argv=[sys.executable, "-P", "-m", "warren_interpreter.kernel", "-f", "{connection_file}"],
            display_name="Python", language="python")

    async def start(self, cwd, env):
        await super().start(cwd, env)
        await self.quietly("1")  # the first execution loads what it needs: not while somebody waits for it


def cost_of(message):
    content = message["content"]
    data = content.get("data")
    shown = data.values() if isinstance(data, dict) else ()
    return MESSAGE_COST + len(content.get("text", "")) + sum(len(v) for v in shown if isinstance(v, str))


def event_of(message):
    kind, content = message["header"]["msg_type"], message["content"]
    if kind == "stream":
        return {"type": content["name"], "text": content["text"]}
    if kind in ("display_data", "update_display_data", "execute_result"):
        return result_of(content["data"], kind == "execute_result")
    if kind == "execute_input":
        return {"type": "number_of_executions", "execution_count": content["execution_count"]}
    if kind == "error":
        return {"type": "error", "name": content["ename"], "value": content["evalue"],
                "traceback": ANSI.sub("", "\n".join(content["traceback"]))}
    if kind == "status" and content["execution_state"] == "idle":
        return {"type": "end"}
    return None
