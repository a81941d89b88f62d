// The git module of E2B's client: git runs in the sandbox.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import * as e2b from 'e2b'
import { create, needs, test } from './lib.mjs'

const { GitAuthError, GitUpstreamError } = e2b

let sbx
before(async () => { sbx = await create() })
const ready = t => needs(t, sbx.git, 'no git module')
const R = '/home/user/repo'

test('git.init, git.configureUser :: a repository of one\'s own', async t => {
  ready(t)
  await sbx.git.configureUser('Ann', 'ann@example.com')
  await sbx.git.init(R, { initialBranch: 'main' })
  assert.equal(await sbx.git.getConfig('user.name', { scope: 'global' }), 'Ann')
  assert.equal((await sbx.git.status(R)).currentBranch, 'main')
})

test('git.add, git.commit, git.status :: what was changed, staged and written', async t => {
  ready(t)
  await sbx.files.write(`${R}/a.txt`, 'one')
  let status = await sbx.git.status(R)
  assert.equal(status.isClean, false)
  assert.equal(status.hasUntracked, true)
  await sbx.git.add(R, { files: ['a.txt'] })
  status = await sbx.git.status(R)
  assert.equal(status.hasStaged, true)
  assert.equal(status.fileStatus[0].name, 'a.txt')
  await sbx.git.commit(R, 'first', { authorName: 'Bob', authorEmail: 'bob@example.com' })
  assert.equal((await sbx.git.status(R)).isClean, true)
  assert.equal((await sbx.commands.run(`git -C ${R} log -1 --format=%an:%s`)).stdout, 'Bob:first\n')
  await sbx.git.commit(R, 'nothing', { allowEmpty: true })
  await assert.rejects(sbx.git.commit(R, 'nothing'))
})

test('git.createBranch, git.checkoutBranch, git.branches, git.deleteBranch :: branches', async t => {
  ready(t)
  await sbx.git.createBranch(R, 'side')
  assert.equal((await sbx.git.branches(R)).currentBranch, 'side')
  await sbx.git.checkoutBranch(R, 'main')
  assert.deepEqual((await sbx.git.branches(R)).branches.sort(), ['main', 'side'])
  await sbx.git.deleteBranch(R, 'side', { force: true })
  assert.deepEqual((await sbx.git.branches(R)).branches, ['main'])
})

test('git.reset, git.restore :: back to what was', async t => {
  ready(t)
  await sbx.files.write(`${R}/a.txt`, 'two')
  await sbx.git.add(R)
  await sbx.git.restore(R, { paths: ['a.txt'], staged: true })
  assert.equal((await sbx.git.status(R)).hasStaged, false)
  await sbx.git.restore(R, { paths: ['a.txt'] })
  assert.equal(await sbx.files.read(`${R}/a.txt`), 'one')
  await sbx.files.write(`${R}/a.txt`, 'three')
  await sbx.git.reset(R, { mode: 'hard' })
  assert.equal(await sbx.files.read(`${R}/a.txt`), 'one')
})

test('git.remoteAdd, git.remoteGet, git.push, git.pull, git.clone :: to and from another repository', async t => {
  ready(t)
  await sbx.git.init('/home/user/bare.git', { bare: true, initialBranch: 'main' })
  await sbx.git.remoteAdd(R, 'origin', '/home/user/bare.git')
  assert.equal(await sbx.git.remoteGet(R, 'origin'), '/home/user/bare.git')
  assert.equal(await sbx.git.remoteGet(R, 'other'), undefined)
  await assert.rejects(sbx.git.pull(R), GitUpstreamError)
  await sbx.git.push(R, { remote: 'origin', branch: 'main', setUpstream: true })
  await sbx.git.clone('/home/user/bare.git', { path: '/home/user/copy', branch: 'main', depth: 1 })
  assert.equal(await sbx.files.read('/home/user/copy/a.txt'), 'one')
  await sbx.commands.run('cd copy && echo more > b.txt && git add -A && git commit -qm more && git push -q')
  await sbx.git.pull(R)
  assert.equal(await sbx.files.read(`${R}/b.txt`), 'more\n')
})

test('git.setConfig, git.getConfig :: of one repository', async t => {
  ready(t)
  await sbx.git.setConfig('warren.test', 'yes', { scope: 'local', path: R })
  assert.equal(await sbx.git.getConfig('warren.test', { scope: 'local', path: R }), 'yes')
  assert.equal(await sbx.git.getConfig('warren.other', { scope: 'local', path: R }), undefined)
})

test('git.dangerouslyAuthenticate :: what it is told is kept', async t => {
  ready(t)
  await sbx.git.dangerouslyAuthenticate({ username: 'ann', password: 'secret', host: 'example.com' })
  assert.match((await sbx.commands.run("printf 'protocol=https\\nhost=example.com\\n\\n' | git credential fill")).stdout, /password=secret/)
})
