// Code that is run in a sandbox, through E2B's own code interpreter client.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import * as ci from '@e2b/code-interpreter'
import { create, needs, since, test, until } from './lib.mjs'

const { NotFoundError, Sandbox, SandboxError, TimeoutError } = ci
const TEMPLATE = 'code-interpreter-v1'

let sbx
before(async () => { sbx = await create({ envs: { FROM: 'sandbox' } }, TEMPLATE, Sandbox) })

// A call that fails leaves its timer running, and node waits for it: a minute, by default.
const soon = { requestTimeoutMs: 8000 }

const remove = context => sbx.removeCodeContext?.(context) // the first releases have none

const out = e => e.logs.stdout.join('')
const python = (code, options) => sbx.runCode(code, options)
const inLanguage = language => (code, options) => sbx.runCode(code, { language, ...options })
const javascript = inLanguage('javascript')
const typescript = inLanguage('typescript')
const bash = inLanguage('bash')

async function main (code, run = python) {
  const e = await run(code)
  assert.equal(e.error, undefined, JSON.stringify(e.error))
  return e.results.find(r => r.isMainResult)
}
async function shown (code, run = python) {
  const e = await run(code)
  assert.equal(e.error, undefined, JSON.stringify(e.error))
  assert.equal(e.results.length, 1, JSON.stringify(e.results))
  return e.results[0]
}
async function error (code, run = python) {
  const e = await run(code)
  assert.ok(e.error, 'no error came')
  assert.doesNotMatch(e.error.traceback, /\x1b/)
  return e.error
}

// ---- Python ----

test('runCode python :: the last expression is the result, what is printed is in the logs', async () => {
  const e = await python('import sys\nprint("out")\nprint("err", file=sys.stderr)\n1 + 1')
  assert.equal(e.text, '2')
  assert.deepEqual([e.logs.stdout, e.logs.stderr], [['out\n'], ['err\n']])
  assert.ok(e.results[0].isMainResult)
})

test('runCode python :: state stays, and executions are counted', async () => {
  const first = await python('x = 41')
  const second = await python('x += 1; x')
  assert.equal(second.text, '42')
  assert.equal(second.executionCount, first.executionCount + 1)
})

test('runCode python :: it runs as root inside, in the user\'s home', async () => {
  assert.equal(out(await python('!id -un; pwd')).replaceAll('\r', ''), 'root\n/home/user\n')
})

test('runCode python :: text of any language comes through whole', async () => {
  const text = 'žluťoučký 你好 🙂 "quoted" \\ \u2028'
  assert.equal(out(await python(`print(${JSON.stringify(text)}, end="")`)), text)
  assert.equal((await python(JSON.stringify(text.replaceAll('"', '')))).text.includes('你好'), true)
})

test('runCode python :: a lot of output comes, all of it and in order', async () => {
  const e = await python('for i in range(20000): print(i)')
  assert.equal(out(e), Array.from({ length: 20000 }, (_, i) => `${i}\n`).join(''))
})

test('runCode python :: what asks for input is told that there is none', async () => {
  assert.equal((await error('input()')).name, 'StdinNotImplementedError')
})

test('runCode python :: await works at the top', async () => {
  assert.equal((await python('import asyncio; await asyncio.sleep(0.01, "slept")')).text, 'slept')
})

test('runCode python :: executions of one context wait for each other', async () => {
  const [a, b] = await Promise.all([python('import time; time.sleep(0.3); order = ["a"]'), python('order.append("b"); order')])
  assert.equal(a.error, undefined)
  assert.match(b.text ?? b.error.name, /a.*b|NameError/) // either may be first; neither is lost
})

test('runCode python :: a kernel that dies is told and replaced', async () => {
  const context = await sbx.createCodeContext()
  const e = await python('import os; os._exit(3)', { context })
  assert.equal(e.error.name, 'UnexpectedEndOfExecution')
  assert.equal((await python('"alive"', { context })).text, 'alive')
  await remove(context)
})

// ---- errors ----

test('ExecutionError :: name, value and a traceback without colours', async () => {
  const e = await error('def f():\n    return 1 / 0\nf()')
  assert.equal(e.name, 'ZeroDivisionError')
  assert.equal(e.value, 'division by zero')
  assert.match(e.traceback, /line 3[\s\S]*f\(\)[\s\S]*1 \/ 0/)
})

test('ExecutionError :: what cannot be parsed is an error, too', async () => {
  assert.equal((await error('def f(:')).name, 'SyntaxError')
  assert.equal((await error('const x = ;', javascript)).name, 'SyntaxError')
  assert.equal((await error('let x: = 1', typescript)).name, 'SyntaxError')
})

test('errors :: a context that is not there is a NotFoundError', async () => {
  await assert.rejects(python('1', { context: { id: 'nope' }, ...soon }), NotFoundError)
  if (!sbx.restartCodeContext) return
  await assert.rejects(sbx.restartCodeContext('nope'), NotFoundError)
  await assert.rejects(sbx.removeCodeContext('nope'), NotFoundError)
})

test('errors :: a language that is not there is a SandboxError', async () => {
  await assert.rejects(python('1', { language: 'cobol', ...soon }), SandboxError)
  await assert.rejects(sbx.createCodeContext({ language: 'cobol' }), SandboxError)
})

test('errors :: context and language together are refused', async () => {
  await assert.rejects(python('1', { language: 'python', context: { id: 'x' } }), /both|Only one/)
})

test('errors :: a sandbox that is killed while code runs ends the call', async () => {
  const victim = await create({}, TEMPLATE, Sandbox)
  const running = victim.runCode('print("on", flush=True)\nimport time; time.sleep(60)', { onStdout: () => { victim.kill() } })
  await assert.rejects(running, e => since('2.7.1') ? e instanceof TimeoutError : e instanceof Error)
  await assert.rejects(victim.runCode('1', soon), TimeoutError)
})

// ---- options ----

test('runCode onStdout, onStderr, onResult, onError :: each is told while the code runs', async () => {
  const seen = []
  const e = await python('import sys, time\nprint("one", flush=True)\ndisplay(2)\nprint("three", file=sys.stderr, flush=True)\n1/0', {
    onStdout: m => seen.push(['out', m.line, m.error]), onStderr: m => seen.push(['err', m.line, m.error]),
    onResult: r => seen.push(['result', r.text]), onError: x => seen.push(['error', x.name]) })
  assert.deepEqual(seen, [['out', 'one\n', false], ['result', '2'], ['err', 'three\n', true], ['error', 'ZeroDivisionError']])
  assert.equal(e.error.name, 'ZeroDivisionError')
})

test('runCode onStdout :: output comes before the end', async () => {
  let release
  const first = new Promise(resolve => { release = resolve })
  const running = python('import os, time\nprint("waiting", flush=True)\nwhile not os.path.exists("/tmp/go"): time.sleep(0.01)\n"gone"', {
    onStdout: () => release() })
  await first
  await sbx.files.write('/tmp/go', '')
  assert.equal((await running).text, 'gone')
})

test('runCode envs :: variables are there for one execution', async () => {
  const js = 'process.env.OWN + process.env.FROM'
  const py = 'import os; f\'{os.environ.get("OWN")} {os.environ.get("FROM")}\''
  assert.equal((await python(py, { envs: { OWN: 'x', FROM: 'call' } })).text, 'x call')
  assert.equal((await python(py)).text, 'None sandbox')
  assert.equal((await javascript(js, { envs: { OWN: 'y' } })).text, 'ysandbox')
  assert.equal((await javascript(js)).text, 'undefinedsandbox')
  assert.equal(out(await bash('echo "${OWN-none} $FROM"', { envs: { OWN: 'a b', FROM: 'call' } })), 'a b call\n')
  assert.equal(out(await bash('echo "${OWN-none} $FROM"')), 'none sandbox\n')
})

test('runCode envs :: the sandbox\'s own are there in every language', async () => {
  assert.equal((await python('import os; os.environ["E2B_SANDBOX_ID"]')).text, sbx.sandboxId)
  assert.equal((await javascript('process.env.E2B_SANDBOX')).text, 'true')
  assert.equal(out(await bash('echo $E2B_SANDBOX_ID')), `${sbx.sandboxId}\n`)
})

test('runCode timeoutMs :: code over its time is a TimeoutError, and interrupted', async () => {
  await assert.rejects(python('import time\nkept = 1\ntime.sleep(60)\nkept = 2', { timeoutMs: 2000 }), TimeoutError)
  assert.equal((await python('kept')).text, '1')
  await assert.rejects(javascript('await new Promise(r => setTimeout(r, 60000))', { timeoutMs: 2000 }), TimeoutError)
  await assert.rejects(javascript('for (;;) {}', { timeoutMs: 2000 }), TimeoutError)
  assert.equal((await javascript('"goes on"')).text, 'goes on')
  await assert.rejects(bash('sleep 60', { timeoutMs: 2000 }), TimeoutError)
  assert.equal(out(await bash('echo goes on')), 'goes on\n')
})

test('runCode requestTimeoutMs :: a call over its time is a TimeoutError', async () => {
  // One alone may be answered within a millisecond; twenty at once are not.
  const calls = await Promise.allSettled(Array.from({ length: 20 }, () => python('1', { requestTimeoutMs: 1 })))
  const late = calls.filter((call) => call.status === 'rejected')
  assert.ok(late.length > 0)
  for (const call of late) assert.ok(call.reason instanceof TimeoutError, String(call.reason))
})

test('runCode language :: names are taken in any case, and by their short forms', async () => {
  assert.equal((await python('1 + 1', { language: ' Python ' })).text, '2')
  assert.equal((await python('typeof 1', { language: 'js' })).text, 'number')
  assert.equal((await python('const n: number = 3; n', { language: 'ts' })).text, '3')
})

// ---- contexts ----

test('createCodeContext :: a context has its own state and directory', async () => {
  await python('mine = "default"')
  const context = await sbx.createCodeContext({ cwd: '/tmp' })
  assert.deepEqual([context.language, context.cwd], ['python', '/tmp'])
  assert.equal((await python('import os; os.getcwd()', { context })).text, '/tmp')
  assert.equal((await error('mine', c => python(c, { context }))).name, 'NameError')
  await remove(context)
})

test('createCodeContext language :: in any language', async () => {
  const context = await sbx.createCodeContext({ language: 'javascript', requestTimeoutMs: 20_000 })
  await python('globalThis.only = 7', { context })
  assert.equal((await python('only', { context })).text, '7')
  assert.equal((await javascript('typeof only')).text, 'undefined')
  await remove(context)
})

test('createCodeContext cwd :: a directory that is not there is refused', async () => {
  await assert.rejects(sbx.createCodeContext({ cwd: '/nope' }), SandboxError)
})

test('listCodeContexts :: the default ones and those that were made', async t => {
  needs(t, sbx.listCodeContexts, 'no listCodeContexts')
  const context = await sbx.createCodeContext({ language: 'bash' })
  const all = await sbx.listCodeContexts()
  assert.deepEqual(all.find(c => c.id === context.id), context)
  assert.ok(all.some(c => c.language === 'python' && c.cwd === '/home/user'))
  assert.ok(all.some(c => c.language === 'javascript'))
  await remove(context)
})

test('restartCodeContext :: its state is gone, it is not', async t => {
  needs(t, sbx.restartCodeContext, 'no restartCodeContext')
  const context = await sbx.createCodeContext({ language: 'javascript' })
  await python('gone = 1', { context })
  await sbx.restartCodeContext(context)
  assert.equal((await error('gone', c => python(c, { context }))).name, 'ReferenceError')
  await sbx.restartCodeContext(context.id)
  await remove(context)
})

test('restartCodeContext :: what runs meanwhile ends with an error', async t => {
  needs(t, sbx.restartCodeContext, 'no restartCodeContext')
  const context = await sbx.createCodeContext()
  const running = python('print("on", flush=True)\nimport time; time.sleep(60)', { context, onStdout: () => sbx.restartCodeContext(context) })
  assert.equal((await running).error.name, 'UnexpectedEndOfExecution')
  assert.equal((await until(async () => (await python('"new"', { context })).text)), 'new')
  await remove(context)
})

test('removeCodeContext :: it is gone', async t => {
  needs(t, sbx.removeCodeContext, 'no removeCodeContext')
  const context = await sbx.createCodeContext({ language: 'bash' })
  await sbx.removeCodeContext(context.id)
  await assert.rejects(python('1', { context, ...soon }), NotFoundError)
  assert.ok(!(await sbx.listCodeContexts()).some(c => c.id === context.id))
})

// ---- other languages ----

test('runCode javascript :: results, declarations and functions stay', async () => {
  assert.equal((await javascript('const a = 1; let { b, ...rest } = { b: 2, c: 3 }; a + b')).text, '3')
  assert.equal((await javascript('const a = 5; function twice (n) { return n * 2 }\nclass Box { get () { return twice(a) } }\nrest')).text, '{ c: 3 }')
  assert.equal((await javascript('new Box().get()')).text, '10')
  assert.equal((await javascript('undefined')).results.length, 0)
})

test('runCode javascript :: await, import and require work at the top', async () => {
  assert.equal((await javascript('const x = await Promise.resolve(4); x')).text, '4')
  assert.equal((await javascript('import { join as j } from "node:path"; import os from "os"; j("a", "b") + typeof os.cpus')).text, 'a/bfunction')
  assert.equal((await javascript('require("util").format("%d", 3)')).text, '3')
  assert.equal((await javascript('(await import("fs")).existsSync("/")')).text, 'true')
})

test('runCode javascript :: console goes to the logs', async () => {
  const e = await javascript('console.log("out", { a: 1 }); console.error("err")')
  assert.deepEqual([e.logs.stdout, e.logs.stderr], [['out { a: 1 }\n'], ['err\n']])
})

test('runCode javascript :: an error tells its line', async () => {
  const e = await error('const fine = 1\n\nfunction f () {\n  throw new RangeError("bad")\n}\nf()', javascript)
  assert.deepEqual([e.name, e.value], ['RangeError', 'bad'])
  assert.match(e.traceback, /f \(cell \d+:4:9\)/)
  assert.equal((await error('throw 5', javascript)).value, '5')
  assert.equal((await error('setTimeout(() => { throw new Error("late") }, 10); await new Promise(r => setTimeout(r, 5000))', javascript)).value, 'late')
})

test('runCode javascript :: objects are shown as data, and as what they say they are', async () => {
  assert.deepEqual((await main('({ a: [1, 2] })', javascript)).json, { a: [1, 2] })
  assert.equal((await shown('$$.html("<b>1</b>")', javascript)).html, '<b>1</b>')
  assert.equal((await main('({ _toSvg: () => "<svg/>" })', javascript)).svg, '<svg/>')
})

test('runCode typescript :: types are taken off, and state is javascript\'s', async () => {
  const code = 'interface P { a: number }\nconst p: P = { a: 3 }\nenum E { X = 4 }\nfunction add<T extends number>(x: T): number { return x + E.X }\nadd(p.a as number)'
  assert.equal((await typescript(code)).text, '7')
  assert.equal((await javascript('p.a')).text, '3')
  assert.equal((await typescript('import * as os from "os"; const n: number = os.cpus().length; n > 0')).text, 'true')
})

test('runCode bash :: variables, functions and the directory stay', async () => {
  assert.equal(out(await bash('X="a b"; f() { echo "f $1"; }; cd /tmp')), '')
  assert.equal(out(await bash('f "$X"; pwd; echo err >&2')), 'f a b\n/tmp\n')
})

test('runCode bash :: an exit status that is not 0 is an error', async () => {
  const e = await bash('echo before; (exit 3)')
  assert.equal(out(e), 'before\n')
  assert.match(e.error.value, /exit status 3/)
  const ended = await bash('exit 4')
  assert.ok(ended.error)
  assert.equal(out(await bash('echo again')), 'again\n')
})

// ---- results ----

const display = 'from IPython.display import *\n'
const FORMATS = {
  html: ['display(HTML("<b>x</b>"))', '<b>x</b>'], markdown: ['display(Markdown("# x"))', '# x'],
  svg: ['display(SVG("<svg></svg>"))', '<svg/>'], latex: ['display(Latex("$x$"))', '$x$'],
  json: ['display(JSON({"a": [1, None]}))', { a: [1, null] }], javascript: ['display(Javascript("1"))', '1'],
  png: ['display(Image(data=b"\\x89PNG\\r\\n\\x1a\\n0000", format="png"))', Buffer.from('\x89PNG\r\n\x1a\n0000', 'latin1').toString('base64')],
  jpeg: ['display(Image(data=b"\\xff\\xd8\\xff0", format="jpeg"))', Buffer.from('\xff\xd8\xff0', 'latin1').toString('base64')],
  pdf: ['display({"application/pdf": "JVBERg=="}, raw=True)', 'JVBERg=='],
}
for (const [format, [code, want]] of Object.entries(FORMATS))
  test(`Result ${format} :: is shown`, async () => {
    const result = await shown(display + code)
    assert.equal(result.isMainResult, false)
    if (format === 'svg') assert.match(result.svg, /^<svg/)
    else assert.deepEqual(result[format], want)
    assert.ok(result.formats().includes(format))
  })

test('Result extra :: other types of content', async () => {
  const result = await shown(display + 'display({"application/x-own": "mine", "text/plain": "p"}, raw=True)')
  assert.equal(result.text, 'p')
  assert.equal(result.raw.extra['application/x-own'], 'mine')
})

test('Result text :: one pair of quotes is taken off a text', async () => {
  assert.equal((await main('"it\'s"')).text, 'it\'s')
  assert.equal((await main('[1, "a"]')).text, '[1, \'a\']')
})

test('Result data :: a table as its columns', async () => {
  const result = await main('import pandas as pd\npd.DataFrame({"n": [1, 2], "f": [0.5, float("nan")], "s": ["a", "ž"], "d": pd.to_datetime(["2024-01-02", None])})')
  assert.deepEqual(result.data, { n: [1, 2], f: [0.5, null], s: ['a', 'ž'], d: ['2024-01-02T00:00:00', null] })
  assert.match(result.html, /<table/)
  assert.ok(result.formats().includes('data'))
})

test('Result, Execution toJSON :: all of it can be written down', async () => {
  const e = await python(display + 'display(HTML("<i>"))\nprint("p")\n7')
  const told = JSON.parse(JSON.stringify(e))
  assert.deepEqual(told.logs, { stdout: ['p\n'], stderr: [] })
  assert.deepEqual(told.results.map(r => r.text), ['<IPython.core.display.HTML object>', '7'])
})

test('Result png :: a picture that is saved is shown', async () => {
  const result = await shown('from PIL import Image as I\nI.new("RGB", (2, 2)).save("/tmp/p.png")')
  assert.ok(result.png.startsWith('iVBOR'))
  assert.equal(out(await bash('head -c 4 /tmp/p.png | tail -c 3')), 'PNG')
})

// ---- charts ----

const plot = code => `import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\n${code}\nplt.show()`
async function chart (code) {
  const result = await shown(plot(code))
  assert.ok(result.png.startsWith('iVBOR'))
  return result.chart
}

test('Result chart :: line', async () => {
  const c = await chart('ax.plot([1, 2], [3, 4.5], label="a")\nax.plot([1, 2], [0, 1])\nax.set(title="T", xlabel="Time (s)", ylabel="Way [m]")')
  assert.deepEqual([c.type, c.title, c.x_label, c.x_unit, c.y_label, c.y_unit], ['line', 'T', 'Time (s)', 's', 'Way [m]', 'm'])
  assert.deepEqual(c.elements, [{ label: 'a', points: [[1, 3], [2, 4.5]] }, { label: 'Line 1', points: [[1, 0], [2, 1]] }])
  assert.deepEqual([c.x_scale, c.y_scale, c.x_ticks.length > 1, c.x_ticks.length], ['linear', 'linear', true, c.x_tick_labels.length])
})

test('Result chart :: scatter', async () => {
  const c = await chart('ax.scatter([1, 2], [10, 100], label="s")\nax.set_yscale("log")')
  assert.deepEqual([c.type, c.y_scale, c.elements], ['scatter', 'log', [{ label: 's', points: [[1, 10], [2, 100]] }]])
})

test('Result chart :: bar, in groups and on its side', async () => {
  const c = await chart('ax.bar(["a", "b"], [1, 2], label="g")\nax.set_ylabel("n")')
  assert.deepEqual([c.type, c.y_label, c.elements], ['bar', 'n', [{ label: 'a', group: 'g', value: 1 }, { label: 'b', group: 'g', value: 2 }]])
  const flat = await chart('ax.barh(["a", "b"], [1, 2])\nax.set_xlabel("n")')
  assert.deepEqual([flat.y_label, flat.elements.map(e => [e.label, e.group, e.value])], ['n', [['a', 'Group 0', 1], ['b', 'Group 0', 2]]])
  const grouped = await chart('ax.bar([0, 1], [1, 2], -0.4, align="edge")\nax.bar([0, 1], [3, 4], 0.4, align="edge")\nax.set_xticks([0, 1], ["k", "l"])')
  assert.deepEqual(grouped.elements.map(e => [e.label, e.group, e.value]), [['k', 'Group 0', 1], ['l', 'Group 0', 2], ['k', 'Group 1', 3], ['l', 'Group 1', 4]])
})

test('Result chart :: pie', async () => {
  const c = await chart('ax.pie([1, 3], labels=["x", "y"])')
  assert.deepEqual([c.type, c.elements], ['pie', [{ label: 'x', angle: 90, radius: 1 }, { label: 'y', angle: 270, radius: 1 }]])
})

test('Result chart :: box and whisker', async () => {
  const c = await chart('ax.boxplot([[1, 2, 3, 4, 50], [2, 3, 4]], labels=["p", "q"])')
  assert.deepEqual([c.type, c.elements.length], ['box_and_whisker', 2])
  assert.deepEqual(c.elements[0], { label: 'p', min: 1, first_quartile: 2, median: 3, third_quartile: 4, max: 4, outliers: [50] })
})

test('Result chart :: several axes, dates and names', async () => {
  const c = await chart('plt.close(fig)\nfrom datetime import datetime as D\nfig, axs = plt.subplots(1, 2)\nfig.suptitle("both")\n' +
    'axs[0].plot([D(2024, 1, 1), D(2024, 1, 2)], [1, 2])\naxs[1].scatter(["a", "b"], [3, 4])')
  assert.deepEqual([c.type, c.title, c.elements.map(e => [e.type, e.x_scale])], ['superchart', 'both', [['line', 'datetime'], ['scatter', 'categorical']]])
  assert.deepEqual(c.elements[0].elements[0].points, [['2024-01-01T00:00:00', 1], ['2024-01-02T00:00:00', 2]])
  assert.deepEqual(c.elements[1].elements[0].points, [['a', 3], ['b', 4]])
})

test('Result chart :: what is none of these is unknown', async () => {
  assert.equal((await chart('ax.imshow([[1, 2], [3, 4]])')).type, 'unknown')
})

// ---- the rest of the package ----

test('Sandbox :: the default template is the interpreter, and the rest of the SDK works on it', async () => {
  await sbx.files.write('/home/user/data.csv', 'a,b\n1,2\n')
  assert.equal((await python('import pandas as pd; int(pd.read_csv("data.csv").b[0])')).text, '2')
  assert.equal((await sbx.commands.run('echo run')).stdout, 'run\n')
  const own = await Sandbox.create()
  try { assert.equal((await own.runCode('1 + 1')).text, '2') } finally { await own.kill() }
})

test('Sandbox.connect :: state is there for whoever comes back', async () => {
  await python('left = "here"')
  const again = await Sandbox.connect(sbx.sandboxId)
  assert.equal((await again.runCode('left')).text, 'here')
})

test('E2B :: a client of its own', async t => {
  needs(t, ci.E2B, 'no E2B class')
  const client = new ci.E2B({ apiKey: process.env.E2B_API_KEY })
  const own = await client.Sandbox.create()
  try { assert.equal((await own.runCode('"bound"')).text, 'bound') } finally { await own.kill() }
})
