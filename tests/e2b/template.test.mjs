// Templates built through E2B's own builder, and sandboxes made from them.
import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import * as e2b from 'e2b'
import { create, native, needs, test, until } from './lib.mjs'

const { Template, BuildError, FileUploadError, TemplateError } = e2b
const context = fs.mkdtempSync(path.join(os.tmpdir(), 'e2b-context-'))
const mark = Math.random().toString(36).slice(2, 8)
const names = new Set()

function put (name, text, mode = 0o644) {
  const file = path.join(context, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text, { mode })
}
put('a.txt', 'one')
put('tree/b.txt', 'two')
put('tree/deep/run.sh', '#!/bin/sh\necho ran\n', 0o755)
put('tree/skip.log', 'not this')
put('pkg/package.json', '{"name":"left","version":"1.0.0","bin":{"left":"cli.js"}}')
put('pkg/cli.js', '#!/usr/bin/env node\nconsole.log("left")\n', 0o755)
fs.symlinkSync('a.txt', path.join(context, 'link.txt'))
after(async () => {
  fs.rmSync(context, { recursive: true, force: true })
  await Promise.all([...names].map(n => native('DELETE', `/v1/templates/${n}`)))
})

function name (text) {
  const whole = `${text}-${mark}`
  names.add(whole)
  return whole
}
const base = options => Template({ fileContextPath: context, ...options }).fromBaseImage()

// Builds it, and what its log said, line by line.
async function build (template, called, options = {}) {
  const log = []
  const data = await Template.build(template, options.oldForm ? { alias: called } : called,
    { ...options, onBuildLogs: entry => log.push(entry.message) })
  return { data, log }
}

// Builds it and runs a command in a sandbox of it.
async function ask (template, called, command, options) {
  await build(template, called, options)
  const sbx = await create({}, called)
  return (await sbx.commands.run(command)).stdout
}

test('template.build :: steps become a template that sandboxes are made from', async t => {
  needs(t, Template, 'no templates')
  const called = name('steps')
  const { data, log } = await build(base()
    .setEnvs({ GREETING: 'say "hi" to $HOME', PATH: '/opt/mine:$PATH' })
    .runCmd(`echo "$GREETING"; echo to-stderr >&2 # ${mark}`)
    .runCmd(['cd /tmp', 'pwd > /home/user/where']), called)
  assert.equal(data.templateId, called)
  assert.match(data.buildId, /^[0-9a-f-]{36}$/)
  assert.ok(log.includes('say "hi" to /home/user'), log.join('\n'))
  assert.ok(log.includes('to-stderr'))
  assert.ok(log.some(l => l.includes('[builder 2/3] RUN echo')))
  const sbx = await create({}, called)
  const { stdout } = await sbx.commands.run('cat where; id -un; pwd; echo "$GREETING"; echo "$PATH"')
  assert.match(stdout, /^\/tmp\nuser\n\/home\/user\nsay "hi" to \/home\/user\n\/opt\/mine:/)
  assert.equal((await sbx.getInfo()).templateId, called)
})

test('template.build :: an alias among the options is the old form of a name', async t => {
  needs(t, Template, 'no templates')
  const called = name('alias')
  const { data } = await build(base().runCmd('true'), called, { oldForm: true })
  assert.equal(data.templateId, called)
})

test('template.build :: cpus, memory and free disk are those of its sandboxes', async t => {
  needs(t, Template, 'no templates')
  const called = name('sized')
  await build(base(), called, { cpuCount: 1, memoryMB: 256, minFreeDiskMb: 300 })
  const info = await (await create({}, called)).getInfo()
  assert.equal(info.cpuCount, 1)
  assert.equal(info.memoryMB, 256)
  for (const wrong of [{ cpuCount: 0 }, { memoryMB: 1 }]) {
    await assert.rejects(build(base(), called, wrong), e => e instanceof BuildError && /must be/.test(e.message))
  }
})

test('template.build :: a step that was done before is not done again', async t => {
  needs(t, Template, 'no templates')
  const template = () => base().copy('a.txt', '/srv/a.txt').runCmd(`date +%N > /tmp/when # ${mark}`)
  const first = await ask(template(), name('cached'), 'cat /tmp/when')
  const { log } = await build(template(), name('cached'))
  assert.ok(log.some(l => l.startsWith('CACHED [builder 2/2]')), log.join('\n'))
  assert.ok(log.some(l => l.includes("Skipping upload of 'a.txt'")), log.join('\n'))
  assert.equal(await (await create({}, name('cached'))).commands.run('cat /tmp/when').then(r => r.stdout), first)
  assert.notEqual(await ask(template(), name('fresh'), 'cat /tmp/when', { skipCache: true }), first)
})

test('template.skipCache :: steps behind it are done again', async t => {
  needs(t, Template, 'no templates')
  const template = () => base().runCmd(`date +%N > /tmp/kept # ${mark}`).skipCache().runCmd('date +%N > /tmp/again')
  const [a, b] = [await ask(template(), name('skip'), 'cat /tmp/kept /tmp/again'), await ask(template(), name('skip'), 'cat /tmp/kept /tmp/again')]
    .map(text => text.split('\n'))
  assert.equal(a[0], b[0])
  assert.notEqual(a[1], b[1])
})

test('template.copy :: files, trees and patterns arrive, with owner and mode', async t => {
  needs(t, Template, 'no templates')
  const said = await ask(base({ fileIgnorePatterns: ['**/*.log'] }).setWorkdir('/app')
    .copy('a.txt', 'renamed.txt')
    .copy('a.txt', '/app/')
    .copy('tree', '/app/tree')
    .copy(['a.txt', 'tree/b.txt'], '/app/many/', { user: 'root', mode: 0o600 })
    .copy('tree/**/*.sh', '/app/scripts')
    .copy('tree/*.txt', '/app/texts/'), name('copy'),
  'find /app -type f | sort; echo --; stat -c "%U %a %n" renamed.txt tree/deep/run.sh many/b.txt; cat renamed.txt; tree/deep/run.sh')
  const [files, rest] = said.split('--\n')
  assert.deepEqual(files.trim().split('\n'), ['/app/a.txt', '/app/many/a.txt', '/app/many/b.txt', '/app/renamed.txt',
    '/app/scripts/deep/run.sh', '/app/texts/b.txt', '/app/tree/b.txt', '/app/tree/deep/run.sh'])
  assert.equal(rest, 'user 644 renamed.txt\nuser 755 tree/deep/run.sh\nroot 600 many/b.txt\noneran\n')
})

test('template.copy :: links stay links, or become what they name', async t => {
  needs(t, Template, 'no templates')
  const said = await ask(base().setWorkdir('/app').copy('link.txt', '/app/kept').copy('link.txt', '/app/followed', { resolveSymlinks: true }),
    name('links'), 'readlink kept; test -L followed || cat followed')
  assert.equal(said, 'a.txt\none')
})

test('template.copy :: an upload can be forced, and sent unpacked', async t => {
  needs(t, Template, 'no templates')
  const template = () => base().copy('tree', '/srv/tree', { forceUpload: true, gzip: false })
  await build(template(), name('forced'))
  const { log } = await build(template(), name('forced'))
  assert.ok(log.includes("Uploaded 'tree'"), log.join('\n'))
  assert.equal((await (await create({}, name('forced'))).commands.run('cat /srv/tree/b.txt')).stdout, 'two')
})

test('template.copyItems :: several at once', async t => {
  needs(t, Template?.().fromBaseImage().copyItems, 'no copyItems')
  assert.equal(await ask(base().copyItems([{ src: 'a.txt', dest: '/srv/1' }, { src: 'tree/b.txt', dest: '/srv/2', mode: 0o640, user: 'root' }]),
    name('items'), 'cat /srv/1; stat -c "%U %a" /srv/2'), 'oneroot 640\n')
})

test('template.copy :: paths outside of the context are refused', async t => {
  needs(t, Template, 'no templates')
  assert.throws(() => base().copy('/etc/passwd', '/x'), TemplateError ?? Error)
  assert.throws(() => base().copy('../x', '/x'), TemplateError ?? Error)
  await assert.rejects(build(base().copy('not-there', '/x'), name('none')), /No files found/)
})

test('template.copy :: a link for uploads that is forged or of another team opens nothing', async t => {
  needs(t, Template, 'no templates')
  const hash = crypto.randomBytes(32).toString('hex')
  const answer = await fetch(`${process.env.E2B_API_URL}/templates/${name('up')}/files/${hash}`, { headers: { 'x-api-key': process.env.E2B_API_KEY } })
  assert.equal(answer.status, 201)
  const { present, url } = await answer.json()
  assert.equal(present, false)
  const send = to => fetch(to, { method: 'PUT', body: 'x' }).then(r => r.status)
  assert.equal(await send(url.replace(/token=../, 'token=zz')), 401)
  assert.equal(await send(url.replace(hash, 'cd'.repeat(32))), 401)
  assert.equal(await send(url.replace(/team=[^&]*/, 'team=other')), 401)
  assert.equal(await send(url.replace(/until=\d+/, 'until=1')), 401)
  assert.equal(await send(url), 200) // no archive: a build that takes it fails
  const data = await fetch(`${process.env.E2B_API_URL}/v3/templates`, { method: 'POST', body: JSON.stringify({ name: name('up') }),
    headers: { 'x-api-key': process.env.E2B_API_KEY, 'content-type': 'application/json' } }).then(r => r.json())
  const start = await fetch(`${process.env.E2B_API_URL}/v2/templates/${name('up')}/builds/${data.buildID}`, { method: 'POST',
    body: JSON.stringify({ fromImage: 'base', steps: [{ type: 'COPY', args: ['a', '/b', '', ''], filesHash: hash }] }),
    headers: { 'x-api-key': process.env.E2B_API_KEY, 'content-type': 'application/json' } })
  assert.equal(start.status, 202)
  const status = await until(async () => {
    const s = await Template.getBuildStatus({ templateId: name('up'), buildId: data.buildID })
    return s.status === 'error' && s
  }, 'the build to fail')
  assert.equal(status.reason.step, '1')
  assert.match(status.reason.message, /step 1: .*archive|cannot be unpacked/)
})

test('template.remove, rename, makeDir, makeSymlink :: files are arranged', async t => {
  needs(t, Template, 'no templates')
  const said = await ask(base().setWorkdir('/app').copy('tree', '/app/tree').copy('a.txt', '/app/a.txt')
    .remove('tree/deep', { recursive: true, force: true })
    .remove(['tree/skip.log'])
    .rename('a.txt', 'b.txt', { force: true })
    .makeDir(['x/y', 'z'], { mode: 0o700 })
    .makeDir('/root/only', { user: 'root' })
    .makeSymlink('b.txt', 'c.txt', { force: true }), name('arrange'), 'find . | sort; stat -c %a z; readlink c.txt; sudo ls /root')
  assert.match(said, /^\.\n\.\/b.txt\n\.\/c.txt\n\.\/tree\n\.\/tree\/b.txt\n\.\/x\n\.\/x\/y\n\.\/z\n700\nb.txt\n(.*\n)*only\n/)
})

test('template.setUser, setWorkdir :: the last ones hold for its sandboxes', async t => {
  needs(t, Template, 'no templates')
  const said = await ask(base().setUser('guest').setWorkdir('/data').runCmd('touch mine; id -un > who')
    .runCmd('id -un >> /root/who', { user: 'root' }), name('user'), 'pwd; id -un; cat who; stat -c %U mine .')
  assert.equal(said, '/data\nguest\nguest\nguest\nguest\n')
})

test('template.fromTemplate :: begins where another ended', async t => {
  needs(t, Template, 'no templates')
  await build(base().setWorkdir('/first').setEnvs({ LAYER: 'one' }).runCmd('echo 1 > f'), name('below'), { memoryMB: 256 })
  const said = await ask(Template().fromTemplate(name('below')).runCmd('echo $LAYER >> f'), name('above'), 'pwd; cat f')
  assert.equal(said, '/first\n1\none\n')
  await assert.rejects(build(Template().fromTemplate('no-such-thing'), name('nowhere')), e => e instanceof BuildError && /not found/.test(e.message))
})

test('template.fromImage :: an image of this server', async t => {
  needs(t, Template, 'no templates')
  assert.equal(await ask(Template().fromImage('base').runCmd('id -un'), name('image'), 'echo there'), 'there\n')
  await assert.rejects(build(Template().fromImage('127.0.0.1:9/none:1'), name('gone')), BuildError)
  assert.throws(() => Template().fromImage('x', { username: 'a' }), /username and password/i)
})

// The images are here by their names already, as a pull leaves them.
test('template.fromDebianImage … fromBunImage :: each begins from the image of its name', async t => {
  needs(t, Template?.toJSON, 'no toJSON')
  const t0 = Template()
  const wanted = { fromDebianImage: 'debian:', fromUbuntuImage: 'ubuntu:', fromPythonImage: 'python:', fromNodeImage: 'node:',
    fromBunImage: 'oven/bun:', fromFedoraImage: 'fedora:', fromAlpineImage: 'alpine:', fromArchImage: 'archlinux:' }
  for (const [method, image] of Object.entries(wanted)) {
    if (!t0[method]) continue
    const { fromImage } = JSON.parse(await Template.toJSON(Template()[method]()))
    assert.ok(fromImage.startsWith(image), fromImage)
    assert.equal((await native('POST', '/v1/images/base/tag', { name: fromImage })).status, 201)
    const { log } = await build(Template()[method](), name('from'))
    assert.ok(log.some(l => l.endsWith(`[base] FROM ${fromImage}`)), log.join('\n'))
    assert.equal((await native('DELETE', `/v1/images/${encodeURIComponent(fromImage)}`)).status, 204)
  }
})

test('template.fromAWSRegistry, fromGCPRegistry :: what cannot be signed in to is told', async t => {
  needs(t, Template, 'no templates')
  await assert.rejects(build(Template().fromAWSRegistry('127.0.0.1:9/x', { accessKeyId: 'a', secretAccessKey: 'b', region: 'c' }), name('aws')),
    e => e instanceof BuildError && /get-login-password/.test(e.message))
  await assert.rejects(build(Template().fromGCPRegistry('127.0.0.1:9/x', { serviceAccountJSON: { type: 'service_account' } }), name('gcp')), BuildError)
})

test('template.fromDockerfile :: its instructions become steps', async t => {
  needs(t, Template, 'no templates')
  const said = await ask(Template({ fileContextPath: context }).fromDockerfile('FROM e2bdev/base\nENV A=1 B=2\nARG C=3\nWORKDIR /work\n' +
    'COPY --chown=user a.txt ./\nRUN id -un > who && echo $A$B$C >> who\nUSER user\nCMD sleep 1000\n')
    .setReadyCmd('true'), name('docker'), 'pwd; cat a.txt who; id -un; stat -c %U a.txt')
  assert.equal(said, '/work\noneroot\n123\nuser\nuser\n')
  assert.throws(() => Template().fromDockerfile('FROM a\nFROM b\n'), /Multi-stage/)
})

test('template.toJSON, toDockerfile :: say what was put together', async t => {
  needs(t, Template?.toDockerfile, 'no toDockerfile')
  const template = base().copy('a.txt', '/a').setEnvs({ A: 'b' }).setStartCmd('run', 'true')
  const json = JSON.parse(await Template.toJSON(template))
  assert.equal(json.startCmd, 'run')
  assert.match(json.steps[0].filesHash, /^[0-9a-f]{64}$/)
  assert.match(Template.toDockerfile(template), /^FROM e2bdev\/base\nCOPY a.txt \/a\nENV A=b\nENTRYPOINT run\n$/)
  assert.throws(() => Template.toDockerfile(Template().fromTemplate('x')), /Cannot convert/)
})

test('template.npmInstall :: a package that lies in the image', async t => {
  needs(t, Template, 'no templates')
  const said = await ask(base().setEnvs({ npm_config_audit: 'false', npm_config_offline: 'true', npm_config_update_notifier: 'false' })
    .setWorkdir('/app').copy('pkg', '/app/pkg').npmInstall('./pkg', { g: true }), name('npm'), 'left')
  assert.equal(said, 'left\n')
})

// What these run is the image's own: one that writes down how it was called stands in for each, as there is no index to fetch from.
test('template.pipInstall, npmInstall, bunInstall, aptInstall, gitClone :: run what they say, as whom they say', async t => {
  needs(t, Template, 'no templates')
  const fake = 'for p in pip npm bun apt-get git; do printf \'#!/bin/sh\\necho $(id -un): $(basename $0) "$@" >> /calls\\n\' > /usr/local/bin/$p; chmod 755 /usr/local/bin/$p; done; touch /calls; chmod 666 /calls'
  const said = await ask(base().runCmd(fake, { user: 'root' })
    .pipInstall('numpy').pipInstall(['a', 'b'], { g: false }).pipInstall()
    .npmInstall().npmInstall(['x', 'y'], { dev: true })
    .bunInstall('x', { g: true }).bunInstall(['y'], { dev: true })
    .aptInstall(['vim', 'jq'], { noInstallRecommends: true })
    .gitClone('https://example.test/r.git', '/srv/r', { branch: 'main', depth: 1 }), name('fakes'), 'cat /calls')
  assert.deepEqual(said.trim().split('\n').map(l => l.replace(/ +/g, ' ')), [
    'root: pip install numpy', 'user: pip install --user a b', 'root: pip install .',
    'user: npm install', 'user: npm install --save-dev x y',
    'root: bun install -g x', 'user: bun install --dev y',
    'root: apt-get update', 'root: apt-get install -y --no-install-recommends vim jq',
    'user: git clone https://example.test/r.git --branch main --single-branch --depth 1 /srv/r'])
})

test('template.aptInstall :: a package that lies in the image', async t => {
  needs(t, Template, 'no templates')
  const pack = 'mkdir -p /tmp/p/DEBIAN /tmp/p/usr/bin && printf "Package: thing\\nVersion: 1\\nArchitecture: all\\nMaintainer: x\\nDescription: y\\n" > /tmp/p/DEBIAN/control' +
    ' && printf "#!/bin/sh\\necho thing\\n" > /tmp/p/usr/bin/thing && chmod 755 /tmp/p/usr/bin/thing && dpkg-deb -b /tmp/p /tmp/thing.deb && rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*'
  assert.equal(await ask(base().runCmd(pack, { user: 'root' }).aptInstall('/tmp/thing.deb'), name('apt'), 'thing'), 'thing\n')
})

test('template.gitClone :: a repository that lies in the image', async t => {
  needs(t, Template, 'no templates')
  const init = 'git init -q -b main /tmp/r && cd /tmp/r && echo hi > f && git add f && git -c user.name=a -c user.email=b commit -qm c'
  assert.equal(await ask(base().runCmd(init).gitClone('file:///tmp/r', '/home/user/r', { depth: 1 }), name('git'), 'cat r/f'), 'hi\n')
})

test('template.addMcpServer :: is for its own base template', async t => {
  needs(t, Template?.().fromBaseImage().addMcpServer, 'no addMcpServer')
  assert.throws(() => base().addMcpServer('x'), BuildError)
})

test('sandbox.create mcp :: the gateway is the template\'s, and the client starts it', async t => {
  needs(t, e2b.Sandbox.prototype.getMcpUrl && Template, 'no mcp')
  const called = name('mcp')
  await build(base().runCmd('printf \'#!/bin/sh\\nmkdir -p /etc/mcp-gateway && cd /etc/mcp-gateway && printf "%%s" "$GATEWAY_ACCESS_TOKEN" > .token && echo "$2" > asked\\n\'' +
    ' > /usr/bin/mcp-gateway && chmod 755 /usr/bin/mcp-gateway', { user: 'root' }), called)
  const sbx = await create({ mcp: { exa: { apiKey: 'k' } } }, called)
  assert.equal((await sbx.commands.run('cat /etc/mcp-gateway/asked', { user: 'root' })).stdout, '{"exa":{"apiKey":"k"}}\n')
  assert.equal(await sbx.files.read('/etc/mcp-gateway/.token', { user: 'root' }), await sbx.getMcpToken())
  await assert.rejects(create({ mcp: { exa: {} }, metadata: { mark } }), /MCP gateway|exit status 127/)
  for (const left of await e2b.Sandbox.list({ query: { metadata: { mark } } }).nextItems()) await e2b.Sandbox.kill(left.sandboxId)
})

test('template.betaDevContainerPrebuild, betaSetDevContainerStart :: are for their own base template', async t => {
  needs(t, Template?.().fromBaseImage().betaDevContainerPrebuild, 'no devcontainers')
  assert.throws(() => base().betaDevContainerPrebuild('/x'), BuildError)
  assert.throws(() => base().betaSetDevContainerStart('/x'), BuildError)
})

test('template.setStartCmd :: runs when a sandbox is made, and it is ready by then', async t => {
  needs(t, Template && e2b.waitForPort, 'no start command')
  const called = name('server')
  const { log } = await build(base().setWorkdir('/srv').runCmd('echo served > index.html', { user: 'root' })
    .setStartCmd('python3 -m http.server 8000', e2b.waitForPort(8000)), called)
  assert.ok(log.some(l => l.includes('[finalize]')), log.join('\n'))
  const sbx = await create({}, called)
  assert.equal((await sbx.commands.run('curl -s localhost:8000')).stdout, 'served\n')
})

test('waitForURL, waitForProcess, waitForFile, waitForTimeout :: each is waited for', async t => {
  needs(t, Template && e2b.waitForURL, 'no ready commands')
  const { waitForURL, waitForProcess, waitForFile, waitForTimeout } = e2b
  const web = 'cd /tmp && sleep 0.3 && exec python3 -m http.server 8001'
  const cases = { url: [web, waitForURL('http://localhost:8001/', 200)], process: ['sleep 0.3; exec sleep 1000', waitForProcess('sleep')],
    file: ['sleep 0.3; touch /tmp/up; sleep 1000', waitForFile('/tmp/up')], time: ['sleep 0.5; touch /tmp/up; sleep 1000', waitForTimeout(3000)] }
  await Promise.all(Object.entries(cases).map(([kind, [start, ready]]) => build(base().setStartCmd(start, ready), name(`ready-${kind}`))))
  const check = { url: 'curl -sf localhost:8001 >/dev/null && echo up', process: 'pgrep -x sleep >/dev/null && echo up', file: 'test -f /tmp/up && echo up', time: 'test -f /tmp/up && echo up' }
  for (const kind of Object.keys(cases)) {
    const sbx = await create({}, name(`ready-${kind}`))
    assert.equal((await sbx.commands.run(check[kind])).stdout, 'up\n', kind)
    await sbx.kill()
  }
})

test('template.setReadyCmd :: without a start command', async t => {
  needs(t, Template, 'no templates')
  assert.equal(await ask(base().runCmd('touch /tmp/there').setReadyCmd('test -e /tmp/there'), name('ready'), 'echo ok'), 'ok\n')
})

test('BuildError :: a start command that fails, with its output', async t => {
  needs(t, Template, 'no templates')
  await assert.rejects(build(base().setStartCmd('echo no way >&2; exit 3', 'false'), name('nostart')),
    e => e instanceof BuildError && /start command failed: .*ended with 3/.test(e.message) && /no way/.test(e.message))
  await assert.rejects(create({}, name('nostart')), /not found/)
})

test('BuildError :: a step that fails tells which, why, and where in the program', async t => {
  needs(t, Template, 'no templates')
  const template = base().runCmd('true')
  template.runCmd('echo because >&2; exit 7')
  const failure = await build(template, name('fails')).then(() => assert.fail('it was built'), e => e)
  assert.ok(failure instanceof BuildError, String(failure))
  assert.match(failure.message, /failed to run command 'echo because >&2; exit 7': exit status 7: because/)
  assert.match(failure.stack, /template\.test\.mjs/)
  const kept = await create({}, 'base') // the failure hurts nothing else
  assert.equal((await kept.commands.run('echo fine')).stdout, 'fine\n')
})

test('BuildError :: names, users and modes that are wrong', async t => {
  needs(t, Template, 'no templates')
  for (const wrong of ['Upper', 'a b', '-x', 'x:', 'x'.repeat(80), 'other/x']) {
    await assert.rejects(build(base(), wrong), e => e instanceof BuildError && /name/.test(e.message), wrong)
  }
  await assert.rejects(build(base().runCmd('whoami', { user: 'root123' }), name('nouser')), e => e instanceof BuildError &&
    e.message.includes("failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'"))
  await assert.rejects(build(base().runCmd('kill -9 $$'), name('killed')), e => e instanceof BuildError &&
    e.message.includes("failed to run command 'kill -9 $$': signal: killed"))
  await assert.rejects(build(base().setWorkdir('/etc/passwd/x'), name('nodir')), e => e instanceof BuildError &&
    e.message.includes('failed to create workdir: '))
  await assert.rejects(build(base(), 'x', { apiKey: 'e2b_' + '0'.repeat(40) }), e2b.AuthenticationError)
})

test('FileUploadError :: an upload that fails is told as such', async t => {
  needs(t, FileUploadError, 'no FileUploadError')
  put('odd.txt', mark)
  // Between the client and the server stands one that spoils the link for uploads.
  const server = http.createServer(async (req, res) => {
    const body = []
    for await (const part of req) body.push(part)
    const answer = await fetch(process.env.WARREN_URL + req.url, { method: req.method, body: body.length ? Buffer.concat(body) : undefined,
      headers: { 'x-api-key': process.env.E2B_API_KEY, 'content-type': 'application/json' } })
    res.writeHead(answer.status, { 'content-type': 'application/json' })
    res.end((await answer.text()).replace(/token=../, 'token=zz'))
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  try {
    await assert.rejects(build(base().copy('odd.txt', '/odd'), name('odd'), { apiUrl: `http://127.0.0.1:${server.address().port}/e2b` }), FileUploadError)
  } finally {
    server.close()
    server.closeAllConnections()
  }
})

test('template.buildInBackground, getBuildStatus :: followed from outside', async t => {
  needs(t, Template?.buildInBackground, 'no background builds')
  const called = name('background')
  const data = await Template.buildInBackground(base().runCmd(`sleep 0.5; echo bottom # ${mark}`), called)
  assert.equal(data.templateId, called)
  assert.notEqual((await Template.getBuildStatus(data)).status, 'waiting')
  const entries = []
  const last = await until(async () => {
    const s = await Template.getBuildStatus(data, { logsOffset: entries.length })
    entries.push(...s.logEntries)
    return ['ready', 'error'].includes(s.status) && s.logEntries.length === 0 && s
  }, 'the build')
  assert.equal(last.status, 'ready')
  assert.ok(entries.some(e => e.message === 'bottom' && e.level === 'info' && e.timestamp instanceof Date))
  assert.equal(new Set(entries.map(e => `${+e.timestamp}${e.message}`)).size, entries.length)
  await assert.rejects(Template.getBuildStatus({ templateId: called, buildId: '00000000-0000-4000-8000-000000000000' }), BuildError)
})

test('template.exists, aliasExists :: what was built, and what comes with the server', async t => {
  needs(t, Template?.aliasExists || Template?.exists, 'no exists')
  const exists = n => Template.exists ? Template.exists(n) : Template.aliasExists(n)
  await build(base(), name('here'))
  assert.equal(await exists(name('here')), true)
  assert.equal(await exists('not-here'), false)
  assert.equal(await exists('base'), true)
  if (Template.aliasExists) assert.equal(await Template.aliasExists(name('here')), true)
})

test('template.assignTags, getTags, removeTags :: tags name builds, and can be made into sandboxes', async t => {
  needs(t, Template?.assignTags, 'no tags')
  const called = name('tagged')
  const first = await build(base().runCmd('echo 1 > v'), `${called}:v1`, { tags: ['stable'] })
  assert.deepEqual([...first.data.tags].sort(), ['stable', 'v1'])
  await assert.rejects(create({}, called), /not found/) // no default tag yet
  const second = await build(base().runCmd('echo 2 > v'), called)
  const of = async n => (await (await create({}, n)).commands.run('cat v')).stdout.trim()
  assert.equal(await of(`${called}:stable`), '1')
  assert.equal(await of(called), '2')
  assert.equal(await of(`${called}:default`), '2')
  assert.deepEqual(await Template.assignTags(`${called}:v1`, 'prod'), { buildId: first.data.buildId, tags: ['prod'] })
  await Template.assignTags(called, ['stable', 'v2'])
  assert.equal(await of(`${called}:stable`), '2')
  const tags = Object.fromEntries((await Template.getTags(called)).map(x => [x.tag, x.buildId]))
  assert.deepEqual(tags, { default: second.data.buildId, prod: first.data.buildId, stable: second.data.buildId, v1: first.data.buildId, v2: second.data.buildId })
  await Template.removeTags(called, ['v1', 'prod'])
  await assert.rejects(create({}, `${called}:v1`), /not found/)
  await assert.rejects(Template.removeTags(called, 'default'), TemplateError)
  await assert.rejects(Template.removeTags(called, 'v1'), e => e instanceof TemplateError && /not found/.test(e.message))
  await assert.rejects(Template.assignTags('no-such-thing:x', 'y'), TemplateError)
  await assert.rejects(Template.getTags('no-such-thing'), TemplateError)
})

test('templates :: lists, lookups, publishing and removal for other clients', async t => {
  needs(t, Template, 'no templates')
  const called = name('listed')
  await build(base(), called, { memoryMB: 256 })
  const call = (method, at, body) => fetch(process.env.E2B_API_URL + at, { method, body: body && JSON.stringify(body),
    headers: { 'x-api-key': process.env.E2B_API_KEY, 'content-type': 'application/json' } })
  for (const at of ['/templates', '/v2/templates']) {
    const found = (await (await call('GET', at)).json()).find(x => x.templateID === called)
    assert.equal(found.buildStatus, 'ready')
    assert.equal(found.memoryMB, 256)
    assert.deepEqual(found.names, [called])
  }
  const page = await call('GET', '/v2/templates?limit=1')
  assert.equal((await page.json()).length, 1)
  assert.ok(page.headers.get('x-next-token'))
  const one = await (await call('GET', `/templates/${called}`)).json()
  assert.equal(one.builds.length, 1)
  assert.equal(one.builds[0].status, 'ready')
  const logs = await (await call('GET', `/templates/${called}/builds/${one.builds[0].buildID}/logs?limit=1&direction=backward`)).json()
  assert.deepEqual(logs.logs.map(l => l.message), ['Build finished'])
  assert.equal((await call('PATCH', `/v2/templates/${called}`, { public: true })).status, 200)
  assert.equal((await (await call('GET', `/templates/${called}`)).json()).public, true)
  assert.equal((await call('POST', '/templates', { dockerfile: 'FROM x' })).status, 400)
  assert.equal((await call('DELETE', `/templates/${called}`)).status, 204)
  assert.equal((await call('DELETE', `/templates/${called}`)).status, 404)
  assert.equal((await call('GET', `/templates/${called}`)).status, 404)
})

test('defaultBuildLogger, LogEntry :: print what the build says', async t => {
  needs(t, e2b.defaultBuildLogger, 'no logger')
  const seen = []
  await Template.build(base().runCmd(`echo seen # ${mark}`), name('logger'), { onBuildLogs: e => { seen.push(e); e2b.defaultBuildLogger({ minLevel: 'error' })(e) } })
  assert.ok(seen.every(e => e instanceof e2b.LogEntry))
  assert.ok(seen[0] instanceof e2b.LogEntryStart && seen.at(-1) instanceof e2b.LogEntryEnd)
  assert.ok(seen.some(e => /seen/.test(e.toString())))
})

test('E2B client :: builds with its own key and address', async t => {
  needs(t, e2b.E2B, 'no E2B class')
  const client = new e2b.E2B({ apiKey: process.env.E2B_API_KEY, apiUrl: process.env.E2B_API_URL })
  const data = await client.Template.build(client.Template().fromBaseImage(), name('client'))
  assert.equal(data.templateId, name('client'))
})
