"""Make a sandbox, run something in it, and let it go."""
from warren_sandbox import Client

client = Client()  # WARREN_URL and WARREN_API_KEY say where and who
with client.sandboxes.create(timeout_s=300) as box:
    result = box.run(["python3", "-c", "import platform; print(platform.node())"], check=True)
    print("hello from", result.stdout.strip())
    assert result.stdout.strip() == box.id
print("done")
