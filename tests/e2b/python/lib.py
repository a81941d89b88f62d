"""What the tests of E2B's Python clients share.

A test is written once, against the asynchronous classes, and runs with both flavours: `Blocking` gives the synchronous
ones the same face, each call in a thread. `@test("<feature> :: <what it shows>")`; its outcome goes to the file
E2B_RESULTS, from which docs/compatibility.md is made. Run it as `python FILE.py sync|async`."""
import asyncio
import functools
import inspect
import json
import os
import pathlib
import sys
import time
import traceback
import urllib.request

import e2b as package

FLAVOUR = sys.argv[1]
SYNC = FLAVOUR == "sync"
NAME = pathlib.Path(sys.argv[0]).stem
PACKAGE = {"interpreter": "e2b-code-interpreter", "desktop": "e2b-desktop"}.get(NAME, "e2b")
LIMIT = 90  # seconds of one test

# Classes whose methods speak to the server; all else that they answer is a value.
HANDLES = {"Sandbox", "Commands", "Pty", "Filesystem", "Git", "CommandHandle", "WatchHandle", "SandboxPaginator",
           "SnapshotPaginator", "SecretPaginator", "Volume", "_VNCServer"}
# Methods that the asynchronous classes, too, answer at once.
PLAIN = {"get_host", "get_mcp_url", "download_url", "upload_url", "list_snapshots", "fill", "iam_token", "to_json",
         "to_dockerfile", "get_url", "get_auth_key"}


class Missing(Exception):
    """This flavour has no such thing."""


class Blocking:
    """A class or an object of the synchronous client, to be awaited like one of the asynchronous client."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        if not callable(value) or inspect.isclass(value):
            return dress(value)
        plain = name in PLAIN or (name == "list" and "Paginator" in str(inspect.signature(value).return_annotation))

        def call(*args, **kwargs):
            return dress(value(*args, **{k: bare(v) for k, v in kwargs.items()}))

        @functools.wraps(value)
        async def wait(*args, **kwargs):
            return await asyncio.to_thread(call, *args, **kwargs)
        return call if plain else wait


def dress(value):
    if isinstance(value, list):
        return [dress(v) for v in value]
    return Blocking(value) if type(value).__name__ in HANDLES else value


def bare(value):
    """What a client takes for what it gave."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items()}
    return value.inner if isinstance(value, Blocking) else value


def flavoured(module, name):
    """The class of that name in this run's flavour."""
    found = getattr(module, name if SYNC else f"Async{name}", None)
    return Blocking(found) if SYNC and found else found


Sandbox, Template, Volume, Secret = (flavoured(package, n) for n in ("Sandbox", "Template", "Volume", "Secret"))

made = []


async def create(template="base", Class=Sandbox, **options):
    """A sandbox that is gone after the file."""
    sandbox = await Class.create(template, **options)
    made.append(sandbox)
    return sandbox


async def until(condition, what="condition", seconds=30):
    """The condition's value as soon as it is true."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        assert time.monotonic() < end, f"waited in vain for {what}"
        await asyncio.sleep(0.02)


async def fails(kind, awaitable, *words):
    """The exception, which is of that kind and has these words."""
    try:
        value = await awaitable
    except kind as error:
        assert all(w in str(error) for w in words), f"{words} not in {error!s}"
        return error
    raise AssertionError(f"no {kind.__name__} came, but {value!r}")


def native(method, path, body=None):
    """The daemon's own API."""
    request = urllib.request.Request(os.environ["WARREN_URL"] + path, method=method,
                                     data=json.dumps(body).encode() if body is not None else None,
                                     headers={"Authorization": f"Bearer {os.environ['E2B_API_KEY']}"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or "null")


tests = []


def test(name, only=None):
    """Registers a test; `only` is the one flavour that has the feature."""
    def register(function):
        tests.append((name, only, function))
        return function
    return register


def record(name, outcome, reason=None):
    if "E2B_RESULTS" in os.environ:
        feature, shows = name.split(" :: ")
        with open(os.environ["E2B_RESULTS"], "a") as f:
            f.write(json.dumps({"package": f"{PACKAGE} (Python)", "feature": feature, "shows": shows, "outcome": outcome,
                                **({"reason": reason} if reason else {})}) + "\n")


async def run_one(name, only, function):
    if only not in (None, FLAVOUR):
        record(name, "absent", f"{only} alone")
        return True
    try:
        lacks = await asyncio.wait_for(function(), LIMIT)  # a text: Warren refuses this, and why
    except Missing as e:
        record(name, "absent", str(e))
    except Exception:
        record(name, "fail")
        print(f"not ok {name}\n{traceback.format_exc()}", flush=True)
        return False
    else:
        record(name, "lacks" if lacks else "pass", lacks)
    print(f"ok {name}", flush=True)
    return True


async def everything():
    try:
        return [await run_one(*t) for t in tests]
    finally:
        await asyncio.gather(*(s.kill() for s in made), return_exceptions=True)


def main():
    """Run the file's tests, those that a second argument matches."""
    if len(sys.argv) > 2:
        tests[:] = [t for t in tests if sys.argv[2] in t[0]]
    ok = asyncio.run(everything())
    sys.stdout.flush()
    os._exit(0 if ok and all(ok) else 1)  # a call that a test gave up may still wait in a thread
