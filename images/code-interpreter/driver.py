"""A session on a program of ours that stays: node, bash, java.

It reads requests from descriptor 3 and writes what happened to descriptor 4; what the code prints
comes through its own pipes. When an execution is over the program prints a mark that only this
execution has to both pipes: all that was printed before belongs to it.
"""
import asyncio
import codecs
import fcntl
import json
import os
import signal
import uuid

from .results import result_of

HERE = os.path.dirname(__file__)
START_S = 60
READ_MAX = 65536
LINE_MAX = 256 * 1024 * 1024  # an image of a result; more than the sandbox has memory is no use
LAST_WORDS_S = 0.3
QUEUED_MAX = 256              # pieces that nobody has read yet; then the program waits


def high(pipe):
    """Away from the numbers that the program will know them by."""
    moved = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in pipe)
    for fd in pipe:
        os.close(fd)
    return moved


class Printed:
    """One of the two pipes: pieces of text, up to the mark of the execution."""

    def __init__(self, name):
        self.name, self.mark, self.kept = name, None, b""

    def begin(self, mark):
        self.mark, self.kept = mark, b""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data):
        """The text that is certain by now, and whether the mark came."""
        self.kept += data
        before, mark, _ = self.kept.partition(self.mark)
        if mark:
            self.kept = b""
            return self.decoder.decode(before, True), True
        # The end may be the beginning of the mark.
        hold = next((n for n in range(min(len(self.mark), len(self.kept)), 0, -1)
                     if self.kept.endswith(self.mark[:n])), 0)
        certain, self.kept = self.kept[:len(self.kept) - hold], self.kept[len(self.kept) - hold:]
        return self.decoder.decode(certain), False


class DriverSession:
    may_hang = True
    argv = []

    def __init__(self):
        self.process = self.requests = None
        self.count, self.tasks = 0, []
        self.printed = [Printed("stdout"), Printed("stderr")]
        self.queue = asyncio.Queue(QUEUED_MAX)

    async def start(self, cwd, env):
        ours, theirs = high(os.pipe()), high(os.pipe())
        try:
            self.process = await asyncio.create_subprocess_exec(
                "bash", "-c", 'r=$1 e=$2; shift 2; exec 3<&"$r" 4>&"$e" {r}<&- {e}>&-; exec "$@"', "bash",
                str(ours[0]), str(theirs[1]), *self.argv, cwd=cwd, env=env, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=READ_MAX,
                pass_fds=(ours[0], theirs[1]), start_new_session=True)
        finally:
            os.close(ours[0])
            os.close(theirs[1])
        self.requests = open(ours[1], "wb", buffering=0)
        os.set_blocking(self.requests.fileno(), False)
        events = asyncio.StreamReader(limit=LINE_MAX)
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(events), open(theirs[0], "rb", buffering=0))
        if not await asyncio.wait_for(events.readline(), START_S):
            raise RuntimeError("it ended at once")
        self.tasks = [asyncio.ensure_future(self.read_events(events))] + [
            asyncio.ensure_future(self.read_printed(p, s))
            for p, s in zip(self.printed, (self.process.stdout, self.process.stderr))]

    async def read_events(self, events):
        while line := await events.readline():
            await self.queue.put(self.event_of(line))
        await self.queue.put({"type": "gone"})

    async def read_printed(self, printed, stream):
        while data := await stream.read(READ_MAX):
            if not printed.mark:
                continue  # between executions: what was left in the background
            text, ended = printed.feed(data)
            if text:
                await self.queue.put({"type": printed.name, "text": text})
            if ended:
                printed.mark = None
                await self.queue.put({"type": "drained"})

    def event_of(self, line):
        event = json.loads(line)
        if event["type"] == "result":
            return result_of(event["data"], event["main"])
        return event

    def alive(self):
        return self.process is not None and self.process.returncode is None

    def interrupt(self):
        if self.alive():
            os.killpg(self.process.pid, signal.SIGINT)

    async def stop(self):
        if self.alive():
            os.killpg(self.process.pid, signal.SIGKILL)
        for task in self.tasks:
            task.cancel()
        if self.requests:
            self.requests.close()
            self.transport.close()
        if self.process:
            await self.process.wait()
        if self.queue.full():
            self.queue.get_nowait()
        self.queue.put_nowait({"type": "gone"})

    def request(self, code, language, env, news, mark):
        return json.dumps({"code": code, "language": language, "env": env, "news": news,
                           "mark": mark}).encode() + b"\n"

    async def send(self, data):
        loop = asyncio.get_running_loop()
        while data:
            try:
                data = data[os.write(self.requests.fileno(), data):]
            except BlockingIOError:
                room = loop.create_future()
                loop.add_writer(self.requests.fileno(), lambda: room.done() or room.set_result(None))
                try:
                    await room
                finally:
                    loop.remove_writer(self.requests.fileno())

    async def run(self, code, language, env, news):
        self.count += 1
        yield {"type": "number_of_executions", "execution_count": self.count}
        mark = uuid.uuid4().hex
        for printed in self.printed:
            printed.begin(mark.encode())
        try:
            await self.send(self.request(code, language, env, news, mark))
        except OSError:
            return  # it died
        left, done, last = len(self.printed), False, []
        while left or not done:
            event = await self.queue.get()
            if event["type"] == "gone":
                async for words in self.last_words():
                    yield words
                for word in self.farewell(await self.process.wait()):
                    yield word
                return
            if event["type"] == "drained":
                left -= 1
            elif event["type"] == "done":
                done = True
            elif event["type"] == "error" or event.get("is_main_result"):
                last.append(event)  # comes another way than what was printed before it
            else:
                yield event
        for event in last:
            yield event
        yield {"type": "end"}

    def farewell(self, status):
        """What its own end means, if it means anything."""
        return []

    async def last_words(self):
        """What a program printed before it died may still be on its way."""
        while True:
            try:
                event = await asyncio.wait_for(self.queue.get(), LAST_WORDS_S)
            except asyncio.TimeoutError:
                return
            if event["type"] in ("stdout", "stderr"):
                yield event


class NodeSession(DriverSession):
    argv = ["node", "--experimental-vm-modules", "--no-warnings", os.path.join(HERE, "javascript.js")]


class PlainSession(DriverSession):
    """For those who read no JSON: a request is the mark, the sandbox's new variables, an empty field,
    those of this execution, an empty field and the code, each ended by a NUL."""

    def request(self, code, language, env, news, mark):
        fields = [mark, *(f"{k}={v}" for k, v in news.items()), "",
                  *(f"{k}={v}" for k, v in env.items()), "", code.replace("\0", "")]
        return b"".join(f.encode() + b"\0" for f in fields)


class JavaSession(PlainSession):
    @property
    def argv(self):
        """Java asks the kernel how much memory there is, and hears of the host's; its heap is a part of that."""
        with open("/sys/fs/cgroup/memory.max") as file:
            limit = file.read().strip()
        return ["java", "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                *([f"-XX:MaxRAM={limit}"] if limit.isdigit() else []),
                "--add-opens=java.base/java.util=ALL-UNNAMED", os.path.join(HERE, "Interpreter.java")]


class BashSession(PlainSession):
    """What bash answers is an exit status."""
    with open(os.path.join(HERE, "shell.sh")) as program:
        argv = ["bash", "--norc", "--noprofile", "-c", program.read(), "bash"]

    def event_of(self, line):
        word = line.decode().strip()
        if word == "done":
            return {"type": "done"}
        return self.status(word)

    def status(self, text):
        return {"type": "error", "name": "ExitStatus", "value": f"exit status {text}", "traceback": ""}

    def farewell(self, status):
        """`exit`, or `set -e` and something that failed: the next execution has a new shell."""
        if status < 0:
            return []
        return [self.status(f"{status}, and the shell ended"), {"type": "end"}]
