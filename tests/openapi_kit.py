"""The API's description, held against what is really sent and answered.

`Contract` reads the document, `Checked` is a client that lets nothing pass which the document does
not say: parameters, bodies, statuses, headers, and every member of every answer.
"""
import json
import re
import urllib.parse
import warnings

import harness

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import jsonschema

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


class Contract:
    def __init__(self, doc):
        self.doc = doc
        self.resolver = jsonschema.RefResolver.from_schema(doc)
        self.operations = {}  # (method, pattern) -> operation
        for pattern, item in doc["paths"].items():
            for method, operation in item.items():
                self.operations[method.upper(), pattern] = operation
        self.exercised = {}  # operationId -> statuses seen

    def deref(self, value):
        while isinstance(value, dict) and "$ref" in value:
            value = self.resolver.resolve(value["$ref"])[1]
        return value

    def errors(self, schema, value):
        validator = jsonschema.Draft202012Validator(
            schema, resolver=self.resolver, format_checker=jsonschema.FormatChecker())
        found = sorted(validator.iter_errors(value), key=lambda e: -len(e.path))
        for error in found:
            for inner in error.context or []:  # which branch came closest
                if len(inner.path) >= len(error.path) and "was expected" not in inner.message:
                    error = inner
            return f"{'/'.join(map(str, error.absolute_path)) or '(top)'}: {error.message[:300]}"
        return None

    def find(self, method, path):
        """The operation whose pattern takes this path; literal segments win over braces."""
        segments = path.split("?")[0].strip("/").split("/")
        best = None
        for (m, pattern), operation in self.operations.items():
            parts = pattern.strip("/").split("/")
            if m != method or len(parts) != len(segments):
                continue
            if all(p == s or p.startswith("{") for p, s in zip(parts, segments)):
                braces = sum(p.startswith("{") for p in parts)
                if best is None or braces < best[0]:
                    best = (braces, pattern, operation)
        return best[1:] if best else (None, None)

    # -- what is sent

    def check_query(self, operation, path):
        declared = {p["name"]: p for p in map(self.deref, operation.get("parameters", []))
                    if p["in"] == "query"}
        given = urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query, keep_blank_values=True)
        for name, text in given:
            if name not in declared and name.split(".")[0] in declared:
                assert self.deref(declared[name.split(".")[0]]["schema"])["type"] == "object", name
                continue
            assert name in declared, f"the query's '{name}' is not described"
            schema = self.deref(declared[name]["schema"])
            if schema.get("type") == "array":
                schema = self.deref(schema["items"])
            value = {"boolean": lambda t: {"true": True, "false": False}[t], "integer": int,
                     "number": float}.get(schema.get("type"), str)(text)
            wrong = self.errors(schema, value)
            assert not wrong, f"the query's '{name}': {wrong}"
        for name, parameter in declared.items():
            assert not parameter.get("required") or name in dict(given), f"'{name}' is required"

    def check_request(self, operation, path, body, headers):
        self.check_query(operation, path)
        described = {self.deref(p)["name"].lower() for p in operation.get("parameters", [])
                     if self.deref(p)["in"] == "header"}
        for name in headers or {}:
            assert name.lower() in described | {"accept", "content-type", "content-length",
                                                "content-encoding", "x-warren-team"}, name
        request = operation.get("requestBody")
        if body is None:
            assert not (request or {}).get("required"), "a body is required"
            return
        assert request, "no body is described"
        if isinstance(body, (dict, list)):
            wrong = self.errors(request["content"]["application/json"]["schema"], body)
            assert not wrong, f"the request's body: {wrong}"
        else:
            kind = (headers or {}).get("Content-Type", "application/octet-stream").split(";")[0]
            assert kind in request["content"], f"a body of {kind} is not described"

    # -- what is answered

    def response_of(self, operation, status):
        responses = operation["responses"]
        if status < 400:
            assert str(status) in responses, f"the answer {status} is not described"
        return self.deref(responses.get(str(status)) or responses["default"])

    def check_answer(self, operation, status, headers, body):
        response = self.response_of(operation, status)
        for name, header in response.get("headers", {}).items():
            header = self.deref(header)
            value = headers.get(name)
            assert value is not None or not header.get("required"), f"the header {name} is missing"
            wrong = value is not None and self.errors(header["schema"], value)
            assert not wrong, f"the header {name}: {wrong}"
        content = response.get("content")
        if not content:
            assert not body, f"an answer of {status} has a body: {body[:200]!r}"
            return
        kind = (headers.get("Content-Type") or "").split(";")[0]
        assert kind in content, f"an answer of '{kind}' is not described: {body[:200]!r}"
        schema = content[kind].get("schema")
        if schema is None:
            return
        if kind == "application/x-ndjson":
            for line in body.splitlines():
                wrong = self.errors(schema, json.loads(line))
                assert not wrong, f"the line {line[:300]!r}: {wrong}"
        else:
            value = json.loads(body) if kind == "application/json" else body.decode()
            wrong = self.errors(schema, value)
            assert not wrong, f"the answer {body[:300]!r}: {wrong}"


class Checked(harness.Api):
    """A client of the contract. Failures are answers too: those are checked the same way."""

    def __init__(self, api, contract):
        super().__init__(api.connect, api.key)
        self.contract = contract

    def with_key(self, key):
        return Checked(harness.Api(self.connect, key), self.contract)

    def call(self, method, path, body=None, headers=None, timeout=harness.DEADLINE * 2):
        pattern, operation = self.contract.find("GET" if method == "HEAD" else method, path)
        assert operation, f"{method} {path} is not described"
        try:
            reply = super().call(method, path, body, headers, timeout)
            if reply.status < 400:  # what is refused may be wrong on purpose
                self.contract.check_request(operation, path, body, headers)
            if method != "HEAD":
                self.contract.check_answer(operation, reply.status, reply.headers, reply.body)
        except AssertionError as error:
            raise AssertionError(f"{method} {pattern}: {error}") from None
        self.contract.exercised.setdefault(operation["operationId"], set()).add(reply.status)
        return reply

    def lines(self, method, path, body=None, headers=None):
        """A stream read to its end."""
        reply = self.call(method, path, body, {"Accept": "application/x-ndjson", **(headers or {})})
        assert reply.status == 200, f"{method} {path}: {reply}"
        return [json.loads(line) for line in reply.body.splitlines()]

    def head_of(self, path, count, deadline=harness.DEADLINE):
        """The first lines of a stream that has no end."""
        pattern, operation = self.contract.find("GET", path)
        schema = operation["responses"]["200"]["content"]["application/x-ndjson"]["schema"]
        seen = []
        with self.stream("GET", path, timeout=deadline) as stream:
            for line in stream:
                wrong = self.contract.errors(schema, line)
                assert not wrong, f"GET {pattern}: the line {line}: {wrong}"
                seen.append(line)
                if len(seen) == count:
                    break
        self.contract.exercised.setdefault(operation["operationId"], set()).add(200)
        return seen


# -- the document itself

def walk(value, at="#"):
    yield at, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, f"{at}/{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from walk(inner, f"{at}/{index}")


def schemas_of(doc):
    """Every schema there is, with its place."""
    for at, value in walk(doc):
        if re.search(r"/(schema|items)$|#/components/schemas/[^/]+$|/properties/[^/]+$", at):
            if "/examples/" not in at and "/example/" not in at:
                yield at, value


def faults(contract):
    """What keeps the document from being OpenAPI 3.1 as we mean it."""
    doc = contract.doc
    if not re.fullmatch(r"3\.1\.\d+", doc.get("openapi", "")):
        yield "openapi must be 3.1.x"
    for member in ("info", "servers", "security", "tags", "paths", "components"):
        if member not in doc:
            yield f"'{member}' is missing"
    unknown = set(doc) - {"openapi", "info", "jsonSchemaDialect", "servers", "paths", "webhooks",
                          "components", "security", "tags", "externalDocs"}
    if unknown or not {"title", "version"} <= set(doc["info"]):
        yield f"the top has {unknown}, or info lacks its title or version"
    for at, value in walk(doc):
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            try:
                contract.deref(value)
            except jsonschema.RefResolutionError:
                yield f"{at}: {value['$ref']} leads nowhere"
    yield from operation_faults(contract)
    yield from schema_faults(contract)


def operation_faults(contract):
    doc, ids = contract.doc, []
    tags = {t["name"] for t in doc["tags"]}
    for pattern, item in doc["paths"].items():
        if set(item) - set(METHODS):
            yield f"{pattern}: {set(item) - set(METHODS)} is no method"
    for (method, pattern), operation in contract.operations.items():
        at = f"{method} {pattern}"
        ids.append(operation.get("operationId"))
        if set(operation) - {"operationId", "tags", "summary", "description", "parameters",
                             "requestBody", "responses", "security", "deprecated"}:
            yield f"{at}: {set(operation)}"
        if not operation.get("summary") or not set(operation.get("tags", [])) <= tags:
            yield f"{at}: needs a summary and known tags"
        parameters = [contract.deref(p) for p in operation.get("parameters", [])]
        places = [(p["in"], p["name"]) for p in parameters]
        if len(set(places)) != len(places):
            yield f"{at}: a parameter twice"
        in_path = {p["name"] for p in parameters if p["in"] == "path" and p.get("required")}
        if in_path != set(re.findall(r"\{(\w+)\}", pattern)):
            yield f"{at}: the path's parameters are {in_path}"
        if any("schema" not in p or p["in"] not in ("path", "query", "header") for p in parameters):
            yield f"{at}: a parameter without a schema, or in an odd place"
        codes = set(operation["responses"])
        if "default" not in codes or not any(c[0] in "12" for c in codes):
            yield f"{at}: needs a success and the failure"
        for code, response in operation["responses"].items():
            response = contract.deref(response)
            if not response.get("description") or "X-Request-Id" not in response.get("headers", {}):
                yield f"{at}: the answer {code} needs a description and X-Request-Id"
        if "requestBody" in operation and not operation["requestBody"].get("content"):
            yield f"{at}: a body of no type"
    if len(set(ids)) != len(ids) or None in ids:
        yield f"operation ids are missing or double: {sorted(map(str, ids))}"


def schema_faults(contract):
    for at, schema in schemas_of(contract.doc):
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            yield f"{at}: {error.message}"
            continue
        if isinstance(schema, dict) and "properties" in schema:
            if "additionalProperties" not in schema:
                yield f"{at}: says nothing of other members"
            if set(schema.get("required", [])) - set(schema["properties"]):
                yield f"{at}: requires what it does not describe"
        for example in schema.get("examples", []) if isinstance(schema, dict) else []:
            wrong = contract.errors(schema, example)
            if wrong:
                yield f"{at}: its example is wrong: {wrong}"
    used = {v["$ref"] for _, v in walk(contract.doc) if isinstance(v, dict) and "$ref" in v}
    for kind, things in contract.doc["components"].items():
        for name in things:
            if kind != "securitySchemes" and f"#/components/{kind}/{name}" not in used:
                yield f"components/{kind}/{name} is not used"
