"""Keep a web server running in a sandbox, talk to it from inside, read its log, end it."""
from warren_sandbox import Client

WAIT = "until curl -sf -o /dev/null http://127.0.0.1:8000/; do sleep 0.05; done"

with Client().sandboxes.create(timeout_s=300) as box:
    box.run("mkdir -p /srv/www && echo '<h1>it works</h1>' > /srv/www/index.html", check=True)
    server = box.processes.start(["python3", "-u", "-m", "http.server", "8000"], cwd="/srv/www",
                                 label="web")
    box.run(WAIT, timeout=30, check=True)
    page = box.run("curl -s http://127.0.0.1:8000/index.html", check=True)
    print(page.stdout.strip())
    assert "it works" in page.stdout

    server.signal("SIGTERM", scope="tree")
    end = server.wait()
    print("the server ended by", end.signal)
    log = b"".join(e.data for e in server.output(follow=False)).decode()
    assert "GET /index.html" in log, log
print("done")
