// The git module's options: a remote that asks for a password, and what is taken back from where.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import * as e2b from 'e2b'
import { create, needs, test, until } from './lib.mjs'

const { GitAuthError } = e2b
const URL_ = 'http://127.0.0.1:8765/origin.git'
const SERVER = `
import base64, http.server
WANT = 'Basic ' + base64.b64encode(b'ann:right').decode()
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.headers.get('Authorization') == WANT:
            return super().do_GET()
        self.send_response(401)
        self.send_header('WWW-Authenticate', 'Basic realm="git"')
        self.send_header('Content-Length', '0')
        self.end_headers()
http.server.ThreadingHTTPServer(('127.0.0.1', 8765), Handler).serve_forever()
`

let sbx
before(async () => {
  sbx = await create()
  await sbx.files.write('server.py', SERVER)
  await sbx.commands.run(`git init -qb main work && cd work && git config user.name Ann && git config user.email ann@example.com &&
    echo one > a && git add a && git commit -qm first && echo two > a && git commit -qam second &&
    git clone -q --bare . ../origin.git && cd ../origin.git && git update-server-info`)
  await sbx.commands.run('exec python3 server.py', { background: true, timeoutMs: 0 })
  await until(() => sbx.commands.run(`curl -s -o /dev/null ${URL_}`).then(() => true, () => false), 'the server')
})
const ready = t => needs(t, sbx.git, 'no git module')
const origin = async path => (await sbx.commands.run(`git -C ${path} remote get-url origin`)).stdout.trim()

test('errors GitAuthError :: no password, and a wrong one', async t => {
  ready(t)
  await assert.rejects(sbx.git.clone(URL_, { path: '/home/user/none' }), GitAuthError)
  await assert.rejects(sbx.git.clone(URL_, { path: '/home/user/none', username: 'ann', password: 'wrong' }), GitAuthError)
})

test('git.clone username, password :: they are used, and not kept', async t => {
  ready(t)
  await sbx.git.clone(URL_, { path: '/home/user/clone', username: 'ann', password: 'right' })
  assert.equal(await sbx.files.read('clone/a'), 'two\n')
  assert.equal(await origin('clone'), URL_)
})

test('git.clone dangerouslyStoreCredentials :: they are kept', async t => {
  ready(t)
  await sbx.git.clone(URL_, { path: '/home/user/kept', username: 'ann', password: 'right', dangerouslyStoreCredentials: true })
  assert.equal(await origin('kept'), URL_.replace('://', '://ann:right@'))
  await sbx.git.pull('/home/user/kept')
})

test('git.remoteAdd overwrite, fetch :: another address for the same name', async t => {
  ready(t)
  const path = '/home/user/work'
  await sbx.git.remoteAdd(path, 'up', '/nowhere')
  await assert.rejects(sbx.git.remoteAdd(path, 'up', '/home/user/origin.git'))
  await sbx.git.remoteAdd(path, 'up', '/home/user/origin.git', { overwrite: true, fetch: true })
  assert.equal(await sbx.git.remoteGet(path, 'up'), '/home/user/origin.git')
  assert.match((await sbx.commands.run('git branch -r', { cwd: path })).stdout, /up\/main/)
})

test('git.restore staged, worktree, source :: what was, from where', async t => {
  ready(t)
  const path = '/home/user/work'
  await sbx.git.restore(path, { paths: ['a'], source: 'HEAD~1', worktree: true })
  assert.equal(await sbx.files.read('work/a'), 'one\n')
  await sbx.git.add(path, { files: ['a'] })
  await sbx.git.restore(path, { paths: ['a'], staged: true })
  const [file] = (await sbx.git.status(path)).fileStatus
  assert.equal(file.staged, false)
  await sbx.git.restore(path, { paths: ['a'] })
  assert.equal((await sbx.git.status(path)).isClean, true)
})

test('git.status :: branches, what is ahead and what is in which state', async t => {
  ready(t)
  await sbx.git.clone('/home/user/origin.git', { path: '/home/user/two' })
  await sbx.commands.run('cd two && echo three > b && git add b && echo four > c && echo five > a')
  let s = await sbx.git.status('/home/user/two')
  assert.equal(s.upstream, 'origin/main')
  assert.deepEqual([s.hasChanges, s.hasConflicts, s.totalCount, s.stagedCount, s.unstagedCount, s.untrackedCount, s.conflictCount],
    [true, false, 3, 1, 2, 1, 0])
  const b = s.fileStatus.find(f => f.name === 'b')
  assert.deepEqual([b.status, b.indexStatus, b.staged], ['added', 'A', true])
  await sbx.commands.run('cd two && git -c user.name=x -c user.email=x@x commit -qm more && git mv b d')
  s = await sbx.git.status('/home/user/two')
  assert.deepEqual([s.ahead, s.behind, s.detached], [1, 0, false])
  assert.equal(s.fileStatus.find(f => f.name === 'd').renamedFrom, 'b')
})

test('sandbox.getMcpUrl, sandbox.getMcpToken :: what a template with such a server has', async t => {
  needs(t, sbx.getMcpToken && sbx.getMcpUrl, 'no MCP')
  await sbx.commands.run('mkdir -p /etc/mcp-gateway && printf token > /etc/mcp-gateway/.token', { user: 'root' })
  assert.equal(await sbx.getMcpToken(), 'token')
  assert.equal(sbx.getMcpUrl(), `https://${sbx.getHost(50005)}/mcp`)
})

test('files.read streamIdleTimeoutMs :: a stream that goes on is left alone', async t => {
  await sbx.commands.run('head -c 3000000 /dev/zero > zeros')
  let n = 0
  for await (const piece of await sbx.files.read('zeros', { format: 'stream', streamIdleTimeoutMs: 20_000 })) n += piece.length
  assert.equal(n, 3_000_000)
})
