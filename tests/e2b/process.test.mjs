// Commands and terminals in all their options, through E2B's own client.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import * as e2b from 'e2b'
import { create, needs, since, test, until } from './lib.mjs'

const { CommandExitError, InvalidArgumentError, NotFoundError, Sandbox, TimeoutError } = e2b
const bytes = text => new TextEncoder().encode(text)

let sbx
before(async () => { sbx = await create() })

test('commands.run background :: a handle has the pid, the output so far and the end', async () => {
  const cmd = await sbx.commands.run('echo out; echo err >&2; until [ -e /tmp/seen ]; do sleep 0.02; done; exit 4', { background: true })
  assert.ok(cmd.pid > 0)
  assert.equal((await sbx.commands.run(`kill -0 ${cmd.pid} && echo there; touch /tmp/seen`)).stdout, 'there\n')
  await assert.rejects(cmd.wait(), e => e instanceof CommandExitError && e.exitCode === 4)
  assert.equal(cmd.exitCode, 4)
  assert.equal(cmd.error, 'exit status 4')
  assert.equal(cmd.stdout, 'out\n')
  assert.equal(cmd.stderr, 'err\n')
})

test('commands.run background :: it goes on when its client has left', async () => {
  const cmd = await sbx.commands.run('sleep 1; echo done > /tmp/left', { background: true })
  await cmd.disconnect()
  await until(() => sbx.files.exists('/tmp/left'), 'what it wrote')
})

test('commands.run stdin :: without it there is nothing to read', async t => {
  needs(t, since('2.4.0'), 'stdin is always open')
  assert.equal((await sbx.commands.run('cat | wc -c')).stdout, '0\n')
  const cmd = await sbx.commands.run('cat', { background: true, stdin: false })
  await assert.rejects(sbx.commands.sendStdin(cmd.pid, 'x'))
})

test('commands.sendStdin :: text and bytes, by pid and by handle', async t => {
  const cmd = await sbx.commands.run('head -c 9 | od -An -tx1', { background: true, stdin: true })
  await sbx.commands.sendStdin(cmd.pid, 'abc')
  await sbx.commands.sendStdin(cmd.pid, since('2.24.0') ? new Uint8Array([0, 255, 10]) : 'xyz')
  await (cmd.sendStdin ? cmd.sendStdin('end') : sbx.commands.sendStdin(cmd.pid, 'end'))
  const out = (await cmd.wait()).stdout.trim()
  assert.match(out, /^61 62 63 (00 ff 0a|78 79 7a) 65 6e 64$/)
})

test('commands.sendStdin :: to what is not there is a NotFoundError', async () => {
  await assert.rejects(sbx.commands.sendStdin(999999, 'x'), NotFoundError)
})

test('commands.closeStdin :: the end of input, by pid and by handle', async t => {
  needs(t, sbx.commands.closeStdin, 'no closeStdin')
  const cmd = await sbx.commands.run('cat; echo end', { background: true, stdin: true })
  await sbx.commands.sendStdin(cmd.pid, 'in\n')
  await (cmd.closeStdin ? cmd.closeStdin() : sbx.commands.closeStdin(cmd.pid))
  assert.equal((await cmd.wait()).stdout, 'in\nend\n')
})

test('commands.list :: what runs, with its command and arguments', async () => {
  const cmd = await sbx.commands.run('sleep 77', { background: true })
  const found = (await sbx.commands.list()).find(p => p.pid === cmd.pid)
  assert.equal(found.cmd, '/bin/bash')
  assert.deepEqual(found.args, ['-l', '-c', 'sleep 77'])
  assert.equal(await cmd.kill(), true)
  await assert.rejects(cmd.wait(), CommandExitError)
  assert.ok(!(await sbx.commands.list()).some(p => p.pid === cmd.pid))
})

test('commands.connect :: the exit is kept for those who come later', async () => {
  const cmd = await sbx.commands.run('echo last; exit 5', { background: true })
  await assert.rejects(cmd.wait(), CommandExitError)
  const late = await sbx.commands.connect(cmd.pid)
  await assert.rejects(late.wait(), e => e instanceof CommandExitError && e.exitCode === 5)
})

test('commands.connect onStdout, onStderr :: two who connect both get all that follows', async () => {
  const cmd = await sbx.commands.run('read line; echo $line; echo e >&2', { background: true, stdin: true })
  const seen = [[], []]
  const both = await Promise.all(seen.map(s => sbx.commands.connect(cmd.pid, {
    onStdout: d => { s.push(d) }, onStderr: d => { s.push(d) } })))
  await sbx.commands.sendStdin(cmd.pid, 'go\n')
  await Promise.all(both.map(h => h.wait()))
  for (const s of seen) assert.deepEqual([...s].sort(), ['e\n', 'go\n'])
})

test('commands.connect timeoutMs :: it ends the stream, not the command', async () => {
  const cmd = await sbx.commands.run('sleep 60', { background: true, timeoutMs: 0 })
  const watch = await sbx.commands.connect(cmd.pid, { timeoutMs: 2000 })
  await assert.rejects(watch.wait(), TimeoutError)
  assert.ok((await sbx.commands.list()).some(p => p.pid === cmd.pid))
  await cmd.kill()
})

test('commands.kill :: what is not there is no failure', async () => {
  assert.equal(await sbx.commands.kill(999999), false)
})

test('commands.run requestTimeoutMs :: it is for the start, not for the command', async () => {
  assert.equal((await sbx.commands.run('sleep 4; echo on', { requestTimeoutMs: 3000 })).stdout, 'on\n')
})

test('commands.run signal :: a caller can give up', async t => {
  needs(t, since('2.14.0'), 'no signal')
  const stop = new AbortController()
  const running = sbx.commands.run('sleep 60', { signal: stop.signal })
  setTimeout(() => stop.abort(), 200)
  await assert.rejects(running)
})

test('commands.run :: megabytes arrive whole and in order', async () => {
  let n = 0
  const r = await sbx.commands.run('seq 1 300000', { onStdout: d => { n += d.length } })
  const want = Array.from({ length: 300000 }, (_, i) => `${i + 1}\n`).join('')
  assert.equal(n, want.length)
  assert.ok(r.stdout === want)
})

test('commands.run :: many at once', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, (_, i) => sbx.commands.run(`echo ${i}`)))
  assert.deepEqual(all.map(r => r.stdout), all.map((_, i) => `${i}\n`))
})

test('commands.run :: a command is told of its signal, and one that is not there has 127', async () => {
  await assert.rejects(sbx.commands.run('kill -TERM $$'), e => e.exitCode !== 0 && /terminated|143/.test(e.error))
  await assert.rejects(sbx.commands.run('no-such-program'), e => e instanceof CommandExitError && e.exitCode === 127)
})

test('commands.run :: more than an argument may be is refused', async () => {
  await assert.rejects(sbx.commands.run('x'.repeat(3_000_000)), InvalidArgumentError)
  assert.equal((await sbx.commands.run('echo still')).stdout, 'still\n')
})

test('pty.create user, cwd, envs :: they are the caller\'s', async () => {
  let out = ''
  const dec = new TextDecoder()
  const term = await sbx.pty.create({ cols: 80, rows: 24, user: 'root', cwd: '/tmp', envs: { MINE: 'yes' },
    onData: d => { out += dec.decode(d, { stream: true }) } })
  await sbx.pty.sendInput(term.pid, bytes('echo "[$(id -un) $PWD $MINE $TERM]"; exit 3\n'))
  await assert.rejects(term.wait(), e => e instanceof CommandExitError && e.exitCode === 3)
  assert.match(out, /\[root \/tmp yes xterm-256color\]/)
})

test('pty.create timeoutMs :: a terminal over its time is ended', async () => {
  const term = await sbx.pty.create({ cols: 80, rows: 24, onData: () => {}, timeoutMs: 2000 })
  await assert.rejects(term.wait(), TimeoutError)
})

test('pty.kill :: it ends a terminal, once', async () => {
  const term = await sbx.pty.create({ cols: 80, rows: 24, onData: () => {} })
  assert.equal(await sbx.pty.kill(term.pid), true)
  await assert.rejects(term.wait())
  assert.equal(await sbx.pty.kill(999999), false)
})

test('pty.connect :: another client goes on with it', async t => {
  needs(t, sbx.pty.connect, 'no pty.connect')
  const dec = new TextDecoder()
  let out = ''
  const term = await sbx.pty.create({ cols: 80, rows: 24, onData: () => {} })
  await term.disconnect()
  const again = await sbx.pty.connect(term.pid, { onData: d => { out += dec.decode(d, { stream: true }) } })
  await sbx.pty.sendInput(term.pid, bytes('echo $((6 * 7))\n'))
  await until(() => out.includes('\n42') || out.includes('42\r'), 'its answer')
  await sbx.pty.sendInput(term.pid, bytes('exit\n'))
  assert.equal((await again.wait()).exitCode, 0)
})

test('pty.resize, pty.sendInput :: of what is not there are NotFoundErrors', async () => {
  await assert.rejects(sbx.pty.resize(999999, { cols: 1, rows: 1 }), NotFoundError)
  await assert.rejects(sbx.pty.sendInput(999999, bytes('x')), NotFoundError)
})

test('errors :: a sandbox that is gone is told by every call', async () => {
  const gone = await create()
  await gone.kill()
  await assert.rejects(gone.commands.run('true'), e => e instanceof NotFoundError || e instanceof TimeoutError)
  await assert.rejects(gone.commands.list(), e => e instanceof NotFoundError || e instanceof TimeoutError)
  await assert.rejects(gone.files.list('/'), e => e instanceof NotFoundError || e instanceof TimeoutError)
  await assert.rejects(gone.files.read('/etc/passwd'), e => e instanceof NotFoundError || e instanceof TimeoutError)
  await assert.rejects(gone.files.write('x', 'y'), e => e instanceof NotFoundError || e instanceof TimeoutError)
  await assert.rejects(Sandbox.connect(gone.sandboxId), NotFoundError)
})
