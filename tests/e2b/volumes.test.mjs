// Volumes: made and removed by the control plane, their content by their own token, seen by sandboxes.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after } from 'node:test'
import * as e2b from 'e2b'
import { create, needs, test } from './lib.mjs'

const made = []
async function volume (t) {
  needs(t, e2b.Volume, 'no volumes')
  const v = await e2b.Volume.create('v' + randomUUID().slice(0, 8))
  made.push(v.volumeId)
  return v
}
after(async () => { for (const id of made) await e2b.Volume.destroy(id).catch(() => {}) })

test('Volume.create :: a name, an id and a token', async t => {
  const v = await volume(t)
  assert.match(v.volumeId, /^[a-z0-9]{20}$/)
  assert.ok(v.token.length > 20)
  await assert.rejects(e2b.Volume.create(v.name), e2b.VolumeError)
  await assert.rejects(e2b.Volume.create('no spaces please'), e2b.VolumeError)
})

test('Volume.getInfo :: by id; another is not found', async t => {
  const v = await volume(t)
  const info = await e2b.Volume.getInfo(v.volumeId)
  assert.deepEqual([info.volumeId, info.name, info.token], [v.volumeId, v.name, v.token])
  await assert.rejects(e2b.Volume.getInfo('aaaaaaaaaaaaaaaaaaaa'), e2b.VolumeNotFoundError ?? e2b.NotFoundError)
})

test('Volume.connect :: a handle with the token', async t => {
  const v = await volume(t)
  await v.writeFile('/x', 'x')
  const again = await e2b.Volume.connect(v.volumeId)
  assert.equal(await again.readFile('/x'), 'x')
})

test('Volume.list :: all of the team', async t => {
  const v = await volume(t)
  const found = (await e2b.Volume.list()).find(x => x.volumeId === v.volumeId)
  assert.equal(found.name, v.name)
})

test('Volume.destroy :: true, then false', async t => {
  const v = await volume(t)
  await v.writeFile('/x', 'x')
  assert.equal(await e2b.Volume.destroy(v.volumeId), true)
  assert.equal(await e2b.Volume.destroy(v.volumeId), false)
  await assert.rejects(v.readFile('/x'))
})

test('volume.writeFile :: text, bytes, blobs and streams come back as they were', async t => {
  const v = await volume(t)
  const bytes = new Uint8Array(300_000).map((_, i) => i % 251)
  await v.writeFile('/text', 'grüße')
  await v.writeFile('/bytes', bytes.buffer)
  await v.writeFile('/blob', new Blob(['blob']))
  await v.writeFile('/deep/er/stream', new Blob([bytes]).stream())
  const info = await v.writeFile('/empty', '')
  assert.equal(info.size, 0)
  assert.equal(await v.readFile('/text'), 'grüße')
  assert.deepEqual(await v.readFile('/bytes', { format: 'bytes' }), bytes)
  assert.equal(await (await v.readFile('/blob', { format: 'blob' })).text(), 'blob')
  const parts = []
  for await (const part of await v.readFile('/deep/er/stream', { format: 'stream' })) parts.push(part)
  assert.deepEqual(new Uint8Array(Buffer.concat(parts)), bytes)
  assert.equal(await v.readFile('/empty'), '')
})

test('volume.writeFile :: overwrites; owner and mode as asked', async t => {
  const v = await volume(t)
  await v.writeFile('/f', 'one')
  await assert.rejects(v.writeFile('/f', 'two', { force: false }), e2b.VolumeError)
  assert.equal(await v.readFile('/f'), 'one')
  const info = await v.writeFile('/f', 'two', { uid: 1000, gid: 1001, mode: 0o640, force: true })
  assert.deepEqual([info.name, info.path, info.type, info.size, info.uid, info.gid, info.mode],
    ['f', '/f', 'file', 3, 1000, 1001, 0o640])
  assert.equal(await v.readFile('/f'), 'two')
})

test('volume.readFile :: what is not there is VolumePathNotFoundError', async t => {
  const v = await volume(t)
  const gone = e2b.VolumePathNotFoundError ?? e2b.NotFoundError
  await assert.rejects(v.readFile('/nope'), gone)
  await assert.rejects(v.readFile('/nope', { format: 'stream' }), gone)
  await assert.rejects(v.readFile('/../../../etc/passwd'), gone)
})

test('volume.makeDir :: one level; parents with force', async t => {
  const v = await volume(t)
  const info = await v.makeDir('/a', { mode: 0o700, uid: 5, gid: 6 })
  assert.deepEqual([info.type, info.mode, info.uid, info.gid], ['directory', 0o700, 5, 6])
  await assert.rejects(v.makeDir('/x/y/z'), e2b.VolumePathNotFoundError ?? e2b.NotFoundError)
  assert.equal((await v.makeDir('/x/y/z', { force: true })).path, '/x/y/z')
  await assert.rejects(v.makeDir('/a'), e2b.VolumeError)
})

test('volume.list :: one level, or deeper', async t => {
  const v = await volume(t)
  await v.writeFile('/d/e/f', 'x')
  await v.writeFile('/g', 'y')
  const names = async (path, opts) => (await v.list(path, opts)).map(e => e.path).sort()
  assert.deepEqual(await names('/'), ['/d', '/g'])
  assert.deepEqual(await names('/', { depth: 3 }), ['/d', '/d/e', '/d/e/f', '/g'])
  assert.ok((await v.list('/'))[0].mtime instanceof Date)
  await assert.rejects(v.list('/nope'), e2b.VolumePathNotFoundError ?? e2b.NotFoundError)
})

test('volume.getInfo :: of a file; exists says whether', async t => {
  const v = await volume(t)
  await v.writeFile('/f', '12345')
  const info = await v.getInfo('/f')
  assert.deepEqual([info.name, info.size, info.type], ['f', 5, 'file'])
  assert.equal(await v.exists('/f'), true)
  assert.equal(await v.exists('/g'), false)
})

test('volume.updateMetadata :: owner and mode, each alone', async t => {
  const v = await volume(t)
  await v.writeFile('/f', 'x')
  assert.equal((await v.updateMetadata('/f', { mode: 0o600 })).mode, 0o600)
  assert.equal((await v.updateMetadata('/f', { uid: 1000 })).uid, 1000)
  const info = await v.updateMetadata('/f', { gid: 1002 })
  assert.deepEqual([info.uid, info.gid, info.mode], [1000, 1002, 0o600])
  await assert.rejects(v.updateMetadata('/g', { mode: 0o600 }), e2b.VolumePathNotFoundError ?? e2b.NotFoundError)
})

test('volume.remove :: files and whole directories', async t => {
  const v = await volume(t)
  await v.writeFile('/d/e', 'x')
  await v.remove('/d')
  assert.equal(await v.exists('/d'), false)
  await assert.rejects(v.remove('/d'), e2b.VolumePathNotFoundError ?? e2b.NotFoundError)
})

test('volume token :: a wrong one, or that of another volume, opens nothing', async t => {
  const v = await volume(t)
  const other = await volume(t)
  await v.writeFile('/f', 'x')
  for (const token of ['wrong', other.token]) {
    await assert.rejects(v.readFile('/f', { token }), e => !(e instanceof (e2b.VolumePathNotFoundError ?? class {})))
    await assert.rejects(new e2b.Volume(v.volumeId, v.name, token).writeFile('/f', 'y'))
  }
  assert.equal(await v.readFile('/f'), 'x')
})

test('sandbox.create volumeMounts :: sandboxes share a volume, which outlives them', async t => {
  const v = await volume(t)
  await v.writeFile('/in', 'from outside')
  const a = await create({ volumeMounts: { '/mnt/a': v } })
  const b = await create({ volumeMounts: { '/data': v.name } })
  assert.equal(await a.files.read('/mnt/a/in'), 'from outside')
  await a.commands.run('echo from a > /mnt/a/out') // as the template's user
  assert.equal((await b.commands.run('cat /data/out')).stdout, 'from a\n')
  const info = await a.getInfo()
  if (info.volumeMounts) assert.deepEqual(info.volumeMounts, [{ name: v.name, path: '/mnt/a' }])
  await assert.rejects(e2b.Volume.destroy(v.volumeId), e2b.VolumeError)
  await a.kill()
  await b.kill()
  assert.equal(await v.readFile('/out'), 'from a\n')
})

test('sandbox.create volumeMounts :: an unknown volume is an error', async t => {
  needs(t, e2b.Volume, 'no volumes')
  await assert.rejects(create({ volumeMounts: { '/mnt/a': 'nonesuch' } }))
})
