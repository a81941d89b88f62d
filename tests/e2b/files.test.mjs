// Files of a sandbox, through E2B's own client.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import * as e2b from 'e2b'
import { create, test, until } from './lib.mjs'

const { FileNotFoundError, FileType, FilesystemEventType, InvalidArgumentError } = e2b

let sbx
before(async () => { sbx = await create() })

test('files.write :: write and read, text and bytes, relative to the home', async () => {
  const w = await sbx.files.write('note.txt', 'hello')
  assert.equal(w.path, '/home/user/note.txt')
  assert.equal(await sbx.files.read('/home/user/note.txt'), 'hello')
  const bytes = new Uint8Array(100_000).map((_, i) => i)
  await sbx.files.write('deep/er/data.bin', bytes.buffer)
  assert.deepEqual(await sbx.files.read('deep/er/data.bin', { format: 'bytes' }), bytes)
  await sbx.files.write('empty', '')
  assert.equal(await sbx.files.read('empty'), '')
  const stream = await sbx.files.read('note.txt', { format: 'stream' })
  let text = ''
  for await (const piece of stream) text += Buffer.from(piece).toString()
  assert.equal(text, 'hello')
})

test('files.write :: many at once', async () => {
  const files = Array.from({ length: 20 }, (_, i) => ({ path: `many/${i}.txt`, data: `n${i}` }))
  const written = await sbx.files.write(files)
  assert.deepEqual(written.map(w => w.path), files.map(f => '/home/user/' + f.path))
  assert.equal(await sbx.files.read('many/19.txt'), 'n19')
})

test('files.write user :: a write as another user is that user\'s', async () => {
  await sbx.files.write('/root/secret', 'x', { user: 'root' })
  assert.equal(await sbx.files.read('/root/secret', { user: 'root' }), 'x')
  assert.equal((await sbx.commands.run('stat -c %U /root/secret', { user: 'root' })).stdout, 'root\n')
})

test('files.read :: what is not there, and what is a directory', async () => {
  await assert.rejects(sbx.files.read('nope'), FileNotFoundError)
  await assert.rejects(sbx.files.list('nope'), FileNotFoundError)
  await assert.rejects(sbx.files.read('/home/user'), InvalidArgumentError)
  assert.equal(await sbx.files.exists('nope'), false)
})

test('files.makeDir :: directories: make, list, move, remove', async () => {
  assert.equal(await sbx.files.makeDir('dir/sub'), true)
  assert.equal(await sbx.files.makeDir('dir/sub'), false)
  await sbx.files.write('dir/sub/f', 'x')
  const list = await sbx.files.list('dir', { depth: 2 })
  assert.deepEqual(list.map(e => [e.name, e.path, e.type]), [
    ['sub', '/home/user/dir/sub', FileType.DIR], ['f', '/home/user/dir/sub/f', FileType.FILE]])
  const moved = await sbx.files.rename('dir/sub/f', 'elsewhere/g')
  assert.equal(moved.path, '/home/user/elsewhere/g')
  await sbx.files.remove('dir')
  assert.equal(await sbx.files.exists('dir'), false)
  await sbx.files.remove('dir')
})

test('downloadUrl :: links with a signature, and without a valid one', async () => {
  await sbx.files.write('linked.txt', 'through a link')
  const url = await sbx.downloadUrl('linked.txt', { useSignatureExpiration: 60_000 })
  assert.equal(await (await fetch(url)).text(), 'through a link')
  assert.equal((await fetch(url.replace('linked.txt', 'note.txt'))).status, 401)
  const past = await sbx.downloadUrl('linked.txt', { useSignatureExpiration: -10 })
  assert.equal((await fetch(past)).status, 401)
  const up = await sbx.uploadUrl('uploaded.txt')
  const form = new FormData()
  form.append('file', new Blob(['sent']), 'uploaded.txt')
  assert.equal((await fetch(up, { method: 'POST', body: form })).status, 200)
  assert.equal(await sbx.files.read('uploaded.txt'), 'sent')
})

test('files.watchDir :: a watch tells what happens, also in directories made later', async () => {
  await sbx.files.makeDir('watched')
  const seen = []
  const watch = await sbx.files.watchDir('watched', e => seen.push(`${e.type} ${e.name}`), { recursive: true })
  await sbx.files.write('watched/a', '1')
  await sbx.files.makeDir('watched/later')
  await sbx.files.write('watched/later/b', '2')
  await sbx.files.rename('watched/a', 'watched/c')
  await sbx.files.remove('watched/c')
  const wanted = [`${FilesystemEventType.CREATE} later`, `${FilesystemEventType.CREATE} later/b`,
    `${FilesystemEventType.RENAME} a`, `${FilesystemEventType.CREATE} c`, `${FilesystemEventType.REMOVE} c`]
  for (const w of wanted) await until(() => seen.includes(w), `${w} among ${seen.join(', ')}`)
  await watch.stop()
  await assert.rejects(sbx.files.watchDir('nope', () => {}))
})

test('files.write user :: what root could write, a user\'s call can, and the file is the user\'s', async () => {
  const s = await create()
  await s.files.write([{ path: '/srv/new/a.txt', data: 'a' }, { path: '/etc/hostname.d/b', data: 'b' }])
  assert.equal((await s.commands.run('stat -c %U:%a /srv/new /srv/new/a.txt /etc/hostname.d/b')).stdout,
    'user:755\nuser:644\nuser:644\n')
  await s.commands.run('install -m 0600 /dev/null /root/secret && echo -n old > /root/secret', { user: 'root' })
  assert.equal(await s.files.read('/root/secret'), 'old')
  await s.files.write('/root/secret', 'new')
  assert.equal((await s.commands.run('stat -c %U:%a /root/secret && cat /root/secret', { user: 'root' })).stdout, 'user:600\nnew')
  await s.files.remove('/root/secret')
  assert.equal(await s.files.exists('/root/secret'), false)
})

test('files.watchDir :: a new file in a new directory is told as made and as written', async () => {
  const s = await create()
  await s.files.makeDir('watched')
  const seen = []
  const handle = await s.files.watchDir('watched', e => { seen.push(`${e.type} ${e.name}`) }, { recursive: true })
  await s.files.makeDir('watched/inner')
  await until(() => seen.includes('create inner'), 'the directory')
  await s.files.write('watched/inner/f', 'x')
  await until(() => seen.includes('create inner/f') && seen.includes('write inner/f'), 'the file')
  await handle.stop()
})
