// Secrets: made, listed, changed and removed; never shown.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after } from 'node:test'
import * as e2b from 'e2b'
import { needs, test } from './lib.mjs'

const made = []
async function secret (t, opts) {
  needs(t, e2b.Secret, 'no secrets')
  const s = await e2b.Secret.create('s' + randomUUID().slice(0, 8), 'the value', opts)
  made.push(s.secretId)
  return s
}
after(async () => { for (const id of made) await e2b.Secret.destroy(id).catch(() => {}) })

test('Secret.create :: an id, a version, metadata, and no value', async t => {
  const s = await secret(t, { metadata: { a: 'b' } })
  assert.deepEqual([s.version, s.metadata], [1, { a: 'b' }])
  assert.ok(s.createdAt instanceof Date && !JSON.stringify(s).includes('the value'))
  await assert.rejects(e2b.Secret.create(s.name, 'x'), e2b.SecretError)
  await assert.rejects(e2b.Secret.create('no spaces', 'x'), e2b.SecretError)
})

test('Secret.getInfo :: by id and by name, whatever its case', async t => {
  const s = await secret(t)
  assert.equal((await e2b.Secret.getInfo(s.secretId)).name, s.name)
  assert.equal((await e2b.Secret.getInfo(s.name.toUpperCase())).secretId, s.secretId)
  await assert.rejects(e2b.Secret.getInfo('nonesuch'), e2b.SecretNotFoundError)
})

test('Secret.update :: a new version; metadata stays unless given', async t => {
  const s = await secret(t, { metadata: { a: 'b' } })
  const two = await e2b.Secret.update(s.name, 'another')
  assert.deepEqual([two.version, two.metadata], [2, { a: 'b' }])
  assert.deepEqual((await e2b.Secret.update(s.secretId, 'x', { metadata: { c: 'd' } })).metadata, { c: 'd' })
  await assert.rejects(e2b.Secret.update('nonesuch', 'x'), e2b.SecretNotFoundError)
})

test('Secret.list :: pages', async t => {
  const all = [await secret(t), await secret(t), await secret(t)].map(s => s.secretId)
  const pages = e2b.Secret.list({ limit: 2 })
  const seen = []
  while (pages.hasNext) {
    const page = await pages.nextItems()
    assert.ok(page.length <= 2)
    seen.push(...page.map(s => s.secretId))
  }
  assert.deepEqual(seen.filter(id => all.includes(id)), all)
})

test('Secret.exists :: whether it is there', async t => {
  const s = await secret(t)
  assert.equal(await e2b.Secret.exists(s.name), true)
  assert.equal(await e2b.Secret.exists('nonesuch'), false)
})

test('Secret.destroy :: true, then false', async t => {
  const s = await secret(t)
  assert.equal(await e2b.Secret.destroy(s.name), true)
  assert.equal(await e2b.Secret.destroy(s.secretId), false)
})

test('Secret.fill :: the placeholder for a rule', async t => {
  needs(t, e2b.Secret?.fill, 'no placeholders')
  assert.equal(e2b.Secret.fill('name'), '$' + '{e2b.secrets.name}')
})
