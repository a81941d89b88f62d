"""Watch a command while it works, and come back to one that nobody watched."""
from warren_sandbox import Client

COUNT = "for i in 1 2 3; do echo step $i; sleep 0.1; done; echo careful >&2; exit 7"

with Client().sandboxes.create(timeout_s=300) as box:
    for event in box.stream(COUNT):
        if event.type in ("stdout", "stderr"):
            print(f"{event.type:>8}: {event.text}", end="")
        elif event.type == "exit":
            print(f"    exit: {event.exit_code} after {event.duration_ms} ms")
            assert event.exit_code == 7

    # This one goes on by itself. Any client may attach later and gets all of it.
    number = box.processes.start(COUNT, label="counter").number
    later = box.processes.get(number)
    assert later.wait().exit_code == 7
    assert later.result().stdout == "step 1\nstep 2\nstep 3\n"
print("done")
