"""The Python kernel: ipykernel, with variables for one execution, and with what it shows in shapes
that a program can read."""
import asyncio
import os
import random
import sys

# What editors use, a debugger and completion, is a third of this process's memory, which each copy of a sandbox would
# take again. Nobody asks this kernel for it; code that imports it finds it.
UNUSED = "debugpy", "jedi"
sys.modules.update(dict.fromkeys(UNUSED))

from ipykernel.ipkernel import IPythonKernel  # noqa: E402
from ipykernel.kernelapp import IPKernelApp  # noqa: E402

from . import shapes  # noqa: E402

for name in UNUSED:
    del sys.modules[name]


def put(env):
    """Set these; answers what puts back what was before (None: was not there)."""
    before = {name: os.environ.get(name) for name in env}
    for name, value in env.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return before


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as f:
        return f.read()


class Seeds:
    """A sandbox is mostly a copy of one that was ready, with this kernel's memory: what was seeded before would go on
    alike in all of them. A copy has another boot id."""

    def __init__(self):
        self.boot = boot_id()

    def renew(self):
        now = boot_id()
        if now == self.boot:
            return
        self.boot = now
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        if "ssl" in sys.modules:
            sys.modules["ssl"].RAND_add(os.urandom(32), 32)


class Kernel(IPythonKernel):
    seeds = Seeds()

    async def do_execute(self, *args, **kwargs):
        self.seeds.renew()
        ours = self.get_parent("shell").get("metadata", {}).get("warren", {})
        put(ours.get("news", {}))
        before = put(ours.get("env", {}))
        try:
            answer = super().do_execute(*args, **kwargs)
            return await answer if asyncio.iscoroutine(answer) else answer
        finally:
            put(before)


class App(IPKernelApp):
    kernel_class = Kernel

    def init_shell(self):
        super().init_shell()
        if self.shell:
            shapes.install(self.shell)

    def init_iopub(self, context):
        context.sndhwm = 0  # nothing that was printed may be dropped
        super().init_iopub(context)


if __name__ == "__main__":
    sys.path.insert(0, "")  # as in any interactive Python: modules beside the code
    App.launch_instance(
        argv=[*sys.argv[1:], "--InteractiveShell.colors=NoColor", "--HistoryManager.enabled=False",
              "--InteractiveShell.banner1="])
