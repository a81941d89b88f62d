// Files in all their options, through E2B's own client.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import * as e2b from 'e2b'
import { create, native, needs, since, test, until } from './lib.mjs'

const { FileType, FilesystemEventType, InvalidArgumentError, NotEnoughSpaceError, NotFoundError, TimeoutError } = e2b

let sbx
before(async () => { sbx = await create() })

test('files.read format :: text, bytes, blob and stream are the same bytes', async () => {
  const data = new Uint8Array(70_000).map((_, i) => i * 7)
  await sbx.files.write('formats.bin', data.buffer)
  assert.deepEqual(await sbx.files.read('formats.bin', { format: 'bytes' }), data)
  const blob = await sbx.files.read('formats.bin', { format: 'blob' })
  assert.deepEqual(new Uint8Array(await blob.arrayBuffer()), data)
  const parts = []
  for await (const piece of await sbx.files.read('formats.bin', { format: 'stream' })) parts.push(piece)
  assert.deepEqual(new Uint8Array(Buffer.concat(parts)), data)
  await sbx.files.write('empty.bin', '')
  if (!since('2.4.0')) return // the first releases give nothing at all for an empty file
  assert.equal((await sbx.files.read('empty.bin', { format: 'bytes' })).length, 0)
  assert.equal((await sbx.files.read('empty.bin', { format: 'blob' })).size, 0)
})

test('files.read gzip, files.write gzip :: it is the same file', async t => {
  needs(t, since('2.16.0'), 'no gzip')
  const text = 'a line of text\n'.repeat(20_000)
  await sbx.files.write('zipped.txt', text, { gzip: true })
  assert.equal((await sbx.commands.run('wc -c < zipped.txt')).stdout.trim(), String(text.length))
  assert.ok(await sbx.files.read('zipped.txt', { gzip: true }) === text)
  assert.ok(await sbx.files.read('zipped.txt') === text)
})

test('files.write data :: text, bytes, blob and stream', async () => {
  await sbx.files.write('w/text', 'täxt')
  await sbx.files.write('w/bytes', bytesOf('bytes').buffer)
  await sbx.files.write('w/blob', new Blob(['blob']))
  await sbx.files.write('w/stream', new Blob(['str', 'eam']).stream())
  for (const name of ['text', 'bytes', 'blob', 'stream'])
    assert.equal(await sbx.files.read(`w/${name}`), name === 'text' ? 'täxt' : name)
})
function bytesOf (text) { return new TextEncoder().encode(text).slice() }

test('files.write useOctetStream :: a body without parts', async t => {
  needs(t, since('2.19.0'), 'no useOctetStream')
  const info = await sbx.files.write('octets', 'plain', { useOctetStream: true })
  assert.equal(info.path, '/home/user/octets')
  assert.equal(await sbx.files.read('octets'), 'plain')
})

test('files.write metadata :: it is kept with the file, shown, and replaced', async t => {
  needs(t, since('2.30.0'), 'no metadata of files')
  const info = await sbx.files.write('meta.txt', 'x', { metadata: { Author: 'Ann', kind: 'note' } })
  assert.deepEqual(info.metadata, { author: 'Ann', kind: 'note' })
  assert.deepEqual((await sbx.files.getInfo('meta.txt')).metadata, { author: 'Ann', kind: 'note' })
  const listed = (await sbx.files.list('.')).find(e => e.name === 'meta.txt')
  assert.deepEqual(listed.metadata, { author: 'Ann', kind: 'note' })
  assert.deepEqual((await sbx.files.rename('meta.txt', 'meta2.txt')).metadata, { author: 'Ann', kind: 'note' })
  await sbx.files.write('meta2.txt', 'y')
  assert.equal((await sbx.files.getInfo('meta2.txt')).metadata, undefined)
})

test('files.writeFiles :: several at once', async t => {
  needs(t, sbx.files.writeFiles, 'no writeFiles')
  const out = await sbx.files.writeFiles([{ path: 'several/a', data: 'A' }, { path: '/tmp/several-b', data: new Blob(['B']) }])
  assert.deepEqual(out.map(i => [i.name, i.path, i.type]), [
    ['a', '/home/user/several/a', 'file'], ['several-b', '/tmp/several-b', 'file']])
  assert.equal(await sbx.files.read('/tmp/several-b'), 'B')
})

test('files.write :: an existing file is replaced and keeps its mode', async () => {
  await sbx.files.write('mode.sh', '#!/bin/sh\necho one')
  await sbx.commands.run('chmod 755 mode.sh')
  await sbx.files.write('mode.sh', '#!/bin/sh\necho two')
  assert.equal((await sbx.commands.run('./mode.sh')).stdout, 'two\n')
})

test('files.write :: a directory is no place for a file', async () => {
  await sbx.files.makeDir('place')
  await assert.rejects(sbx.files.write('place', 'x'), InvalidArgumentError)
  await assert.rejects(sbx.files.write('/etc/passwd/x', 'x'))
})

test('files.write :: a full disk is a NotEnoughSpaceError', async t => {
  const made = await native('POST', '/v1/templates', { name: 'small-disk', image: 'base', user: 'user', disk_mb: 16 })
  assert.ok(made.ok || made.status === 409, await made.text())
  const small = await create({}, 'small-disk')
  await assert.rejects(small.files.write('/tmp/big', new Uint8Array(64 << 20).fill(7).buffer), NotEnoughSpaceError)
  await small.kill()
  await native('DELETE', '/v1/templates/small-disk')
})

test('files.getInfo :: all that is known of a file, a directory and a link', async t => {
  needs(t, sbx.files.getInfo, 'no getInfo')
  await sbx.commands.run('mkdir -p i/d; printf 12345 > i/f; chmod 640 i/f; ln -sf f i/l; ln -sf nowhere i/broken')
  const f = await sbx.files.getInfo('i/f')
  assert.equal(f.name, 'f')
  assert.equal(f.path, '/home/user/i/f')
  assert.equal(f.type, FileType.FILE)
  assert.equal(Number(f.size), 5)
  assert.equal(f.mode, 0o640)
  assert.equal(f.permissions, '-rw-r-----')
  assert.equal(f.owner, 'user')
  assert.equal(f.group, 'user')
  assert.ok(Math.abs(f.modifiedTime - Date.now()) < 3_600_000)
  assert.equal((await sbx.files.getInfo('i/d')).type, FileType.DIR)
  const l = await sbx.files.getInfo('i/l')
  assert.equal(l.symlinkTarget, '/home/user/i/f')
  assert.equal(l.type, FileType.FILE)
  await assert.rejects(sbx.files.getInfo('i/nope'), NotFoundError)
})

test('files.list depth :: one level, more levels, and errors', async () => {
  await sbx.commands.run('mkdir -p t/a/b/c; touch t/a/b/c/deep t/top')
  assert.deepEqual((await sbx.files.list('t')).map(e => e.name), ['a', 'top'])
  assert.deepEqual((await sbx.files.list('t', { depth: 3 })).map(e => e.path.slice(13)), ['a', 'a/b', 'a/b/c', 'top'])
  await assert.rejects(sbx.files.list('t/top'), InvalidArgumentError)
  await assert.rejects(sbx.files.list('t', { depth: 0 }), InvalidArgumentError)
})

test('files.rename :: over another file, and from nowhere', async () => {
  await sbx.files.write('from', 'new')
  await sbx.files.write('to', 'old')
  const moved = await sbx.files.rename('from', 'to')
  assert.equal(moved.name, 'to')
  assert.equal(moved.type, FileType.FILE)
  assert.equal(await sbx.files.read('to'), 'new')
  assert.equal(await sbx.files.exists('from'), false)
  await assert.rejects(sbx.files.rename('nowhere', 'x'), NotFoundError)
})

test('files.remove :: a file, a tree, and what is not there', async () => {
  await sbx.commands.run('mkdir -p gone/a/b; touch gone/a/b/f')
  await sbx.files.remove('gone')
  assert.equal(await sbx.files.exists('gone'), false)
  await sbx.files.remove('gone')
  await assert.rejects(sbx.files.remove('/proc/version'))
})

test('files.exists :: files, directories, and as another user', async () => {
  assert.equal(await sbx.files.exists('/etc/passwd'), true)
  assert.equal(await sbx.files.exists('/etc'), true)
  await sbx.files.write('/root/hidden', 'x', { user: 'root' })
  assert.equal(await sbx.files.exists('/root/hidden', { user: 'root' }), true)
})

test('files.makeDir :: where a file is, it is refused', async () => {
  await sbx.files.write('afile', 'x')
  await assert.rejects(sbx.files.makeDir('afile'), InvalidArgumentError)
})

test('files user :: every call is the named user\'s', async () => {
  await sbx.files.makeDir('/root/d', { user: 'root' })
  assert.equal((await sbx.files.list('/root', { user: 'root' })).find(e => e.name === 'd').owner, 'root')
  await sbx.files.rename('/root/d', '/root/e', { user: 'root' })
  await sbx.files.remove('/root/e', { user: 'root' })
  assert.equal((await sbx.files.list('/root')).some(e => e.name === 'e'), false) // with root's rights, as E2B's is
  await assert.rejects(sbx.files.write('x', 'y', { user: 'nobody-here' }), e => /nobody-here/.test(e.message))
})

async function watched (path, act, opts = {}) {
  const seen = []
  const handle = await sbx.files.watchDir(path, e => { seen.push(e) }, opts)
  await act()
  return { seen, handle }
}

test('files.watchDir recursive :: names below, also in directories made later; without it, none', async () => {
  await sbx.commands.run('mkdir -p watch/sub')
  const { seen, handle } = await watched('watch', () => sbx.commands.run('mkdir watch/new; sleep 1; echo x > watch/new/f; rm watch/new/f'), { recursive: true })
  await until(() => seen.some(e => e.name === 'new/f' && e.type === FilesystemEventType.REMOVE), 'what happened below')
  await handle.stop()
  const flat = await watched('watch', () => sbx.commands.run('echo x > watch/sub/f; echo x > watch/top; mv watch/top watch/top2; chmod 600 watch/top2'))
  await until(() => flat.seen.some(e => e.type === FilesystemEventType.CHMOD && e.name === 'top2'), 'the change of mode')
  assert.ok(flat.seen.every(e => !e.name.includes('/')))
  for (const [type, name] of [['CREATE', 'top'], ['WRITE', 'top'], ['RENAME', 'top'], ['CREATE', 'top2']])
    assert.ok(flat.seen.some(e => e.type === FilesystemEventType[type] && e.name === name), `${type} ${name}`)
  await flat.handle.stop()
})

test('files.watchDir includeEntry :: an event brings what it is about', async t => {
  needs(t, since('2.30.0'), 'no includeEntry')
  await sbx.files.makeDir('entries')
  const { seen, handle } = await watched('entries', () => sbx.files.write('entries/f', 'hello'), { includeEntry: true })
  const told = await until(() => seen.find(e => e.name === 'f' && e.entry), 'an entry')
  assert.equal(told.entry.path, '/home/user/entries/f')
  assert.equal(told.entry.type, FileType.FILE)
  await handle.stop()
})

test('files.watchDir timeoutMs, onExit :: a watch over its time is ended and told of', async () => {
  await sbx.files.makeDir('timed')
  let ended
  await sbx.files.watchDir('timed', () => {}, { timeoutMs: 2000, onExit: e => { ended = e ?? true } })
  await until(() => ended, 'its end')
  assert.ok(ended === true || ended instanceof TimeoutError, String(ended))
})

test('files.watchDir :: what is not there, and what is a file', async () => {
  await assert.rejects(sbx.files.watchDir('nope', () => {}), NotFoundError)
  await assert.rejects(sbx.files.watchDir('/etc/passwd', () => {}), InvalidArgumentError)
})

test('uploadUrl :: a link takes a file, with a user and until it is over', async () => {
  const send = (url, name = 'file') => {
    const form = new FormData()
    form.append('file', new Blob(['sent']), name)
    return fetch(url, { method: 'POST', body: form })
  }
  assert.equal((await send(await sbx.uploadUrl('up/one.txt'))).status, 200)
  assert.equal(await sbx.files.read('up/one.txt'), 'sent')
  assert.equal((await send(await sbx.uploadUrl(), 'up/two.txt')).status, 200)
  assert.equal(await sbx.files.read('up/two.txt'), 'sent')
  assert.equal((await send(await sbx.uploadUrl('/root/three', { user: 'root' }))).status, 200)
  assert.equal(await sbx.files.read('/root/three', { user: 'root' }), 'sent')
  assert.equal((await send(await sbx.uploadUrl('up/four', { useSignatureExpiration: 60_000 }))).status, 200)
  const over = new URL(await sbx.uploadUrl('up/five', { useSignatureExpiration: 60_000 }))
  over.searchParams.set('signature_expiration', '1')
  assert.equal((await send(over)).status, 401)
})
