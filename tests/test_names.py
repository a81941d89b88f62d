"""Names of clients' own that lead to ports of sandboxes."""
import http.client
import uuid

import pytest

import harness
from harness import until
from preview_kit import connect, get, host_of, raw, serve, site  # noqa: F401 - a fixture


@pytest.fixture
def name(daemon):
    """One that nobody has; given up afterwards."""
    text = f"app-{uuid.uuid4().hex[:8]}.example.test"
    yield text
    daemon.api.call("DELETE", f"/v1/names/{text}")


@pytest.fixture(scope="module")
def others(daemon):
    """Another team's key."""
    team = "names-" + uuid.uuid4().hex[:8]
    daemon.api.ok("POST", "/v1/teams", {"name": team})
    yield daemon.api.with_key(daemon.api.ok("POST", "/v1/keys", {"name": "k", "team": team, "role": "member"})["key"])
    daemon.api.call("DELETE", f"/v1/teams/{team}")


def test_a_name_leads_to_a_port(daemon, site, name):
    made = daemon.api.ok("POST", "/v1/names", {"name": name.upper(), "sandbox": site, "port": 3000})
    assert made["name"] == name and made["sandbox"] == site
    reply = get(daemon, name, "/a?b=c")
    assert reply.json["path"] == "/a?b=c"
    headers = dict(map(tuple, reply.json["headers"]))
    assert headers["host"] == headers["x-forwarded-host"] == name
    for host in (f"{name}:{daemon.port}", name.upper(), name + "."):
        assert get(daemon, host).status == 200, host
    assert name in [n["name"] for n in daemon.api.ok("GET", "/v1/names")["names"]]
    assert daemon.api.call("DELETE", f"/v1/names/{name}").status == 204
    # The API has no such name: it answers as itself, not for a sandbox.
    assert get(daemon, name, "/v1/health").json["status"] == "ok"


def test_a_name_is_one_teams(daemon, site, name, others):
    daemon.api.ok("POST", "/v1/names", {"name": name, "sandbox": site, "port": 3000})
    theirs = others.create(image="tiny")["id"]
    try:
        others.refused(409, "name_taken", "POST", "/v1/names", {"name": name, "sandbox": theirs, "port": 80})
        others.refused(404, "name_not_found", "GET", f"/v1/names/{name}")
        others.refused(404, "name_not_found", "DELETE", f"/v1/names/{name}")
        others.refused(404, "sandbox_not_found", "POST", "/v1/names", {"name": "x." + name, "sandbox": site, "port": 80})
        assert others.ok("GET", "/v1/names")["names"] == []
        daemon.api.ok("DELETE", f"/v1/names/{name}")
        assert others.ok("POST", "/v1/names", {"name": name, "sandbox": theirs, "port": 80})["port"] == 80
        assert get(daemon, name).code == "port_closed"
        others.ok("DELETE", f"/v1/names/{name}")
    finally:
        others.delete(theirs)


@pytest.mark.parametrize("wrong", ["localhost", "x.localhost", "warren.test", "a.warren.test", "a", "1.2.3.4", "a..b",
                                   "*.example.test", "exa mple.test", "a.b:80", "ä.test", "x" * 64 + ".test", "[::1]"])
def test_what_is_no_name_to_have_is_refused(daemon, site, wrong):
    daemon.api.refused(400, "invalid_field", "POST", "/v1/names", {"name": wrong, "sandbox": site, "port": 80})


def test_a_name_of_the_api_is_nobodys(fresh):
    """Who had it would get what clients send to the API. Nor does it stay with who got it before that was said."""
    box = fresh.api.create(image="tiny")["id"]
    fresh.api.ok("POST", "/v1/names", {"name": "warren.example.test", "sandbox": box, "port": 80})
    assert get(fresh, "warren.example.test", "/v1/health").code == "port_closed"
    fresh.args += ["--api-names", "other.example.test, Warren.example.test."]
    fresh.restart()
    assert get(fresh, "warren.example.test", "/v1/health").json["status"] == "ok"
    fresh.api.refused(409, "name_taken", "POST", "/v1/names", {"name": "warren.example.test", "sandbox": box, "port": 80})
    fresh.api.ok("POST", "/v1/names", {"name": "app.example.test", "sandbox": box, "port": 80})


def test_a_name_is_moved_and_outlives_its_sandbox(daemon, site, name):
    first = daemon.api.create(image="tiny")["id"]
    daemon.api.ok("POST", "/v1/names", {"name": name, "sandbox": first, "port": 80})
    assert get(daemon, name).code == "port_closed"
    daemon.api.delete(first)
    until(lambda: get(daemon, name).code == "sandbox_gone", "the end to be told")
    daemon.api.ok("POST", "/v1/names", {"name": name, "sandbox": site, "port": 3000})
    assert get(daemon, name).status == 200


def test_names_are_known_to_a_new_broker_and_a_new_daemon(fresh):
    fresh.api.import_image("base", harness.base_image())
    box = fresh.api.create()["id"]
    serve(fresh.api, box, 3000)
    fresh.api.ok("POST", "/v1/names", {"name": "app.example.test", "sandbox": box, "port": 3000})
    assert get(fresh, "app.example.test").status == 200
    harness.kill_all(fresh.pids("warren-broker"), lambda pids: None)

    def answers():
        try:
            return get(fresh, "app.example.test").status == 200
        except (OSError, http.client.HTTPException):
            return False
    until(answers, "a new broker to know the name")
    fresh.restart()
    until(answers, "a new daemon to know the name")


def test_hosts_on_one_connection_are_judged_one_by_one(daemon, site, name):
    daemon.api.ok("POST", "/v1/names", {"name": name, "sandbox": site, "port": 3000})
    with connect(daemon) as c:
        def ask(host, path="/"):
            c.request("GET", path, headers={"Host": host})
            r = c.getresponse()
            return r.status, r.read()
        assert ask(host_of(site, 3000))[0] == 200
        assert ask(name)[0] == 200
        assert ask(f"127.0.0.1:{daemon.port}", "/v1/sandboxes")[0] == 401
        assert ask(name)[0] == 200
        daemon.api.ok("DELETE", f"/v1/names/{name}")
        status, body = ask(name, "/v1/health")
        assert status == 200 and b'"status"' in body, "the API's answer, not the sandbox's"
        assert ask(host_of(site, 3001))[0] == 502
        assert ask(host_of(site, 3000))[0] == 200


def test_a_name_below_the_domain_that_is_nobodys_is_told_so(daemon):
    for host in ("nobody.warren.test", "x.y.warren.test", "80-short.warren.test", f"0-{'a' * 20}.warren.test",
                 f"80-{'a' * 20}.x.warren.test"):
        reply = get(daemon, host, "/v1/health")
        assert reply.status == 421 and reply.code == "unknown_host", (host, reply)
    assert raw(daemon, b"GET / HTTP/1.1\r\nHost: nobody.warren.test\r\nAccept: text/html\r\n\r\n").startswith(b"HTTP/1.1 421")
    assert get(daemon, "warren.test", "/v1/health").status == 200, "the domain itself is the API's"


def test_a_name_of_a_private_sandbox_opens_nothing(daemon, site, name):
    daemon.api.ok("POST", "/v1/names", {"name": name, "sandbox": site, "port": 3000})
    made = daemon.api.ok("POST", f"/v1/sandboxes/{site}/previews/tokens", {"port": 3000})
    daemon.api.ok("PATCH", f"/v1/sandboxes/{site}", {"preview": "private"})
    try:
        until(lambda: get(daemon, name).status == 403, "the door to close")
        assert get(daemon, name, headers={"X-Warren-Preview-Token": made["token"]}).status == 200
    finally:
        daemon.api.ok("PATCH", f"/v1/sandboxes/{site}", {"preview": "public"})


def test_the_command_line_gives_names(daemon, site, name):
    assert daemon.cli("name", "add", name, site, "3000").stdout.strip() == name
    assert get(daemon, name).status == 200
    assert name in daemon.cli("name", "ls").stdout
    assert daemon.cli("name", "rm", name).returncode == 0
    assert name not in daemon.cli("name", "ls").stdout
    assert daemon.cli("name", "add", name, site, "70000").returncode == 2
