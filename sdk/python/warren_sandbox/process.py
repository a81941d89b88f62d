"""Commands in a sandbox: those that are waited for and those that go on by themselves."""
from __future__ import annotations

import codecs
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from ._http import Lines, Transport, encode_query, given
from .errors import ApiError, CommandError, ConnectionFailed, ProtocolError, RequestTimeout
from .models import ExecEvent, ProcessInfo, Result

Command = Union[str, Sequence[str]]


def spec_of(command: Command, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
            user: Optional[str] = None, timeout: Optional[float] = None,
            label: Optional[str] = None) -> Dict[str, Any]:
    """A request's members: text is for the shell, a list is a program and its arguments."""
    how = {"shell": command} if isinstance(command, str) else {"argv": [str(a) for a in command]}
    return {**how, **given(cwd=cwd, env=dict(env) if env else None, user=user, timeout_s=timeout,
                           label=label)}


class Events:
    """A command's events as they come. It outlives a broken connection: what was missed is asked
    for again, from the first missing byte. Ends after ``exit``; ``close`` leaves early (the command
    goes on)."""

    def __init__(self, transport: Transport, base: str, lines: Lines, process: Optional[int] = None,
                 offset: int = 0, follow: bool = True):
        self._transport, self._base, self._lines = transport, base, lines
        self._offset, self._follow, self._done = offset, follow, False
        self.process = process
        self.exit: Optional[ExecEvent] = None

    def __iter__(self) -> Iterator[ExecEvent]:
        return self

    def __next__(self) -> ExecEvent:
        while not self._done:
            try:
                event = ExecEvent.of(next(self._lines))
            except StopIteration:
                if self._follow:
                    self._again(ConnectionFailed("the stream ended before the command"))
                    continue
                self._done = True
                break
            except (ConnectionFailed, RequestTimeout) as e:
                self._again(e)
                continue
            if event.type == "start":
                self.process = event.process
            elif event.type == "exit":
                self.exit = event
                self.close()
            elif event.end is not None:
                if event.end <= self._offset and event.data:
                    continue  # known already
                self._offset = event.end
            return event
        raise StopIteration

    def _again(self, why: Exception) -> None:
        self._lines.close()
        if self.process is None or not self._follow:
            self._done = True
            raise why
        for attempt in range(self._transport.retries + 1):
            try:
                self._lines = self._transport.lines(
                    "GET", f"{self._base}/{self.process}/output",
                    query={"since": self._offset, "follow": True})
                return
            except ConnectionFailed as e:
                why = e
                time.sleep(min(0.2 * 2 ** attempt, 2.0))
        self._done = True
        raise why

    def close(self) -> None:
        self._done = True
        self._lines.close()

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def collect(events: Events, on_stdout: Optional[Callable[[str], Any]] = None,
            on_stderr: Optional[Callable[[str], Any]] = None,
            limit: Optional[int] = None) -> Result:
    """Read a stream to its end; the callbacks get text as it comes, ``limit`` bounds what is kept."""
    kept: Dict[str, List[bytes]] = {"stdout": [], "stderr": []}
    room = {"stdout": limit, "stderr": limit}
    call = {"stdout": on_stdout, "stderr": on_stderr}
    decoder = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in kept}
    truncated, pid = False, None
    with events:
        for event in events:
            if event.type == "start":
                pid = event.pid
            elif event.type == "dropped":
                truncated = True
            elif event.type in kept:
                left = room[event.type]
                part = event.data if left is None else event.data[:left]
                truncated = truncated or len(part) < len(event.data)
                if left is not None:
                    room[event.type] = left - len(part)
                kept[event.type].append(part)
                callback, text = call[event.type], decoder[event.type].decode(event.data)
                if callback and text:
                    callback(text)
    end = events.exit
    if end is None:
        raise ProtocolError("the stream ended without saying how the command did")
    return Result(raw=end.raw, exit_code=end.exit_code or 0, signal=end.signal,
                  reason=end.reason or "exit", stdout_bytes=b"".join(kept["stdout"]),
                  stderr_bytes=b"".join(kept["stderr"]), truncated=truncated,
                  duration_ms=end.duration_ms or 0, process=events.process, pid=pid,
                  cpu_us=end.cpu_us or 0)


class Process:
    """A process that goes on whether or not somebody listens. ``info`` is from when it was asked."""

    def __init__(self, transport: Transport, base: str, info: ProcessInfo):
        self._transport, self._base, self.info = transport, base, info
        self._path = f"{base}/{info.process}"

    def __repr__(self) -> str:
        return f"<Process {self.number} pid {self.pid} {self.info.state}>"

    @property
    def number(self) -> int:
        """Its number in the API."""
        return self.info.process or 0

    @property
    def pid(self) -> int:
        """Its pid inside the sandbox."""
        return self.info.pid

    def refresh(self) -> ProcessInfo:
        """Ask again how it is."""
        self.info = ProcessInfo.of(self._transport.call("GET", self._path))
        return self.info

    def output(self, since: int = 0, follow: bool = True) -> Events:
        """Its output from a byte offset on; with ``follow`` until it ends."""
        lines = self._transport.lines("GET", self._path + "/output",
                                      query={"since": since, "follow": follow})
        return Events(self._transport, self._base, lines, self.number, since, follow)

    def wait(self, timeout: Optional[float] = None) -> ProcessInfo:
        """Until it ended. ``timeout`` ends the wait (``RequestTimeout``), not the process."""
        self.info = ProcessInfo.of(
            self._transport.call("GET", self._path + "/wait", timeout=timeout))
        return self.info

    def result(self, check: bool = False) -> Result:
        """Wait for the end and answer with all of its kept output."""
        result = collect(self.output())
        if check and not result.ok:
            raise CommandError(result)
        return result

    def write(self, data: Union[bytes, str], eof: bool = False) -> None:
        """To its standard input or terminal; ``eof`` closes it afterwards."""
        raw = data.encode() if isinstance(data, str) else bytes(data)
        self._transport.call("POST", self._path + "/stdin", query={"eof": eof or None}, body=raw,
                             headers={"Content-Type": "application/octet-stream"})

    def close_stdin(self) -> None:
        """The end of its standard input."""
        self.write(b"", eof=True)

    def signal(self, signal: Union[str, int] = "SIGTERM", scope: str = "process") -> None:
        """Send a signal to it, its ``group``, or the whole ``tree`` that it started."""
        self._transport.call("POST", self._path + "/signal", {"signal": signal, "scope": scope})

    def resize(self, rows: int, cols: int) -> None:
        """Give its terminal another size."""
        self._transport.call("POST", self._path + "/resize", {"rows": rows, "cols": cols})

    def kill(self) -> None:
        """End it and everything that it started, now. One that has ended is fine."""
        try:
            self._transport.call("DELETE", self._path)
        except ApiError as e:
            if e.code != "process_ended":
                raise


class Processes:
    """``sandbox.processes``."""

    def __init__(self, transport: Transport, base: str):
        self._transport, self._base = transport, base + "/processes"

    def start(self, command: Command, *, cwd: Optional[str] = None,
              env: Optional[Mapping[str, str]] = None, user: Optional[str] = None,
              timeout: Optional[float] = None, stdin: bool = False,
              pty: Union[bool, Mapping[str, int], None] = None,
              label: Optional[str] = None) -> Process:
        """Start a command and leave it to itself. ``stdin`` keeps a pipe to write to; ``pty`` gives
        a terminal (``True`` or ``{"rows": 24, "cols": 80}``)."""
        spec = spec_of(command, cwd, env, user, timeout, label)
        if stdin:
            spec["stdin"] = True
        if pty:
            spec["pty"] = {"rows": 24, "cols": 80} if pty is True else dict(pty)
        info = ProcessInfo.of(self._transport.call("POST", self._base, spec))
        return Process(self._transport, self._base, info)

    def list(self, all: bool = False) -> List[ProcessInfo]:
        """Those that were started through the API; ``all``: everything that runs."""
        answer = self._transport.call("GET", self._base + encode_query({"all": all or None}))
        return [ProcessInfo.of(p) for p in answer["processes"]]

    def get(self, number: int) -> Process:
        """One, by its number: to attach again to what another client started."""
        info = ProcessInfo.of(self._transport.call("GET", f"{self._base}/{int(number)}"))
        return Process(self._transport, self._base, info)
