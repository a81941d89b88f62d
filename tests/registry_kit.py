"""What the tests of pull and push share: a registry, one in between that misbehaves, a daemon, and short words for asking it."""
import json
import urllib.parse

import harness
import pytest
from registries import Middle, Registry

@pytest.fixture(scope="module")
def upstream():
    r = Registry()
    yield r
    r.close()


@pytest.fixture(scope="module")
def puller():
    """A daemon that gives up on a silent registry soon."""
    d = harness.Daemon("--registry-timeout", "2")
    yield d
    d.close()


@pytest.fixture
def middle(upstream):
    m = Middle(upstream)
    yield m
    m.close()


@pytest.fixture(scope="module")
def tiny_layer(tiny_tar):
    return tiny_tar.read_bytes()


def pull(daemon, image, api=None, **more):
    """Every event of a pull."""
    with (api or daemon.api).stream("POST", "/v1/images/pull", {"image": image, **more}) as stream:
        return list(stream)


def pulled(daemon, image, **more):
    """The last event of a pull that went well."""
    events = pull(daemon, image, **more)
    assert events[-1]["type"] == "image", events[-3:]
    return events[-1]


def refused(daemon, status, code, image, **more):
    return daemon.api.refused(status, code, "POST", "/v1/images/pull", {"image": image, **more})


def failed(daemon, code, image, **more):
    """The pull fails in just this way, at once or on its way."""
    reply = daemon.api.call("POST", "/v1/images/pull", {"image": image, **more})
    error = json.loads(reply.body.splitlines()[-1])
    error = error.get("error", error)
    assert error["code"] == code, reply
    return error["message"]


def push(daemon, name, **more):
    path = f"/v1/images/{urllib.parse.quote(name, safe='')}/push"
    with daemon.api.stream("POST", path, more) as stream:
        return list(stream)


def get(daemon, name):
    return daemon.api.call("GET", f"/v1/images/{urllib.parse.quote(name, safe='')}")


def run(daemon, image, command):
    who = daemon.api.create(image=image)["id"]
    try:
        return daemon.api.out(who, command)
    finally:
        daemon.api.delete(who)


def states(events):
    """The last state of each layer."""
    return {e["digest"]: e["state"] for e in events if e["type"] == "layer"}


def noise(seed, n):
    """Bytes that do not shrink, the same for the same seed."""
    import random
    return random.Random(seed).randbytes(n)


def daemon_error(daemon, image, **more):
    reply = daemon.api.call("POST", "/v1/images/pull", {"image": image, **more})
    assert reply.status in (400, 403, 424), reply
    return reply.json["error"]
