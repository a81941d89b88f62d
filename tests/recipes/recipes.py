"""The built-in images, each as a user would have it: made by `warren-image`, used in a sandbox.

Not part of `./dev test`: making them takes minutes and a gigabyte. `./dev recipes` runs this.
"""
import base64
import http.server
import json
import os
import queue
import shutil
import subprocess
import threading

import pytest

from harness import BUILD, ROOT, Daemon, until


@pytest.fixture(scope="module")
def place():
    daemon = Daemon()
    try:
        yield daemon
    finally:
        daemon.close()


def add(place, name):
    env = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}",
           "WARREN_SOCKET": f"{place.run}/warren.sock"}
    done = subprocess.run([str(ROOT / "images/warren-image"), name], env=env, text=True,
                          capture_output=True, timeout=2400)
    assert done.returncode == 0, done.stderr[-3000:]


def make(place, name):
    """A sandbox of the recipe's template."""
    add(place, name)
    return place.api.create(template=name)["id"]


@pytest.mark.timeout(3000)
def test_code_interpreter(place):
    box = make(place, "code-interpreter")
    program = """
import io, json, matplotlib, matplotlib.pyplot as plt, numpy as np, pandas as pd, scipy.stats
frame = pd.DataFrame({"x": np.arange(10), "y": np.arange(10) ** 2})
plt.plot(frame.x, frame.y)
out = io.BytesIO()
plt.savefig(out, format="png")
print(json.dumps({"sum": int(frame.y.sum()), "png": out.getvalue()[:4].hex(),
                  "backend": matplotlib.get_backend().lower()}))
"""
    out = place.api.out(box, ["python3", "-c", program], timeout=120)
    assert out == '{"sum": 285, "png": "89504e47", "backend": "agg"}\n'
    kernel = """
import jupyter_client
manager, client = jupyter_client.manager.start_new_kernel(kernel_name="python3")
def run(code):
    text = []
    client.execute_interactive(code, timeout=60, output_hook=lambda m: text.append(
        m["content"].get("text") or m["content"].get("data", {}).get("text/plain", "")))
    return "".join(text)
run("x = 20")
print(run("x + 22"))
manager.shutdown_kernel(now=True)
"""
    assert place.api.out(box, ["python3", "-c", kernel], timeout=120).strip() == "42"
    assert place.api.out(box, "id -un; sudo -n id -un; node -p 1+1") == "user\nroot\n2\n"


def run_code(place, box, code, language, env={"OWN": "mine"}):
    """What the interpreter in there answers, event by event."""
    body = json.dumps({"code": code, "language": language, "env_vars": env})
    out = place.api.out(box, ["curl", "-sS", "-d", body, "http://localhost:49999/execute"], timeout=120)
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.timeout(3000)
def test_interpreter_all(place):
    box = make(place, "interpreter-all")
    for language, code, want in (("r", "x <- 40; print('out')\npaste(x + 2, Sys.getenv('OWN'))", '[1] "42 mine"'),
                                 ("java", 'int x = 40; System.out.println("out");\n(x + 2) + " " + System.getenv("OWN")',
                                  "42 mine")):
        events = run_code(place, box, code, language)
        assert "".join(e["text"] for e in events if e["type"] == "stdout").endswith("out\n" if language == "java" else 'out"\n')
        assert [e["text"] for e in events if e["type"] == "result"] == [want], events
        assert events[-1] == {"type": "end_of_execution"}
    # Variables of an execution are properties, too, while it runs.
    asked = run_code(place, box, 'System.getProperty("OWN")', "java")
    assert [e["text"] for e in asked if e["type"] == "result"] == ["mine"], asked
    after = run_code(place, box, 'System.getProperty("OWN") == null', "java", env={})
    assert [e["text"] for e in after if e["type"] == "result"] == ["true"], after
    heap = run_code(place, box, "Runtime.getRuntime().maxMemory() >> 20", "java")
    limit_mb = place.api.get(box)["memory_mb"]
    assert [e["text"] for e in heap if e["type"] == "result" and int(e["text"]) < limit_mb], heap
    assert [e["name"] for e in run_code(place, box, "x.nope()", "java") if e["type"] == "error"] == ["CompilationError"]
    assert [e["name"] for e in run_code(place, box, 'throw new IllegalStateException("bad");', "java")
            if e["type"] == "error"] == ["IllegalStateException"]
    assert any("bad" in e["value"] for e in run_code(place, box, "stop('bad')", "r") if e["type"] == "error")


@pytest.mark.timeout(3000)
def test_claude(place):
    box = make(place, "claude")
    for program in ("claude", "codex", "gemini"):
        out = place.api.out(box, f"{program} --version", timeout=120)
        assert any(c.isdigit() for c in out), (program, out)
    major = place.api.out(box, "node -p process.versions.node").split(".")[0]
    assert int(major) >= 22
    place.api.out(box, "npm --version && git --version && rg --version")


@pytest.mark.timeout(3000)
def test_desktop(place):
    add(place, "desktop")
    box = place.api.create(template="desktop-up")["id"]
    page = place.api.out(box, "curl -sL http://127.0.0.1:6080/vnc.html")
    assert "noVNC" in page
    hello = place.api.out(box, ["python3", "-c", """
import socket
s = socket.create_connection(("127.0.0.1", 5900))
print(s.recv(12).decode().strip())"""])
    assert hello.startswith("RFB 003.")
    place.api.out(box, "echo '<body style=background:lime><h1>A page</h1>' > page.html")
    place.api.start(box, "chromium --window-size=900,600 file://$HOME/page.html")
    until(lambda: place.api.exec(box, "xdotool search --onlyvisible --class chromium")["stdout"],
          "chromium's window", 60)
    place.api.start(box, "xterm -geometry 60x10+700+500 -e 'echo terminal; sleep 1000'")
    until(lambda: place.api.exec(box, "xdotool search --onlyvisible --class xterm")["stdout"],
          "the terminal's window", 60)

    def screen():
        """A picture of the screen, as soon as the page is on it."""
        place.api.out(box, "rm -f screen.p*; scrot screen.ppm; scrot screen.png")
        green = place.api.out(box, ["python3", "-c", """
data = open("screen.ppm", "rb").read()
print(data.count(bytes([0, 255, 0])))"""])
        return int(green) > 50000 and base64.b64decode(place.api.out(box, "base64 -w0 screen.png"))
    picture = until(screen, "the page on the screen", 60)
    assert picture.startswith(b"\x89PNG")
    if "WARREN_SCREENSHOT" in os.environ:
        with open(os.environ["WARREN_SCREENSHOT"], "wb") as file:
            file.write(picture)


PAGE = """<!doctype html><body><script type="module">
import { Client } from "/dist/index.js";
let said = "";
const say = (text) => (said += text + "\\n");
try {
  const client = new Client({ url: URL, key: KEY });
  const box = await client.create({ image: "base" });
  const result = await box.run("echo from the browser; exit 3");
  say(`ran: ${result.stdout.trim()} ${result.exit_code}`);
  await box.files.write("/root/note", new Blob(["kept"]));
  say(`read: ${await box.files.readText("/root/note")}`);
  await box.delete();
  await client.sandboxes.get("nobody").catch((e) => say(`error: ${e.code}`));
} catch (e) { say(`failed: ${e}`); }
await fetch("/said", { method: "POST", body: said });
</script>"""


@pytest.mark.timeout(900)
def test_the_javascript_client_in_a_browser(place, tmp_path):
    """Another origin than the daemon's, in the desktop image's own Chromium."""
    add(place, "base")
    package = tmp_path / "package"
    shutil.copytree(ROOT / "sdk/typescript", package,
                    ignore=shutil.ignore_patterns("node_modules", "dist"))
    for command in (["npm", "ci"], ["npm", "run", "build"]):
        subprocess.run(command, cwd=package, check=True, capture_output=True, timeout=170)
    (package / "page.html").write_text(
        PAGE.replace("URL", json.dumps(place.url)).replace("KEY", json.dumps(place.key)))
    said = queue.Queue()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=package)

        def do_POST(self):
            said.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = tmp_path / "root"
    root.mkdir()
    tar = subprocess.run([ROOT / "images/build", "desktop"], text=True, check=True,
                         stdout=subprocess.PIPE, timeout=2400).stdout.strip()
    subprocess.run(["tar", "-C", root, "-xf", tar], check=True, timeout=300)
    # The host's network is what the page needs; nothing else of it is seen.
    browser = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--root", root,
         "--mount-proc=/proc", "sh", "-c",
         "mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/urandom c 1 9; exec chromium --headless "
         "--user-data-dir=/tmp/profile --remote-debugging-port=0 "
         f"http://127.0.0.1:{server.server_address[1]}/page.html"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        lines = said.get(timeout=150).splitlines()
    finally:
        browser.kill()
        browser.wait()
        server.shutdown()
        server.server_close()
        shutil.rmtree(root, ignore_errors=True)  # a gigabyte
    assert lines == ["ran: from the browser 3", "read: kept", "error: sandbox_not_found"]
