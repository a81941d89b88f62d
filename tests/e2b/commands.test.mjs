// Commands of a sandbox, through E2B's own client.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import * as e2b from 'e2b'
import { create, needs, since, test, until } from './lib.mjs'

const { CommandExitError, NotFoundError, TimeoutError } = e2b

let sbx
before(async () => { sbx = await create({ envs: { FROM: 'sandbox', BOTH: 'sandbox' } }) })

test('commands.run :: run gives output, both streams and the exit code', async () => {
  const r = await sbx.commands.run('echo out; echo err >&2')
  assert.equal(r.stdout, 'out\n')
  assert.equal(r.stderr, 'err\n')
  assert.equal(r.exitCode, 0)
})

test('commands.run :: a failing command is a CommandExitError with its output', async () => {
  await assert.rejects(sbx.commands.run('echo before; exit 3'), e => {
    assert.ok(e instanceof CommandExitError)
    assert.equal(e.exitCode, 3)
    assert.equal(e.stdout, 'before\n')
    assert.equal(e.error, 'exit status 3')
    return true
  })
})

test('commands.run onStdout, onStderr :: output comes while the command runs', async () => {
  const seen = []
  await sbx.commands.run('echo one; sleep 0.2; echo two >&2', {
    onStdout: d => seen.push(['out', d]), onStderr: d => seen.push(['err', d]) })
  assert.deepEqual(seen, [['out', 'one\n'], ['err', 'two\n']])
})

test('commands.run user, cwd, envs :: user, directory and environment are the caller\'s', async () => {
  assert.equal((await sbx.commands.run('id -un; pwd')).stdout, 'user\n/home/user\n')
  assert.equal((await sbx.commands.run('id -un; pwd', { user: 'root', cwd: '/tmp' })).stdout, 'root\n/tmp\n')
  assert.equal((await sbx.commands.run('echo $FROM $BOTH $OWN', { envs: { BOTH: 'call', OWN: 'x' } })).stdout, 'sandbox call x\n')
  assert.equal((await sbx.commands.run('echo $E2B_SANDBOX $E2B_SANDBOX_ID')).stdout, `true ${sbx.sandboxId}\n`)
})

test('commands.run user, cwd, envs :: a directory that is not there and a user that is not there are told', async () => {
  await assert.rejects(sbx.commands.run('true', { cwd: '/nope' }), /nope/)
  await assert.rejects(sbx.commands.run('true', { user: 'nobody-here' }), e => /user/i.test(e.message))
})

test('commands.run timeoutMs :: a command over its time is ended', async () => {
  await assert.rejects(sbx.commands.run('sleep 30', { timeoutMs: 500 }), TimeoutError)
})

test('commands.connect :: a background command is fed, listed, reconnected to and killed', async () => {
  let out = ''
  const cmd = await sbx.commands.run('for i in 1 2; do read x; echo $x; done', { background: true, stdin: true, onStdout: d => { out += d } })
  await sbx.commands.sendStdin(cmd.pid, 'hello\n')
  assert.ok((await sbx.commands.list()).some(p => p.pid === cmd.pid && p.cmd === '/bin/bash'))
  await until(() => out, 'the echo')
  assert.equal(out, 'hello\n')
  await cmd.disconnect()
  const again = await sbx.commands.connect(cmd.pid)
  assert.equal(again.pid, cmd.pid)
  await sbx.commands.sendStdin(cmd.pid, 'again\n')
  const end = await again.wait()
  assert.equal(end.exitCode, 0)
  assert.equal(end.stdout, 'hello\nagain\n') // what was printed before the reconnection is not lost
  assert.equal(await sbx.commands.kill(999999), false)
})

test('commands.closeStdin :: ends what the command reads', async t => {
  needs(t, sbx.commands.closeStdin, 'no closeStdin')
  assert.ok(sbx.commands.supportsStdinClose ?? true) // by the version that the sandbox tells
  const cmd = await sbx.commands.run('cat', { background: true, stdin: true })
  await sbx.commands.sendStdin(cmd.pid, 'all of it')
  await sbx.commands.closeStdin(cmd.pid)
  assert.equal((await cmd.wait()).stdout, 'all of it')
})

test('commands.kill :: kill ends a command and all it started', async () => {
  const cmd = await sbx.commands.run('sleep 1000 & sleep 1000', { background: true })
  assert.equal(await sbx.commands.kill(cmd.pid), true)
  await assert.rejects(cmd.wait(), e => e instanceof CommandExitError && /killed/.test(e.error))
  assert.equal((await sbx.commands.run('pgrep -c sleep || true')).stdout, '0\n')
})

test('commands.connect :: connecting to what is not there is a NotFoundError', async () => {
  await assert.rejects(sbx.commands.connect(999999), NotFoundError)
})

test('pty.create :: a terminal echoes, takes a size and ends', async () => {
  let out = ''
  const dec = new TextDecoder()
  const term = await sbx.pty.create({ cols: 91, rows: 37, onData: d => { out += dec.decode(d, { stream: true }) } })
  await sbx.pty.sendInput(term.pid, new TextEncoder().encode('stty size\n'))
  await until(() => out.includes('37 91'), 'the size')
  await sbx.pty.resize(term.pid, { cols: 100, rows: 40 })
  await sbx.pty.sendInput(term.pid, new TextEncoder().encode('stty size; exit 0\n'))
  assert.equal((await term.wait()).exitCode, 0)
  assert.match(out, /40 100/)
})

test('commands.run :: a character that comes in two pieces arrives as one', async t => {
  needs(t, since('2.14.0'), 'each piece is decoded alone')
  const r = await sbx.commands.run("printf '\\344\\270'; sleep 0.1; printf '\\255'")
  assert.equal(r.stdout, '中')
})
