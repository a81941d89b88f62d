// The life of a sandbox, through E2B's own client.
import assert from 'node:assert/strict'
import * as e2b from 'e2b'
import { create, lacks, native, needs, since, test, until } from './lib.mjs'

const { AuthenticationError, NotFoundError, Sandbox, SandboxError, TimeoutError } = e2b

test('sandbox.create :: create, connect, look, kill', async () => {
  const sbx = await create({ metadata: { app: 'first' } })
  assert.match(sbx.sandboxId, /^[a-z][a-z0-9]{19}$/)
  assert.equal(await sbx.isRunning(), true)
  const info = await sbx.getInfo()
  assert.equal(info.sandboxId, sbx.sandboxId)
  assert.equal(info.state, 'running')
  assert.deepEqual(info.metadata, { app: 'first' })
  assert.ok(info.endAt > new Date())
  const again = await Sandbox.connect(sbx.sandboxId)
  assert.equal((await again.commands.run('echo here')).stdout, 'here\n')
  assert.equal(await Sandbox.kill(sbx.sandboxId), true)
  assert.equal(await Sandbox.kill(sbx.sandboxId), false)
  assert.equal(await sbx.isRunning(), false)
})

test('sandbox.setTimeout :: the time to live can be set and ends it', async () => {
  const sbx = await create({ timeoutMs: 60_000 })
  const before = (await sbx.getInfo()).endAt
  await sbx.setTimeout(600_000)
  assert.ok((await sbx.getInfo()).endAt > before)
  await sbx.setTimeout(1_000)
  await until(async () => !(await sbx.isRunning()), 'its end')
  await assert.rejects(sbx.commands.run('true'))
})

test('sandbox.connect :: connecting never shortens a life', async t => {
  needs(t, since('2.0.3'), 'connect sets the time to live itself')
  const sbx = await create({ timeoutMs: 600_000 })
  const before = (await sbx.getInfo()).endAt
  await Sandbox.connect(sbx.sandboxId, { timeoutMs: 1_000 })
  assert.deepEqual((await sbx.getInfo()).endAt, before)
})

test('sandbox.list :: lists filter by metadata and state, and have pages', async () => {
  const mark = `m ${Math.random()}&=%`
  const ids = []
  for (let i = 0; i < 3; i++) ids.push((await create({ metadata: { 'a key&': mark } })).sandboxId)
  const pages = Sandbox.list({ query: { metadata: { 'a key&': mark }, state: ['running'] }, limit: 2 })
  const first = await pages.nextItems()
  assert.equal(first.length, 2)
  assert.ok(pages.hasNext)
  const rest = await pages.nextItems()
  assert.deepEqual([...first, ...rest].map(s => s.sandboxId).sort(), ids.sort())
  assert.equal((await Sandbox.list({ query: { metadata: { 'a key&': 'other' } } }).nextItems()).length, 0)
  assert.equal((await Sandbox.list({ query: { state: ['paused'], metadata: { 'a key&': mark } } }).nextItems()).length, 0)
})

test('sandbox.getMetrics :: usage is measured', async () => {
  const sbx = await create()
  const [m] = await sbx.getMetrics()
  assert.ok(m.memTotal > 0 && m.diskTotal > 0 && m.cpuCount >= 1)
})

test('errors :: a wrong key, an unknown template and an unknown sandbox have their errors', async () => {
  await assert.rejects(Sandbox.create('base', { apiKey: 'e2b_' + '0'.repeat(40) }),
    since('2.4.0') ? AuthenticationError : /401/)
  await assert.rejects(Sandbox.create('no-such-template'), e => e instanceof SandboxError && /404|not found/.test(e.message))
  await assert.rejects(Sandbox.connect('iaaaaaaaaaaaaaaaaaaa'), e => e instanceof NotFoundError || e instanceof SandboxError)
  assert.equal(await Sandbox.kill('iaaaaaaaaaaaaaaaaaaa'), false)
})

test('errors :: a sandbox killed under a command ends the call with the documented error', async () => {
  const sbx = await create()
  const running = sbx.commands.run('sleep 1000', { timeoutMs: 0 })
  const outcome = assert.rejects(running, since('2.8.0') ? TimeoutError : SandboxError)
  await until(async () => (await sbx.commands.list()).length, 'the command')
  await sbx.kill()
  await outcome
})

test('sandbox.create network.httpsPorts :: refused in words', async t => {
  needs(t, since('2.51.0'), 'no httpsPorts')
  // The SDK leaves out what its release does not know; then there is nothing to refuse.
  const outcome = await create({ network: { httpsPorts: [8443] } }).then(() => '', e => e.message)
  assert.match(outcome, since('2.51.0') ? /not supported/ : /^$|not supported/)
  lacks(t, 'ports inside that serve HTTPS')
})

test('sandbox.create secure :: another sandbox\'s token opens nothing', async () => {
  const [a, b] = [await create(), await create()]
  const url = process.env.E2B_SANDBOX_URL + '/filesystem.Filesystem/Stat'
  const ask = (token) => fetch(url, { method: 'POST', body: '{"path":"/"}', headers: {
    'content-type': 'application/json', 'connect-protocol-version': '1',
    'e2b-sandbox-id': a.sandboxId, 'e2b-sandbox-port': '49983', ...(token && { 'x-access-token': token }) } })
  assert.equal((await ask(a.envdAccessToken)).status, 200)
  assert.equal((await ask(b.envdAccessToken)).status, 401)
  assert.equal((await ask()).status, 401)
})

test('sandbox.create template :: a template of the daemon is a template here', async () => {
  const answer = await native('POST', '/v1/templates', { name: 'small', image: 'base', user: 'user', memory_mb: 256, env: { FROM: 'template' } })
  assert.equal(answer.status, 201)
  const sbx = await create({ envs: { MORE: 'call' } }, 'small')
  assert.equal((await sbx.commands.run('echo $FROM $MORE $(id -un)')).stdout, 'template call user\n')
  const info = await sbx.getInfo()
  assert.equal(info.memoryMB, 256)
  assert.equal(info.templateId, 'small')
  assert.equal((await native('DELETE', '/v1/templates/small')).status, 204)
})
