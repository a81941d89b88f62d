// What happens when there is no more: rates, quotas, and a daemon whose keeper is gone. On a daemon of its own.
import assert from 'node:assert/strict'
import http from 'node:http'
import * as e2b from 'e2b'
import { create, needs, test, until } from './lib.mjs'

const { RateLimitError, Sandbox } = e2b

// As the operator, by the daemon's own socket.
function admin (method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath: process.env.WARREN_SOCKET, method, path, headers: { 'content-type': 'application/json' } }, answer => {
      let text = ''
      answer.on('data', d => { text += d }).on('end', () => resolve(text ? JSON.parse(text) : undefined))
    })
    request.on('error', reject).end(body && JSON.stringify(body))
  })
}

async function keyOfTeam (quotas) {
  const name = `team${Math.random().toString(36).slice(2, 8)}`
  await admin('POST', '/v1/teams', { name, quotas })
  return (await admin('POST', '/v1/keys', { name, team: name })).key
}

test('errors RateLimitError :: more sandboxes than the team may have', async t => {
  const apiKey = await keyOfTeam({ sandboxes: 1 })
  const sbx = await create({ apiKey, retries: 0 }, 'tiny')
  await assert.rejects(Sandbox.create('tiny', { apiKey, retries: 0 }), RateLimitError)
  assert.equal(await Sandbox.kill(sbx.sandboxId, { apiKey }), true)
  await create({ apiKey, retries: 0 }, 'tiny') // and then there is room again
})

async function exhaust (apiKey) {
  for (;;) {
    const answers = await Promise.all(Array.from({ length: 30 }, () =>
      fetch(`${process.env.E2B_API_URL}/sandboxes/none`, { headers: { 'x-api-key': apiKey } }).then(a => a.status)))
    if (answers.includes(429)) return
  }
}

test('errors RateLimitError :: more requests than the key may make', async t => {
  const apiKey = await keyOfTeam({})
  await exhaust(apiKey)
  await assert.rejects(Promise.all(Array.from({ length: 10 }, () => Sandbox.list({ apiKey, retries: 0 }).nextItems())), RateLimitError)
})

test('options retries :: what came too often is asked again when it is due', async t => {
  needs(t, e2b.ServiceBusyError, 'no retries')
  const apiKey = await keyOfTeam({})
  await exhaust(apiKey)
  const lists = await Promise.all(Array.from({ length: 6 }, () => Sandbox.list({ apiKey, retries: 10 }).nextItems()))
  assert.deepEqual(lists.flat(), [])
  await assert.rejects(async () => Sandbox.create('tiny', { retries: -1 }), e2b.InvalidArgumentError)
})

test('errors ServiceBusyError :: the part that makes sandboxes is gone, and comes back', async t => {
  const signal = (pids, name) => { for (const pid of pids.split(',')) process.kill(Number(pid), name) }
  const { WARREN_LAUNCHERS: launchers, WARREN_KEEPERS: keepers } = process.env
  signal(launchers, 'SIGSTOP') // or they would start another at once
  try {
    signal(keepers, 'SIGKILL')
    await assert.rejects(Sandbox.create('tiny'), e2b.ServiceBusyError ?? /503/)
  } finally {
    signal(launchers, 'SIGCONT')
  }
  const sbx = await until(() => create({}, 'tiny').catch(() => {}), 'a keeper')
  await sbx.files.write('note', 'back')
  assert.equal(await sbx.files.read('note'), 'back')
})
