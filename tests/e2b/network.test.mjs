// What a sandbox may reach. The servers are here, on two addresses of this machine that the daemon lets sandboxes
// reach: a resolver, and HTTPS that answers with what it was asked.
import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import fs from 'node:fs'
import https from 'node:https'
import net from 'node:net'
import { after, before } from 'node:test'
import * as e2b from 'e2b'
import { create, needs, since, test } from './lib.mjs'

const { NET_HERE: here, NET_THERE: there, NET_DNS_PORT: dnsPort, NET_PLACE: place } = process.env
const { Sandbox } = e2b
const ALL = '0.0.0.0/0'
const names = { 'good.test': here, 'api.good.test': here, 'other.test': here }
const servers = []
const asked = [] // headers of each request
const proxied = [] // what the proxy was asked for

// An answer to one question for an address.
function answer (question) {
  const labels = []
  let at = 12
  for (; question[at]; at += 1 + question[at]) labels.push(question.toString('latin1', at + 1, at + 1 + question[at]))
  const name = labels.join('.').toLowerCase()
  const found = question.readUInt16BE(at + 1) === 1 && names[name]
  const head = Buffer.from([question[0], question[1], 0x81, name in names ? 0x80 : 0x83, 0, 1, 0, found ? 1 : 0, 0, 0, 0, 0])
  const record = found ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, ...found.split('.').map(Number)]) : Buffer.alloc(0)
  return Buffer.concat([head, question.subarray(12, at + 5), record])
}

// SOCKS5 with a user and a password; whatever it is asked for, it connects to the server that is here.
async function serveSocks (client) {
  let have = Buffer.alloc(0)
  const take = async n => {
    while (have.length < n) {
      have = Buffer.concat([have, await new Promise((resolve, reject) => { client.once('data', resolve); client.once('close', reject) })])
    }
    const taken = have.subarray(0, n)
    have = have.subarray(n)
    return taken
  }
  const word = async () => (await take((await take(1))[0])).toString()
  client.on('error', () => {})
  await take((await take(2))[1])
  client.write(Buffer.from([5, 2]))
  await take(1)
  const login = `${await word()}:${await word()}`
  client.write(Buffer.from([1, login === 'user:p@ss' ? 0 : 1]))
  const kind = (await take(4))[3]
  const host = kind === 3 ? await word() : [...await take(4)].join('.')
  const port = (await take(2)).readUInt16BE()
  proxied.push(`${login} ${host}:${port}`)
  const server = net.connect(443, here, () => {
    client.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
    server.write(have)
    client.pipe(server).pipe(client)
  })
  server.on('error', () => client.destroy())
}

before(async () => {
  const dns = dgram.createSocket('udp4')
  dns.on('message', (q, from) => dns.send(answer(q), from.port, from.address))
  await new Promise(resolve => dns.bind(Number(dnsPort), here, resolve))
  servers.push(dns)
  const tls = { key: fs.readFileSync(`${place}/key.pem`), cert: fs.readFileSync(`${place}/cert.pem`) }
  for (const address of [here, there]) {
    const web = https.createServer(tls, (req, res) => {
      asked.push(req.headers)
      res.end(JSON.stringify({ at: address, headers: req.headers }))
    })
    await new Promise(resolve => web.listen(443, address, resolve))
    servers.push(web)
  }
  const proxy = net.createServer(client => serveSocks(client).catch(() => client.destroy()))
  await new Promise(resolve => proxy.listen(1080, here, resolve))
  servers.push(proxy)
})
after(() => { for (const s of servers) { s.close(); s.closeAllConnections?.() } })

// Where a request from inside ends up; '' if it is not let through.
async function reaches (sbx, host) {
  const done = await sbx.commands.run(`curl -sk --max-time 20 https://${host}/ || true`)
  return done.stdout && JSON.parse(done.stdout).at
}
const both = async sbx => [await reaches(sbx, here), await reaches(sbx, there)]

test('sandbox.create allowInternetAccess :: all is reached unless it is false', async () => {
  const sbx = await create()
  assert.deepEqual(await both(sbx), [here, there])
  assert.equal(await reaches(sbx, 'good.test'), here)
  const open = await create({ allowInternetAccess: true })
  assert.equal(await reaches(open, here), here)
  const closed = await create({ allowInternetAccess: false })
  assert.deepEqual(await both(closed), ['', ''])
  assert.equal(await reaches(closed, 'good.test'), '')
})

test('sandbox.create network.allowOut :: addresses and ranges, among all that is denied', async t => {
  needs(t, since('2.8.4'), 'no network option')
  const one = await create({ network: { denyOut: [ALL], allowOut: [here] } })
  assert.deepEqual(await both(one), [here, ''])
  const range = await create({ network: { denyOut: ({ allTraffic }) => [allTraffic], allowOut: [`${here}/31`] } })
  if (since('2.30.0')) assert.deepEqual(await both(range), [here, there])
})

test('sandbox.create network.allowOut :: names, and all below one', async t => {
  needs(t, since('2.8.4'), 'no network option')
  const sbx = await create({ network: { denyOut: [ALL], allowOut: ['other.test', '*.good.test'] } })
  assert.equal(await reaches(sbx, 'other.test'), here)
  assert.equal(await reaches(sbx, 'api.good.test'), here)
  assert.equal(await reaches(sbx, 'good.test'), '')
  assert.equal(await reaches(sbx, here), '')
  await assert.rejects(create({ network: { allowOut: ['good.test'] } }), /denyOut/)
  await assert.rejects(create({ network: { denyOut: ['good.test'] } }), /denyOut/)
  await assert.rejects(create({ network: { denyOut: [ALL], allowOut: ['no/such'] } }), /no\/such/)
})

test('sandbox.create network.denyOut :: what is denied alone is not reached', async t => {
  needs(t, since('2.8.4'), 'no network option')
  const sbx = await create({ network: { denyOut: [there] } })
  assert.deepEqual(await both(sbx), [here, ''])
  const none = await create({ network: { denyOut: [ALL] } })
  assert.deepEqual(await both(none), ['', ''])
})

test('sandbox.create network :: what is allowed wins over what is denied', async t => {
  needs(t, since('2.8.4'), 'no network option')
  const sbx = await create({ network: { denyOut: [`${here}/31`], allowOut: [there] } })
  assert.deepEqual(await both(sbx), ['', there])
})

test('sandbox.updateNetwork :: takes the place of what was said before, at once', async t => {
  needs(t, Sandbox.updateNetwork, 'no updateNetwork')
  const sbx = await create({ network: { denyOut: [ALL], allowOut: [here] } })
  await sbx.updateNetwork({ denyOut: [here] })
  assert.deepEqual(await both(sbx), ['', there])
  await sbx.updateNetwork({})
  assert.deepEqual(await both(sbx), [here, there])
  await Sandbox.updateNetwork(sbx.sandboxId, { allowInternetAccess: false })
  assert.deepEqual(await both(sbx), ['', ''])
  await sbx.updateNetwork({ denyOut: [ALL], allowOut: ['good.test'] })
  assert.equal(await reaches(sbx, 'good.test'), here)
  await assert.rejects(sbx.updateNetwork({ allowOut: ['good.test'] }), /denyOut/)
  assert.equal(await reaches(sbx, 'good.test'), here)
  await assert.rejects(Sandbox.updateNetwork('iaaaaaaaaaaaaaaaaaaa', {}), e2b.SandboxNotFoundError)
})

test('sandbox.getInfo network :: tells what may be reached', async t => {
  needs(t, Sandbox.updateNetwork, 'no network in what is known of a sandbox')
  const sbx = await create({ network: { denyOut: [ALL], allowOut: [here, '*.good.test'], maskRequestHost: 'a.test' } })
  const info = await sbx.getInfo()
  assert.deepEqual([info.network.allowOut, info.network.denyOut], [[here, '*.good.test'], [ALL]])
  assert.deepEqual([info.network.maskRequestHost, info.network.allowPublicTraffic], ['a.test', true])
  await sbx.updateNetwork({ denyOut: [there] })
  const later = await sbx.getInfo()
  assert.deepEqual([later.network.allowOut, later.network.denyOut, later.allowInternetAccess], [[], [there], true])
  await sbx.updateNetwork({ allowInternetAccess: false })
  const closed = await sbx.getInfo()
  assert.deepEqual([closed.network.denyOut, closed.allowInternetAccess], [[ALL], false])
})

test('sandbox.create network.egressProxy :: connections go through the proxy, and it is told without its password', async t => {
  needs(t, since('2.51.0'), 'no egressProxy')
  const egressProxy = { address: `${here}:1080`, username: 'user', password: 'p@ss' }
  const sbx = await create({ network: { egressProxy } })
  proxied.length = 0
  assert.equal(await reaches(sbx, there), here)
  assert.deepEqual(proxied, [`user:p@ss ${there}:443`])
  assert.deepEqual((await sbx.getInfo()).network.egressProxy, { address: egressProxy.address, username: 'user' })
  // What is denied does not reach it; names that were allowed are told to it.
  await sbx.updateNetwork({ egressProxy, allowOut: ['good.test'], denyOut: [ALL] })
  assert.equal(await reaches(sbx, there), '')
  assert.equal(await reaches(sbx, 'good.test'), here)
  assert.deepEqual(proxied.slice(1), ['user:p@ss good.test:443'])
  await sbx.updateNetwork({ egressProxy: { ...egressProxy, password: 'wrong' } })
  assert.equal(await reaches(sbx, there), '')
  await sbx.updateNetwork({})
  assert.equal(await reaches(sbx, there), there)
  assert.equal(proxied.length, 2)
  await assert.rejects(create({ network: { egressProxy: { address: 'nowhere' } } }), /egressProxy|proxy/)
})

// What a request from inside was answered; the sandbox trusts the certificate that it is shown.
async function told (sbx, host, more = '') {
  const done = await sbx.commands.run(`curl -sS --max-time 20 ${more} https://${host}/x`)
  return JSON.parse(done.stdout).headers
}

test('sandbox.create network.rules :: requests to a host carry headers, whatever the client sends', async t => {
  needs(t, since('2.30.0'), 'no rules')
  const rules = { 'good.test': [{ transform: { headers: { 'X-Test-Token': 'value-123' } } }],
    '*.good.test': [{ transform: { headers: { 'x-wide': 'yes' } } }] }
  const sbx = await create({ network: { rules } })
  assert.equal((await told(sbx, 'good.test'))['x-test-token'], 'value-123')
  assert.equal((await told(sbx, 'good.test', '-H "X-Test-Token: mine"'))['x-test-token'], 'value-123')
  assert.equal((await told(sbx, 'api.good.test'))['x-wide'], 'yes')
  assert.ok(!('x-test-token' in await told(sbx, 'other.test', '-k')))
  assert.deepEqual((await sbx.getInfo()).network.rules, rules)
  // A rule opens nothing.
  await sbx.updateNetwork({ allowOut: ['good.test'], denyOut: [ALL], rules: { ...rules, 'other.test': rules['good.test'] } })
  assert.equal((await told(sbx, 'good.test'))['x-test-token'], 'value-123')
  assert.equal(await reaches(sbx, 'other.test'), '')
  await sbx.updateNetwork({})
  assert.ok(!('x-test-token' in await told(sbx, 'good.test', '-k')))
})

test('Secret.fill :: a secret goes out in a header, and is nowhere inside', async t => {
  needs(t, e2b.Secret?.fill, 'no secrets')
  const value = 'sk-' + 'k3f9'.repeat(6)
  const secret = await e2b.Secret.create('net-' + process.pid, value)
  try {
    const headers = { Authorization: `Bearer ${e2b.Secret.fill(secret.name)}` }
    const sbx = await create({ network: { rules: { 'good.test': [{ transform: { headers } }] } } })
    asked.length = 0
    const shown = (await sbx.commands.run('curl -sSi https://good.test/x; env; grep -r k3f9k3f9 /etc /run /tmp /home 2>/dev/null || true')).stdout
    assert.deepEqual(asked.map(h => h.authorization), [`Bearer ${value}`])
    assert.ok(shown.includes('authorization') && !shown.includes(value), shown)
    await e2b.Secret.update(secret.name, value + '2')
    await sbx.commands.run('curl -sS https://good.test/x')
    assert.equal(asked[1].authorization, `Bearer ${value}2`)
    assert.equal((await sbx.getInfo()).network.rules['good.test'][0].transform.headers.Authorization, headers.Authorization)
  } finally {
    await e2b.Secret.destroy(secret.name)
  }
  await assert.rejects(create({ network: { rules: { 'good.test': [{ transform: { headers: { a: e2b.Secret.fill('nonesuch') } } }] } } }), /nonesuch/)
})
