"""Bindings as clients say them: what is taken, what is refused and how, who may bind what, and what is inside."""
import json
import os
import re
import signal
import uuid

import pytest

from harness import until

HOST = "api.bound.test"


def fresh_name():
    return "s" + uuid.uuid4().hex[:10]


@pytest.fixture(scope="module")
def secret(api):
    """A secret's name, and its value."""
    name, value = fresh_name(), "hunter2-" + uuid.uuid4().hex
    api.ok("POST", "/v1/secrets", {"name": name, "value": value + "\n"})
    yield name, value
    api.call("DELETE", f"/v1/secrets/{name}")


@pytest.fixture(scope="module")
def bound(api, secret):
    """A sandbox that has bindings from its start; its id."""
    made = api.create(bindings=[{"secret": secret[0], "host": HOST, "path": "/v1/*"}])
    yield made["id"]
    api.call("DELETE", f"/v1/sandboxes/{made['id']}")


def patch(api, who, bindings):
    return api.ok("PATCH", f"/v1/sandboxes/{who}", {"bindings": bindings})["bindings"]


def test_bindings_are_told_back_in_one_form_and_without_the_value(api, secret, bound):
    name, value = secret
    assert api.get(bound)["bindings"] == [
        {"secret": name, "host": HOST, "port": 443, "methods": [], "path": "/v1/*", "as": "bearer", "transparent": True, "answer": "full"}]
    said = [
        {"secret": name.upper(), "host": HOST.upper(), "port": 8443, "methods": ["GET", "POST"], "path": "/a/%7e*",
         "as": "header", "header": "X-Key", "format": "Key \"{}\"", "name": "me", "transparent": False},
        {"secret": name, "host": "*.bound.test", "as": "query", "query": "key"},
        {"secret": name, "host": HOST, "as": "basic", "user": ""},
        {"secret": name, "host": HOST, "as": "git", "name": None, "answer": "none"},
        {"secret": name, "host": HOST, "as": "sigv4", "access_key": "AKIA", "region": "eu-west-1", "service": "s3"},
        {"value": "not \\secret", "host": HOST, "as": "header", "header": "x-team"},
        f"{name}@{HOST}:8443/v2/* methods=GET as=header header=x-api-key format=\"T {{}}\" answer=json-only"]
    told = patch(api, bound, said)
    assert [b["as"] for b in told] == ["header", "query", "basic", "git", "sigv4", "header", "header"]
    assert told[0]["secret"] == name and told[0]["path"] == "/a/~*" and told[0]["format"] == 'Key "{}"' and told[0]["host"] == HOST
    assert told[0]["name"] == "me" and told[0]["transparent"] is False and "name" not in told[3]
    assert told[3]["user"] == "x-access-token" and told[5]["value"] == "not \\secret" and told[6]["port"] == 8443
    assert [b["answer"] for b in told] == ["full", "full", "full", "none", "full", "full", "json-only"]
    assert patch(api, bound, told) == told, "what is told can be said again"
    assert api.get(bound)["bindings"] == told
    for path in (f"/v1/sandboxes/{bound}", "/v1/sandboxes?limit=1000", "/v1/events?limit=1000", "/v1/logs"):
        assert value.encode() not in api.call("GET", path).body
    assert patch(api, bound, []) == [] and patch(api, bound, None) == []
    assert len(patch(api, bound, [f"{name}@{HOST}"])) == 1


@pytest.mark.parametrize("binding, says", [
    (5, "must be an object"), ({}, "needs 'secret'"), ({"secret": "SECRET"}, "needs 'host'"),
    ({"secret": "SECRET", "host": HOST, "value": "x"}, "not both"),
    ({"secret": "SECRET", "host": "10.0.0.1"}, "'host' must be"), ({"secret": "SECRET", "host": "x.warren"}, "'host'"),
    ({"secret": "SECRET", "host": "*"}, "'host' must be"), ({"secret": "SECRET", "host": 5}, "'host' must be a text"),
    ({"secret": "SECRET", "host": HOST, "port": 0}, "'port'"), ({"secret": "SECRET", "host": HOST, "port": "443"}, "'port'"),
    ({"secret": "SECRET", "host": HOST, "methods": "GET"}, "'methods'"),
    ({"secret": "SECRET", "host": HOST, "methods": ["TRACE"]}, "'methods'"),
    ({"secret": "SECRET", "host": HOST, "path": "/a/../b"}, "'path'"),
    ({"secret": "SECRET", "host": HOST, "as": "cookie"}, "'as' must be"),
    ({"secret": "SECRET", "host": HOST, "as": "header"}, "needs 'header'"),
    ({"secret": "SECRET", "host": HOST, "as": "header", "header": "Transfer-Encoding"}, "'header'"),
    ({"secret": "SECRET", "host": HOST, "as": "header", "header": "x\r\ny"}, "'header'"),
    ({"secret": "SECRET", "host": HOST, "as": "header", "header": "x", "format": "no place"}, "'format'"),
    ({"value": "a\nb", "host": HOST, "as": "header", "header": "x"}, "'value'"),
    ({"secret": "SECRET", "host": HOST, "query": "x"}, "does not belong to as=bearer"),
    ({"secret": "SECRET", "host": HOST, "transparent": "no"}, "true or false"),
    ({"secret": "SECRET", "host": HOST, "answer": "some"}, "'answer' must be full, json-only, status or none"),
    ({"secret": "SECRET", "host": HOST, "transparent": False}, "needs a 'name'"),
    ({"secret": "SECRET", "host": HOST, "fish": "x"}, "is no member"), ("SECRET", "SECRET@HOST"),
    ("x@y.test\nz@y.test", "'host'")])
def test_odd_bindings_are_refused_with_what_to_write(api, secret, bound, binding, says):
    if isinstance(binding, dict) and "secret" in binding:
        binding = dict(binding, secret=secret[0])
    for method, path in (("POST", "/v1/sandboxes"), ("PATCH", f"/v1/sandboxes/{bound}")):
        answer = api.refused(400, "invalid_binding", method, path, {"bindings": [binding]})
        assert says in answer["message"] and "number 1" in answer["message"]


def test_lists_are_bounded_and_one_name_is_one_place(api, secret, bound):
    one, path = f"{secret[0]}@{HOST}", f"/v1/sandboxes/{bound}"
    assert len(patch(api, bound, [one] * 64)) == 64
    api.refused(400, "invalid_binding", "PATCH", path, {"bindings": [one] * 65})
    api.refused(400, "invalid_binding", "PATCH", path, {"bindings": {}})
    api.refused(400, "invalid_binding", "PATCH", path,
                {"bindings": [one + " name=n", f"{secret[0]}@other.test name=n"]})
    assert len(api.get(bound)["bindings"]) == 64, "what is refused changes nothing"
    patch(api, bound, [one])


def test_a_secret_must_exist_be_ones_own_and_fit(api, secret, bound):
    team, broken = fresh_name(), fresh_name()
    path, ask = f"/v1/sandboxes/{bound}", {"bindings": [f"{secret[0]}@{HOST}"]}
    answer = api.refused(404, "secret_not_found", "PATCH", path, {"bindings": [f"nosuch@{HOST}"]})
    assert "nosuch" in answer["message"]
    api.ok("POST", "/v1/secrets", {"name": broken, "value": "a\nb"})
    api.refused(400, "invalid_binding", "PATCH", path, {"bindings": [f"{broken}@{HOST}"]})
    patch(api, bound, [f"{broken}@{HOST} as=basic user=u", ask["bindings"][0]])
    api.ok("DELETE", f"/v1/secrets/{broken}")
    assert len(api.get(bound)["bindings"]) == 2, "a binding outlives its secret; what fits it is refused"
    api.ok("PATCH", path, {"metadata": {"a": "b"}})
    patch(api, bound, ask["bindings"])
    api.ok("POST", "/v1/teams", {"name": team})
    other = api.with_key(api.ok("POST", "/v1/keys", {"team": team, "name": "k"})["key"])
    other.refused(404, "secret_not_found", "POST", "/v1/sandboxes", ask)
    mine = api.ok("GET", f"/v1/secrets/{secret[0]}")["id"]
    other.refused(404, "secret_not_found", "POST", "/v1/sandboxes", {"bindings": [f"{mine}@{HOST}"]})
    other.refused(404, "sandbox_not_found", "PATCH", path, {"bindings": []})
    patch(api, bound, [f"{mine}@{HOST}"])  # by its id, for its owner
    api.ok("DELETE", f"/v1/teams/{team}")


def test_a_template_binds_for_its_owner_alone(api, secret):
    team, template = fresh_name(), fresh_name()
    api.refused(404, "secret_not_found", "POST", "/v1/templates", {"name": template, "bindings": [f"nosuch@{HOST}"]})
    made = api.ok("POST", "/v1/templates", {"name": template, "bindings": [f"{secret[0]}@{HOST}"], "public": True})
    assert made["bindings"][0]["secret"] == secret[0]
    assert api.ok("GET", f"/v1/templates/{template}")["bindings"] == made["bindings"]
    own = api.create(template=template)
    assert own["bindings"] == made["bindings"]
    none = api.create(template=template, bindings=[])
    assert none["bindings"] == []
    api.ok("POST", "/v1/teams", {"name": team})
    other = api.with_key(api.ok("POST", "/v1/keys", {"team": team, "name": "k"})["key"])
    other.ok("POST", "/v1/secrets", {"name": secret[0], "value": "theirs"})
    assert other.ok("GET", f"/v1/templates/{template}")["bindings"] == []
    theirs = other.create(template=template)
    assert theirs["bindings"] == [], "a stranger's template does not send my secrets to places of its choice"
    other.delete(theirs["id"])
    for made in (own, none):
        api.delete(made["id"])
    api.ok("DELETE", f"/v1/templates/{template}")
    api.ok("DELETE", f"/v1/teams/{team}")


SEES = r"""
import os, ssl
want = ssl.PEM_cert_to_DER_cert(open("/usr/local/share/ca-certificates/warren.crt").read())
def trusted(**where):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.load_verify_locations(**where)
    return want in c.get_ca_certs(binary_form=True)
print(trusted(cafile="/etc/ssl/certs/ca-certificates.crt"), open("/etc/ssl/certs/ca-certificates.crt").read().count("# Warren, sandbox"),
      trusted(cafile=os.environ["SSL_CERT_FILE"]), os.path.exists(os.environ["NODE_EXTRA_CA_CERTS"]))
"""


def subject(api, who):
    return api.out(who, "openssl x509 -noout -subject -in /usr/local/share/ca-certificates/warren.crt")


def test_the_programs_inside_trust_the_sandboxs_own_authority(api, secret, bound):
    patch(api, bound, [f"{secret[0]}@{HOST}"])
    assert api.out(bound, ["python3", "-c", SEES]).split() == ["True", "1", "True", "True"]
    found = api.out(bound, "openssl verify /usr/local/share/ca-certificates/warren.crt; openssl verify -no-CAfile "
                           "-CApath /etc/ssl/certs /usr/local/share/ca-certificates/warren.crt")
    assert found.count(": OK") == 2, found
    assert bound in subject(api, bound)
    key = "/usr/local/share/ca-certificates/warren.crt"
    api.ok("POST", f"/v1/sandboxes/{bound}/stop")
    before = api.ok("POST", f"/v1/sandboxes/{bound}/start") and api.out(bound, f"openssl x509 -noout -pubkey -in {key}")
    assert api.out(bound, ["python3", "-c", SEES]).split() == ["True", "1", "True", "True"], "once is enough"
    other = api.create(bindings=[f"{secret[0]}@{HOST}"])["id"]
    assert api.out(other, f"openssl x509 -noout -pubkey -in {key}") != before
    assert bound not in subject(api, other)
    api.delete(other)


def test_a_fork_has_the_bindings_and_an_authority_of_its_own(api, secret, bound):
    patch(api, bound, [f"{secret[0]}@{HOST}"])
    fork = api.ok("POST", f"/v1/sandboxes/{bound}/fork", {"count": 1})["sandboxes"][0]
    assert fork["bindings"] == api.get(bound)["bindings"]
    assert api.out(fork["id"], ["python3", "-c", SEES]).split() == ["True", "1", "True", "True"]
    assert fork["id"] in subject(api, fork["id"]) and bound in subject(api, bound)
    gone = fresh_name()
    api.ok("POST", "/v1/secrets", {"name": gone, "value": "x"})
    patch(api, fork["id"], [f"{gone}@{HOST}"])
    kept = api.ok("POST", f"/v1/sandboxes/{fork['id']}/checkpoints", {})
    api.ok("DELETE", f"/v1/secrets/{gone}")
    back = api.ok("POST", f"/v1/checkpoints/{kept['id']}/sandboxes", {})
    assert back["bindings"][0]["secret"] == gone, "files come back although a secret is gone"
    for one in (fork, back):
        api.delete(one["id"])
    api.ok("DELETE", f"/v1/checkpoints/{kept['id']}")


def test_what_the_client_says_of_variables_stands_and_names_alone_need_no_trust(api, secret):
    made = api.create(bindings=[f"{secret[0]}@{HOST} name=me transparent=no"], env={"SSL_CERT_FILE": "/mine"})["id"]
    show = "echo ${SSL_CERT_FILE-none} ${CURL_CA_BUNDLE-none}; ls /usr/local/share/ca-certificates"
    assert api.out(made, show).split() == ["/mine", "none"]
    patch(api, made, [f"{secret[0]}@{HOST}"])  # while it runs
    assert api.out(made, show).split() == ["/mine", "/etc/ssl/certs/ca-certificates.crt", "warren.crt"]
    assert "nameserver" in api.out(made, "cat /etc/resolv.conf")
    assert secret[1] not in api.out(made, "env; cat /proc/*/environ /etc/ssl/certs/*.0 2>/dev/null | tr '\\0' '\\n'")
    api.delete(made)


@pytest.mark.parametrize("trap", [
    "rm -f /etc/ssl/certs/ca-certificates.crt; mkfifo /etc/ssl/certs/ca-certificates.crt",
    "rm -rf /etc/ssl /usr/local/share; ln -s /proc/1/root/../../.. /etc/ssl; ln -s /dev/full /usr/local/share",
    "rm -f /etc/ssl/certs/ca-certificates.crt; ln -s /dev/zero /etc/ssl/certs/ca-certificates.crt",
    "rm -f /etc/ssl/certs/ca-certificates.crt; truncate -s 1T /etc/ssl/certs/ca-certificates.crt",
    "rm -rf /etc/ssl; ln -s /etc/ssl /etc/ssl; chattr +i /etc 2>/dev/null; mount -t tmpfs -o ro none /usr/local 2>/dev/null; true"])
def test_files_that_are_traps_cost_only_the_sandbox_itself(api, secret, trap):
    made = api.create(memory_mb=256)["id"]
    api.exec(made, trap)
    assert len(patch(api, made, [f"{secret[0]}@{HOST}"])) == 1
    assert api.out(made, "echo still here").strip() == "still here"
    api.delete(made)


def test_bindings_outlive_the_daemon_and_are_not_in_what_is_left_of_the_dead(fresh, tiny_tar):
    api, value = fresh.api, "hunter2-" + uuid.uuid4().hex
    api.import_image("tiny", tiny_tar)
    api.ok("POST", "/v1/secrets", {"name": "kept", "value": value})
    made = api.create(image="tiny", bindings=[f"kept@{HOST}", {"value": "lit-" + value, "host": HOST, "as": "header", "header": "x"}])
    crt = f"/v1/sandboxes/{made['id']}/files?path=/usr/local/share/ca-certificates/warren.crt"
    key = api.call("GET", crt).body
    assert b"BEGIN CERTIFICATE" in key
    fresh.kill()
    fresh.start()
    assert api.get(made["id"])["bindings"] == made["bindings"]
    assert api.call("GET", crt).body == key
    broker = fresh.pids("warren-broker")
    for pid in broker:
        os.kill(pid, signal.SIGKILL)
    until(lambda: fresh.pids("warren-broker") and not set(fresh.pids("warren-broker")) & set(broker), "a new broker")
    assert len(patch(api, made["id"], [f"kept@{HOST}"])) == 1
    for sql in (fresh.data / "state").iterdir():
        if sql.is_file():
            assert re.search(rb"(?<!lit-)" + value.encode(), sql.read_bytes()) is None, sql
    assert value not in fresh.log()
    api.delete(made["id"])
    gone = api.refused(404, "sandbox_gone", "GET", f"/v1/sandboxes/{made['id']}")
    assert "lit-" not in json.dumps(gone)


def test_the_command_line_binds_and_shows(daemon, api, secret):
    name = secret[0]
    box = daemon.cli("create", "--bind", f"{name}@{HOST}/v1/* as=header header=x-api-key format='T {{}}'".replace("'", '"'),
                     "--bind", f"{name}@*.bound.test methods=GET,POST").stdout.strip()
    shown = daemon.cli("bindings", box).stdout
    assert "header x-api-key" in shown and "GET,POST" in shown and "*.bound.test:443" in shown and secret[1] not in shown
    assert [b["as"] for b in json.loads(daemon.cli("--json", "bindings", box).stdout)] == ["header", "bearer"]
    assert f"{name}@{HOST}:443/v1/*" in daemon.cli("get", box).stdout
    daemon.cli("update", "--bind", f"{name}@{HOST} name=me transparent=no", box)
    assert "http://me.warren" in daemon.cli("bindings", box).stdout
    daemon.cli("update", "--no-bindings", box)
    assert api.get(box)["bindings"] == []
    wrong = daemon.cli("update", "--bind", f"{name}@{HOST} as=cookie", box)
    assert wrong.returncode != 0 and "bearer, header, query" in wrong.stderr
    out = daemon.cli("run", "--bind", f"{name}@{HOST}", "sh", "-c", "echo $NODE_EXTRA_CA_CERTS")
    assert out.stdout.strip() == "/usr/local/share/ca-certificates/warren.crt", out
    daemon.cli("rm", box)
