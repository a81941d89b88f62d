"""Code that is run in a sandbox, through E2B's Python code interpreter client."""
import asyncio
import json
import os

import e2b_code_interpreter as ci
from e2b_code_interpreter import NotFoundException, SandboxException, TimeoutException
from lib import Blocking, SYNC, create, fails, flavoured, main, test, until

Sandbox = flavoured(ci, "Sandbox")
TEMPLATE = "code-interpreter-v1"
sbx = None


async def box():
    global sbx
    sbx = sbx or await create(TEMPLATE, Sandbox, envs={"FROM": "sandbox"})
    return sbx


async def run(code, language=None, **options):
    e = await (await box()).run_code(code, language=language, **options)
    assert e.error is None, e.error
    return e


@test("run_code python :: results, both streams, state and its count")
async def _():
    e = await run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx = 41\n1 + 1")
    assert (e.text, e.logs.stdout, e.logs.stderr) == ("2", ["out\n"], ["err\n"])
    again = await run("x += 1; x")
    assert again.text == "42" and again.execution_count == e.execution_count + 1
    assert again.results[0].is_main_result


@test("run_code language :: javascript, typescript and bash")
async def _():
    assert (await run("const a = 40; a + 2", "javascript")).text == "42"
    assert (await run("const b: number = 1; b + 1", "typescript")).text == "2"
    assert (await run("echo $((40 + 2))", "bash")).logs.stdout == ["42\n"]
    assert (await run("1 + 1", "python")).text == "2"


@test("run_code on_stdout, on_stderr, on_result, on_error :: each is told while the code runs")
async def _():
    seen = []
    e = await (await box()).run_code(
        "import sys\nprint('one', flush=True)\ndisplay(2)\nprint('three', file=sys.stderr, flush=True)\n1/0",
        on_stdout=lambda m: seen.append(("out", m.line)), on_stderr=lambda m: seen.append(("err", m.line)),
        on_result=lambda r: seen.append(("result", r.text)), on_error=lambda x: seen.append(("error", x.name)))
    assert seen == [("out", "one\n"), ("result", "2"), ("err", "three\n"), ("error", "ZeroDivisionError")]
    assert e.error.name == "ZeroDivisionError" and "1/0" in e.error.traceback


@test("run_code envs :: of that run alone, over the sandbox's")
async def _():
    code = "import os; (os.environ.get('FROM'), os.environ.get('MINE'))"
    assert (await run(code, envs={"MINE": "ours"})).text == "('sandbox', 'ours')"
    assert (await run(code)).text == "('sandbox', None)"


@test("run_code timeout :: a run over its time is a TimeoutException, and is interrupted")
async def _():
    await fails(TimeoutException, (await box()).run_code("import time\nwhile True: time.sleep(0.05)", timeout=1))
    assert (await run("'free'")).text == "free"


@test("ExecutionError :: a name, a value and where")
async def _():
    e = await (await box()).run_code("def f():\n    return {}['k']\nf()")
    assert (e.error.name, e.error.value) == ("KeyError", "'k'")
    assert json.loads(e.error.to_json())["name"] == "KeyError"


@test("Result png, chart :: a figure as a picture and as data")
async def _():
    e = await run("import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2]); plt.title('T'); plt.show()")
    [r] = e.results
    assert r.png.startswith("iVBOR") and r.chart.title == "T"
    assert [(b.label, b.value) for b in r.chart.elements] == [("a", 1.0), ("b", 2.0)] or len(r.chart.elements) == 2
    assert {"png", "chart"} <= set(r.formats())


@test("Result html, data, json, markdown, svg, latex, javascript, jpeg, pdf, extra :: what a display is made of")
async def _():
    assert (await run("import pandas as pd; pd.DataFrame({'a': [1, 2]})")).results[0].data == {"a": [1, 2]}
    for name, code in {"html": "HTML('<b>x</b>')", "markdown": "Markdown('# x')", "latex": "Latex('$x$')",
                       "json": "JSON({'a': 1})", "javascript": "Javascript('1')",
                       "svg": "SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')"}.items():
        [r] = (await run(f"from IPython.display import *\ndisplay({code})")).results
        assert getattr(r, name), name
    for name, kind in {"jpeg": "image/jpeg", "pdf": "application/pdf", "extra": "application/x-tests"}.items():
        [r] = (await run(f"display({{'{kind}': 'eA=='}}, raw=True)")).results
        assert getattr(r, name) in ("eA==", {kind: "eA=="}), name


@test("create_code_context, list_code_contexts, restart_code_context, remove_code_context :: states of their own")
async def _():
    context = await (await box()).create_code_context(cwd="/tmp", language="python")
    assert context.cwd == "/tmp" and context.language == "python"
    assert (await sbx.run_code("import os; y = 1; os.getcwd()", context=context)).text == "/tmp"
    assert context.id in [c.id for c in await sbx.list_code_contexts()]
    assert (await sbx.run_code("y")).error.name == "NameError"
    await sbx.restart_code_context(context)
    assert (await sbx.run_code("y", context=context)).error.name == "NameError"
    await sbx.remove_code_context(context)
    await fails(NotFoundException, sbx.run_code("1", context=context))


@test("errors :: a language that is not there is a SandboxException")
async def _():
    await fails(SandboxException, (await box()).run_code("1", language="cobol"), "cobol")
    await fails(SandboxException, sbx.run_code("1", language="r"),
                "no kernel for 'r'; the template 'interpreter-all' has python, javascript, typescript, bash, r, java")


@test("errors :: a sandbox that is killed while code runs ends the call")
async def _():
    victim = await create(TEMPLATE, Sandbox)
    begun = []
    running = asyncio.create_task(victim.run_code("print('on', flush=True)\nimport time; time.sleep(60)",
                                                  on_stdout=lambda m: begun.append(m)))
    await until(lambda: begun, "the code's start")
    await victim.kill()
    await fails(Exception, running)


@test("Sandbox.connect :: another client has the same state")
async def _():
    await run("shared = 'state'")
    again = await Sandbox.connect(sbx.sandbox_id)
    assert (await again.run_code("shared")).text == "state"


@test("E2B :: a client with options of its own")
async def _():
    client = ci.E2B(api_key=os.environ["E2B_API_KEY"])
    own = await create(TEMPLATE, Blocking(client.Sandbox) if SYNC else client.AsyncSandbox)
    assert (await own.run_code("1 + 1")).text == "2"


main()
