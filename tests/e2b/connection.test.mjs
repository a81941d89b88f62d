// How a client finds the server, and what it is told on the way.
import assert from 'node:assert/strict'
import http from 'node:http'
import net from 'node:net'
import * as e2b from 'e2b'
import { create, needs, since, test, until } from './lib.mjs'

const { Sandbox } = e2b
const { E2B_API_KEY: apiKey, E2B_API_URL: apiUrl, E2B_SANDBOX_URL: sandboxUrl, E2B_DOMAIN: domain } = process.env

// The call without the variables that say where the server is.
async function without (names, call) {
  const kept = names.map(name => [name, process.env[name]])
  for (const name of names) delete process.env[name]
  try {
    return await call()
  } finally {
    for (const [name, value] of kept) process.env[name] = value
  }
}

test('options apiKey, apiUrl, sandboxUrl :: they stand in for the variables', async t => {
  needs(t, since('2.8.0'), 'no apiUrl and sandboxUrl')
  await without(['E2B_API_KEY', 'E2B_API_URL', 'E2B_SANDBOX_URL', 'E2B_DOMAIN'], async () => {
    const options = { apiKey, apiUrl, sandboxUrl, validateApiKey: false }
    const sbx = await create(options)
    assert.equal((await sbx.commands.run('echo here')).stdout, 'here\n')
    assert.equal((await Sandbox.getInfo(sbx.sandboxId, options)).sandboxId, sbx.sandboxId)
    assert.equal(await sbx.kill(), true)
  })
})

test('options domain :: the API and the sandboxes by their names under it', async () => {
  await without(['E2B_API_URL', 'E2B_SANDBOX_URL', 'E2B_DOMAIN'], async () => {
    const sbx = await create({ domain })
    assert.equal((await sbx.commands.run('echo by name')).stdout, 'by name\n')
    await sbx.files.write('note', 'by name')
    assert.equal(await sbx.files.read('note'), 'by name')
    const url = await sbx.downloadUrl('note')
    assert.match(url, new RegExp(`^https://49983-${sbx.sandboxId}\\.`))
    assert.equal(await (await fetch(url)).text(), 'by name')
    await sbx.kill()
  })
})

test('sandbox.getHost :: what listens on a port has an address', async () => {
  const sbx = await create()
  await sbx.files.write('www/index.html', 'from inside')
  await sbx.commands.run('cd www && exec python3 -m http.server 3000', { background: true, timeoutMs: 0 })
  if (sbx.sandboxDomain) assert.equal(sbx.getHost(3000), `3000-${sbx.sandboxId}.${sbx.sandboxDomain}`)
  const url = `https://${sbx.getHost(3000)}/`
  await until(() => fetch(url).then(a => a.ok), 'the server')
  assert.equal(await (await fetch(url)).text(), 'from inside')
})

test('options logger :: every call is told of', async t => {
  const said = []
  const logger = Object.fromEntries(['debug', 'info', 'warn', 'error'].map(level => [level, (...words) => said.push([level, ...words])]))
  const sbx = await create({ logger }).catch(e => e)
  needs(t, !/must return new Response/.test(sbx.message), 'its logger does not take the answers of its own fetch')
  await sbx.commands.run('true')
  assert.ok(said.some(words => /sandboxes/.test(words.join(' '))), 'the API')
  assert.ok(said.some(words => /process\.Process/.test(words.join(' '))), 'the sandbox')
  await assert.rejects(Sandbox.connect('iaaaaaaaaaaaaaaaaaaa', { logger }))
  assert.ok(said.some(([level]) => level === 'error'))
})

test('options proxy :: all goes through it', async t => {
  needs(t, since('2.30.0'), 'no proxy')
  let tunnels = 0
  const proxy = http.createServer().on('connect', (request, client) => {
    tunnels++
    const [host, port] = request.url.split(':')
    const server = net.connect(port, host, () => client.write('HTTP/1.1 200 OK\r\n\r\n'))
    server.pipe(client).pipe(server)
    for (const s of [server, client]) s.on('error', () => { server.destroy(); client.destroy() })
  })
  await new Promise(r => proxy.listen(0, '127.0.0.1', r))
  const sbx = await create({ proxy: `http://127.0.0.1:${proxy.address().port}` })
  assert.equal(tunnels, 1)
  assert.equal((await sbx.commands.run('echo through')).stdout, 'through\n')
  assert.ok(tunnels > 1)
  await sbx.kill()
  proxy.closeAllConnections()
  proxy.close()
})

test('E2B client :: one with options of its own, beside another', async t => {
  needs(t, e2b.E2B, 'no such class')
  await without(['E2B_API_KEY', 'E2B_API_URL', 'E2B_SANDBOX_URL', 'E2B_DOMAIN'], async () => {
    const client = new e2b.E2B({ apiKey, apiUrl, sandboxUrl })
    const other = new e2b.E2B({ apiKey: 'e2b_' + '0'.repeat(40), apiUrl, sandboxUrl })
    const sbx = await client.Sandbox.create('base')
    assert.equal((await sbx.commands.run('echo here')).stdout, 'here\n')
    await assert.rejects(other.Sandbox.create('base'), e2b.AuthenticationError)
    await assert.rejects(other.Sandbox.getInfo(sbx.sandboxId), e2b.AuthenticationError)
    assert.equal(await client.Template.exists('no-such-template'), false)
    assert.ok(client.Volume.list && client.Secret.list)
    assert.equal(await sbx.kill(), true)
  })
})

test('getSignature :: a link made by hand', async t => {
  const sbx = await create()
  await sbx.files.write('/tmp/signed', 'by hand')
  const { signature } = await e2b.getSignature({ path: '/tmp/signed', operation: 'read', user: 'user', envdAccessToken: sbx.envdAccessToken })
  const query = new URLSearchParams({ path: '/tmp/signed', username: 'user', signature })
  const at = `https://${sbx.getHost(49983)}/files?`
  assert.equal(await (await fetch(at + query)).text(), 'by hand')
  query.set('username', 'root')
  assert.equal((await fetch(at + query)).status, 401)
})

test('errors SandboxNotFoundError :: a sandbox that is not there', async t => {
  const gone = e2b.SandboxNotFoundError ?? /not found|404/i
  const id = 'iaaaaaaaaaaaaaaaaaaa'
  await assert.rejects(Sandbox.getInfo(id), gone)
  await assert.rejects(Sandbox.setTimeout(id, 1000), gone)
  await assert.rejects(Sandbox.connect(id), gone)
})

test('waitForPort, waitForURL, waitForProcess, waitForFile, waitForTimeout :: what they wait for', async t => {
  needs(t, e2b.waitForPort, 'no template builder')
  const sbx = await create()
  const ready = wait => sbx.commands.run(wait.getCmd()).then(r => r.exitCode === 0, () => false)
  assert.equal(await ready(e2b.waitForPort(8080)), false)
  assert.equal(await ready(e2b.waitForURL('http://localhost:8080/')), false)
  assert.equal(await ready(e2b.waitForProcess('python3')), false)
  assert.equal(await ready(e2b.waitForFile('/tmp/there')), false)
  await sbx.commands.run('touch /tmp/there; exec python3 -m http.server 8080', { background: true, timeoutMs: 0 })
  for (const wait of [e2b.waitForURL('http://localhost:8080/'), e2b.waitForProcess('python3'), e2b.waitForFile('/tmp/there')]) {
    await until(() => ready(wait), wait.getCmd())
  }
  assert.equal(await ready(e2b.waitForTimeout(10)), true)
})
