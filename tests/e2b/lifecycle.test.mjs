// What a sandbox's life can be told, in all its options, through E2B's own client.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import * as e2b from 'e2b'
import { create, lacks, needs, since, test, until } from './lib.mjs'

const { AuthenticationError, InvalidArgumentError, NotFoundError, Sandbox, SandboxError } = e2b
const NOWHERE = 'nosuchsandboxatall00'
// The first releases have one class for all that the control plane answers.
const NOT_FOUND = since('2.4.0') ? NotFoundError : /404|not found/i
const NO_KEY = since('2.4.0') ? AuthenticationError : /401/

let sbx
before(async () => { sbx = await create({ metadata: { suite: 'lifecycle', n: '0' } }) })

async function all (paginator) {
  const found = []
  while (paginator.hasNext) found.push(...await paginator.nextItems())
  return found
}

test('sandbox.create metadata, envs, timeoutMs :: they are the sandbox\'s', async () => {
  const one = await create({ metadata: { a: '1', 'b c': 'd&e=f' }, envs: { FOO: 'bar baz' }, timeoutMs: 120_000 })
  const info = await one.getInfo()
  assert.deepEqual(info.metadata, { a: '1', 'b c': 'd&e=f' })
  assert.ok(Math.abs(info.endAt - info.startedAt - 120_000) < 10_000)
  assert.equal((await one.commands.run('echo $FOO')).stdout, 'bar baz\n')
  await one.kill()
})

test('sandbox.create :: the default template', async () => {
  const one = await Sandbox.create({ timeoutMs: 60_000 })
  assert.equal((await one.commands.run('echo hi')).stdout, 'hi\n')
  await one.kill()
})

test('sandbox.create :: a time that is none is refused', async () => {
  await assert.rejects(Sandbox.create('base', { timeoutMs: -5_000 }), SandboxError)
})

test('sandbox.create allowInternetAccess :: without it nothing goes out', async () => {
  const one = await create({ allowInternetAccess: false })
  await assert.rejects(one.commands.run('curl -s --max-time 3 http://192.0.2.1/'))
  await one.kill()
})

test('sandbox.create requestTimeoutMs, signal :: a caller can give up', async t => {
  await (await create({ requestTimeoutMs: 30_000 })).kill()
  needs(t, since('2.14.0'), 'no signal')
  await assert.rejects(Sandbox.create('base', { signal: AbortSignal.abort() }))
})

test('sandbox.create headers, apiHeaders :: more headers do no harm', async () => {
  const one = await create({ headers: { 'x-mine': '1' }, apiHeaders: { 'x-api-mine': '2' } })
  assert.equal((await one.commands.run('echo ok')).stdout, 'ok\n')
  await one.kill()
})

test('sandbox.create iam :: tokens of identity are refused in words', async t => {
  needs(t, since('2.45.0'), 'no iam')
  lacks(t, 'tokens of identity')
  await assert.rejects(Sandbox.create('base', { iam: { tokens: { t: { audience: 'a', tokenType: 'jwt' } } } }))
})

test('sandbox.getInfo :: all that is known of it', async () => {
  const info = await Sandbox.getInfo(sbx.sandboxId)
  assert.equal(info.sandboxId, sbx.sandboxId)
  assert.equal(info.templateId, 'base')
  assert.equal(info.state, 'running')
  assert.ok(info.cpuCount >= 1 && info.memoryMB >= 128)
  assert.ok(info.startedAt <= new Date() && info.endAt > new Date())
  assert.match(info.envdVersion, /^\d+\.\d+\.\d+$/)
  await assert.rejects(Sandbox.getInfo(NOWHERE), NOT_FOUND)
  if (Sandbox.getFullInfo) assert.equal((await Sandbox.getFullInfo(sbx.sandboxId)).sandboxId, sbx.sandboxId)
})

test('sandbox.kill :: by id, once', async () => {
  const one = await create()
  assert.equal(await Sandbox.kill(one.sandboxId), true)
  assert.equal(await Sandbox.kill(one.sandboxId), false)
  assert.equal(await Sandbox.kill(NOWHERE), false)
})

test('sandbox.setTimeout :: by id, and of what is not there', async () => {
  await Sandbox.setTimeout(sbx.sandboxId, 900_000)
  const left = (await sbx.getInfo()).endAt - Date.now()
  assert.ok(left > 880_000 && left < 905_000, String(left))
  await assert.rejects(Sandbox.setTimeout(NOWHERE, 60_000), NOT_FOUND)
})

test('sandbox.connect timeoutMs :: it makes a life longer', async () => {
  await Sandbox.setTimeout(sbx.sandboxId, 60_000)
  const again = await Sandbox.connect(sbx.sandboxId, { timeoutMs: 600_000 })
  assert.ok((await again.getInfo()).endAt - Date.now() > 580_000)
  if (sbx.connect) assert.equal((await sbx.connect()).sandboxId, sbx.sandboxId)
  await assert.rejects(Sandbox.connect(NOWHERE), NOT_FOUND)
})

const mark = String(Date.now())
let three
async function marked () {
  three ??= []
  while (three.length < 3) three.push(await create({ metadata: { mark } }))
  return three.map(s => s.sandboxId)
}
const list = (query = {}, more = {}) => all(Sandbox.list({ query: { metadata: { mark }, ...query }, ...more }))

test('sandbox.list query, limit, nextToken :: filters and pages', async () => {
  const ids = await marked()
  assert.deepEqual((await list()).map(s => s.sandboxId), [...ids].reverse())
  assert.deepEqual((await list({ state: ['paused'] })), [])
  assert.equal((await list({ state: ['running', 'paused'] })).length, 3)
  const first = Sandbox.list({ query: { metadata: { mark } }, limit: 2 })
  assert.equal((await first.nextItems()).length, 2)
  assert.ok(first.hasNext && first.nextToken)
  const rest = Sandbox.list({ query: { metadata: { mark } }, limit: 2, nextToken: first.nextToken })
  assert.deepEqual((await rest.nextItems()).map(s => s.sandboxId), [ids[0]])
  assert.equal(rest.hasNext, false)
})

test('sandbox.list order, template, startedAfter :: more filters', async t => {
  const ids = await marked()
  needs(t, since('2.45.0'), 'no order, template and startedAfter')
  assert.deepEqual((await list({}, { order: 'asc' })).map(s => s.sandboxId), ids)
  assert.equal((await list({ template: 'base' })).length, 3)
  assert.equal((await list({ template: 'another' })).length, 0)
  assert.equal((await list({ startedAfter: new Date(Date.now() + 60_000) })).length, 0)
  assert.equal((await list({ startedAfter: new Date(Date.now() - 600_000) })).length, 3)
})

test('sandbox.getMetrics start, end :: a part of the curve, and of what is not there', async t => {
  await sbx.commands.run('head -c 5000000 /dev/zero | sha256sum')
  const found = await sbx.getMetrics()
  assert.ok(found.length >= 1)
  const m = found.at(-1)
  assert.ok(m.timestamp instanceof Date && m.cpuCount >= 1 && m.cpuUsedPct >= 0)
  assert.ok(m.memUsed > 0 && m.memTotal >= m.memUsed && m.diskTotal > 0)
  await assert.rejects(Sandbox.getMetrics(NOWHERE), NOT_FOUND)
  needs(t, since('2.5.0'), 'no start and end')
  const now = Date.now()
  assert.deepEqual(await sbx.getMetrics({ start: new Date(now + 600_000) }), [])
  assert.ok((await sbx.getMetrics({ start: new Date(now - 600_000), end: new Date(now + 600_000) })).length >= 1)
})

const pauses = t => needs(t, since('2.45.0'), 'a pause always keeps memory')

test('sandbox.pause keepMemory :: the files are kept, commands are not', async t => {
  pauses(t)
  const one = await create()
  await one.files.write('kept.txt', 'kept')
  assert.equal(await one.pause({ keepMemory: false }), true)
  assert.equal(await one.pause({ keepMemory: false }), false)
  assert.equal((await one.getInfo()).state, 'paused')
  assert.equal(await one.isRunning(), false)
  await assert.rejects(one.commands.run('true'))
  const again = await Sandbox.connect(one.sandboxId, { onResume: 'reboot' })
  assert.equal(again.sandboxId, one.sandboxId)
  assert.equal(await again.files.read('kept.txt'), 'kept')
  assert.equal(await one.isRunning(), true)
  assert.equal(await Sandbox.pause(one.sandboxId, { keepMemory: false }), true)
  assert.equal(await one.kill(), true)
  await assert.rejects(Sandbox.pause(NOWHERE, { keepMemory: false }), NOT_FOUND)
})

test('sandbox.create lifecycle :: at its end it is paused, without its memory', async t => {
  pauses(t)
  const one = await create({ timeoutMs: 1_000, lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } })
  assert.equal((await one.getInfo()).lifecycle?.onTimeout, 'pause')
  await until(async () => (await Sandbox.getInfo(one.sandboxId)).state === 'paused', 'the pause')
  const again = await Sandbox.connect(one.sandboxId)
  assert.equal((await again.commands.run('echo back')).stdout, 'back\n')
  const other = await create({ timeoutMs: 60_000, lifecycle: { onTimeout: 'kill' } })
  assert.equal((await other.getInfo()).lifecycle?.onTimeout, 'kill')
  await Promise.all([again.kill(), other.kill()])
})

test('sandbox.create lifecycle memory :: at its end it is paused with its processes; a touch resumes it', async t => {
  pauses(t)
  const one = await create({ timeoutMs: 2_000, lifecycle: { onTimeout: 'pause', autoResume: true } })
  assert.deepEqual((await one.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: true })
  const { pid } = await one.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  await until(async () => (await Sandbox.getInfo(one.sandboxId)).state === 'paused', 'the pause')
  assert.equal((await one.commands.run(`kill -0 ${pid} && echo alive`)).stdout, 'alive\n')
  await one.kill()
})

test('sandbox.pause :: the processes go on', async t => {
  const one = await create()
  const command = await one.commands.run('read line; echo got $line', { background: true, stdin: true, timeoutMs: 0 })
  command.wait().catch(() => {}) // its stream is cut by the pause
  assert.equal(await (one.pause ? one.pause() : one.betaPause()) === false, false)
  assert.equal((await one.getInfo()).state, 'paused')
  assert.equal(await one.isRunning(), false)
  const again = await Sandbox.connect(one.sandboxId)
  const found = (await again.commands.list()).map(p => p.pid)
  assert.ok(found.includes(command.pid))
  const handle = await again.commands.connect(command.pid)
  await again.commands.sendStdin(command.pid, 'this\n')
  assert.equal((await handle.wait()).stdout, 'got this\n')
  await again.kill()
})

test('sandbox.fork :: copies of a running sandbox go on', async t => {
  needs(t, Sandbox.fork, 'no fork')
  const one = await create()
  const { pid } = await one.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  const made = await one.fork({ count: 2 })
  assert.equal(made.length, 2)
  for (const entry of made) {
    const copy = entry.sandbox ?? entry
    assert.notEqual(copy.sandboxId, one.sandboxId)
    assert.equal((await copy.commands.run(`kill -0 ${pid} && echo alive`)).stdout, 'alive\n')
    await copy.kill()
  }
  assert.equal(await one.isRunning(), true)
  await assert.rejects(Sandbox.fork(NOWHERE), NOT_FOUND)
})

test('sandbox.createSnapshot, sandbox.listSnapshots, sandbox.deleteSnapshot :: others start from it', async t => {
  needs(t, Sandbox.createSnapshot, 'no snapshots')
  const one = await create()
  await one.files.write('kept.txt', 'kept')
  const { pid } = await one.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  const made = await one.createSnapshot()
  assert.equal(await one.isRunning(), true)
  assert.ok((await all(Sandbox.listSnapshots({ sandboxId: one.sandboxId }))).some(s => s.snapshotId === made.snapshotId))
  await one.kill()
  const other = await create({ metadata: { from: 'snapshot' } }, made.snapshotId)
  assert.equal(await other.files.read('kept.txt'), 'kept')
  assert.equal((await other.commands.run(`kill -0 ${pid} && echo alive`)).stdout, 'alive\n')
  assert.deepEqual((await other.getInfo()).metadata, { from: 'snapshot' })
  await other.kill()
  assert.equal(await Sandbox.deleteSnapshot(made.snapshotId), true)
  assert.equal(await Sandbox.deleteSnapshot(made.snapshotId), false)
  await assert.rejects(Sandbox.createSnapshot(NOWHERE), NOT_FOUND)
})

test('sandbox.updateNetwork :: it can be closed; what is not there is told', async t => {
  needs(t, Sandbox.updateNetwork, 'no updateNetwork')
  await sbx.updateNetwork({ allowInternetAccess: false })
  await assert.rejects(Sandbox.updateNetwork(NOWHERE, { allowInternetAccess: false }), NOT_FOUND)
})

test('sandbox.isRunning :: of one that runs, with a limit of time', async () => {
  assert.equal(await sbx.isRunning({ requestTimeoutMs: 30_000 }), true)
})

test('errors :: no key and a wrong key are AuthenticationErrors', async () => {
  for (const apiKey of ['e2b_0000', 'e2b_' + '0'.repeat(40)])
    await assert.rejects(Sandbox.create('base', { apiKey }), NO_KEY)
  await assert.rejects(Sandbox.getInfo(sbx.sandboxId, { apiKey: 'e2b_' + '1'.repeat(40) }), NO_KEY)
})

test('errors :: what makes no sense is an InvalidArgumentError or told by the server', async () => {
  await assert.rejects(sbx.commands.run('true', { cwd: '/no/such/dir' }), InvalidArgumentError)
  await assert.rejects(Sandbox.create('no-such-template'), e => e instanceof Error && /no-such-template/.test(e.message))
})
