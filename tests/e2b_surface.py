"""The public surface of E2B's packages, read from their declarations, and what of it the tests name."""
import re


def classes(text):
    """{name: [member]} of the classes and option types that the package exports."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    exports = re.findall(r"^export \{(.*?)\};", text, re.S | re.M)[-1]
    public = {re.sub(r"^type ", "", e.strip()).split(" as ")[0] for e in exports.split(",")}
    found = {}
    for m in re.finditer(r"^(?:export )?(?:declare )?(class|interface|type) (\w+)[^\n]*\{$", text, re.M):
        if m[2] in public and (m[1] == "class" or re.search("Opts$|Options$", m[2])):
            found[m[2]] = members(body(text, m.end()))
    return found


def body(text, at):
    depth, end = 1, at
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[at:end - 1]


def members(block):
    """Names at the top level of a declaration, without those that are private."""
    names, depth = [], 0
    for line in block.splitlines():
        if depth == 0:
            m = re.match(r"\s+((?:static |readonly |get |async |abstract )*)([A-Za-z]\w*)\??\s*[(:<]", line)
            if m and m[2] not in ("constructor", "private", "protected"):
                names.append(m[2])
        depth += sum(map(line.count, "{([")) - sum(map(line.count, "})]"))
    return sorted(set(names))


# How the clients are put together inside; and what stands on servers that are E2B's alone.
INNER = {"ConnectionConfig", "VolumeConnectionConfig", "ApiClient"}
THEIRS = {"iamToken", "betaDevContainerPrebuild", "betaSetDevContainerStart", "addMcpServer"}


def missing(modules, packages, tests):
    """Lines that say which public name no test has."""
    text = "\n".join(p.read_text() for p in sorted(tests.glob("*.test.mjs")))
    lines = []
    for package in packages:
        declared = classes((modules / package / "dist/index.d.ts").read_text())
        for name, names in declared.items():
            wanted = [name] if name.endswith("Error") else [n for n in names if n not in THEIRS]
            lines += [f"{package} {name}: {n}" for n in wanted
                      if name not in INNER and not re.search(rf"\b{n}\b", text)]
    return lines
