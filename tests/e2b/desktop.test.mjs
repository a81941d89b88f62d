// A screen, a mouse and a keyboard, through E2B's own desktop client. One sandbox serves all: what comes later
// stands on what came before.
import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import * as desktop from '@e2b/desktop'
import * as e2b from 'e2b'
import { create, needs, since, test, until } from './lib.mjs'

const { Sandbox } = desktop
let box

const out = async (command, opts) => (await box.commands.run(command, opts)).stdout
const windows = async name => {
  try {
    return (await box.getApplicationWindows(name)).filter(Boolean)
  } catch (e) {
    return [] // xdotool fails where there are none
  }
}
const size = png => [png.readUInt32BE(16), png.readUInt32BE(20)]
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

// What the window under test was told, in the words of xev.
const LOG = '/tmp/events'
async function events () { return (await out(`cat ${LOG}`)).split('\n\n').map(e => e.replace(/\s+/g, ' ')) }
const buttons = (list, n) => list.filter(e => new RegExp(`^ ?ButtonPress .* button ${n},`).test(e)).length
async function clicked (n, count, act) {
  const before = buttons(await events(), n)
  await act()
  await until(async () => buttons(await events(), n) === before + count, `${count} of button ${n}`)
}

// Ten seconds of the client's own waiting, beside all others.
const givesUp = since('2.4.0')
const noScreen = givesUp && Sandbox.create('base', { timeoutMs: 120_000, metadata: { screen: 'none' } }).then(s => s, e => e)

test('desktop create :: brings the screen and its session up', async () => {
  box = await create({ timeoutMs: 600_000, envs: { MINE: 'yes' } }, 'desktop', Sandbox)
  assert.equal(box.display, ':0')
  assert.equal(await out('echo $DISPLAY $MINE $(id -un)'), ':0 yes user\n')
  // Older releases do not wait for the whole session.
  await until(async () => (await out('pgrep -x "xfce4-session|xfwm4|xfdesktop" | wc -l')).trim() === '3', 'the session')
})

test('desktop create :: resolution, dpi and display', async () => {
  const other = await create({ resolution: [800, 600], dpi: 120, display: ':1' }, 'desktop', Sandbox)
  assert.deepEqual(await other.getScreenSize(), { width: 800, height: 600 })
  assert.equal((await other.commands.run('echo $DISPLAY')).stdout, ':1\n')
  // A server without clients starts anew, and takes none for that moment.
  const about = await until(() => other.commands.run('xdpyinfo').catch(() => null), 'the screen')
  assert.match(about.stdout, /resolution: +120x120 dots per inch/)
  await other.kill()
})

test('desktop betaCreate :: as create', async t => {
  needs(t, Sandbox.betaCreate && e2b.Sandbox.betaCreate, 'create does it all')
  const other = await Sandbox.betaCreate({ resolution: [640, 480] })
  assert.deepEqual(await other.getScreenSize(), { width: 640, height: 480 })
  await other.kill()
})

test('desktop.E2B :: a client with options of its own', async t => {
  needs(t, desktop.E2B, 'no client class')
  const client = new desktop.E2B({ apiKey: process.env.E2B_API_KEY })
  const same = await client.Sandbox.connect(box.sandboxId)
  assert.deepEqual(await same.getScreenSize(), { width: 1024, height: 768 })
  assert.equal(typeof client.Template.build, 'function')
})

test('desktop.getScreenSize :: the size that was asked for', async () => {
  assert.deepEqual(await box.getScreenSize(), { width: 1024, height: 768 })
})

test('desktop.screenshot :: bytes, blob and stream', async () => {
  const bytes = Buffer.from(await box.screenshot())
  assert.deepEqual(bytes.subarray(0, 8), PNG)
  assert.deepEqual(size(bytes), [1024, 768])
  assert.deepEqual(size(Buffer.from(await box.screenshot('bytes'))), [1024, 768])
  const blob = await box.screenshot('blob')
  assert.deepEqual(size(Buffer.from(await blob.arrayBuffer())), [1024, 768])
  const parts = []
  for await (const part of await box.screenshot('stream')) parts.push(part)
  assert.deepEqual(size(Buffer.concat(parts)), [1024, 768])
})

test('desktop.moveMouse :: and getCursorPosition', async () => {
  await box.moveMouse(321, 123)
  assert.deepEqual(await box.getCursorPosition(), { x: 321, y: 123 })
})

test('desktop mouse :: clicks, double clicks, the wheel, press and release', async () => {
  const watching = await box.commands.run(`stdbuf -oL xev -name target -geometry 400x300+200+200 -event mouse -event keyboard > ${LOG}`,
    { background: true, timeoutMs: 0 })
  await until(async () => (await out('xdotool search --onlyvisible --name "^target$" || true')).trim(), 'the window')
  const [x, y] = [420, 380]
  await clicked(1, 1, () => box.leftClick(x, y))
  await clicked(1, 1, () => box.leftClick())
  await clicked(3, 1, () => box.rightClick(x + 1, y))
  await clicked(2, 1, () => box.middleClick(x + 2, y))
  await clicked(1, 2, () => box.doubleClick(x + 3, y))
  assert.deepEqual(await box.getCursorPosition(), { x: x + 3, y })
  await clicked(5, 1, () => box.scroll())
  await clicked(4, 3, () => box.scroll('up', 3))
  await clicked(5, 2, () => box.scroll('down', 2))
  for (const [name, n] of [['left', 1], ['middle', 2], ['right', 3]]) {
    await clicked(n, 1, () => box.mousePress(name))
    assert.equal((await events()).filter(e => new RegExp(`ButtonRelease .* button ${n},`).test(e)).length, buttons(await events(), n) - 1)
    await box.mouseRelease(name)
  }
  await clicked(1, 1, () => box.mousePress())
  await box.mouseRelease()
  await box.drag([x, y + 1], [x + 60, y + 40])
  assert.deepEqual(await box.getCursorPosition(), { x: x + 60, y: y + 40 })
  // Moved while the button was down (0x100), let go at the end of the way.
  const last = (await until(async () => (await events()).filter(e => /(MotionNotify|ButtonRelease) .*state 0x100,/.test(e)), 'the drag')).at(-1)
  assert.match(last, new RegExp(`ButtonRelease .*root:\\(${x + 60},${y + 40}\\)`))
  await watching.kill()
})

test('desktop.write :: text of any kind, in pieces', async () => {
  const text = 'plain \'quoted\' "and" $HOME `x` \\ -- é ß 語 100% & more than twenty-five characters'
  const type = async () => {
    const terminal = await box.commands.run('xterm -u8 -geometry 80x20+100+100 -e "cat > /tmp/typed"', { background: true, timeoutMs: 0 })
    const [id] = await until(async () => { const ids = await windows('xterm'); return ids.length && ids }, 'the terminal')
    await box.commands.run(`xdotool windowactivate --sync ${id}`)
    assert.equal(await box.getCurrentWindowId(), id)
    await box.write(text)
    await box.press('enter')
    await box.write('--slowly', { chunkSize: 3, delayInMs: 5 })
    await box.press('Enter')
    await box.press(['ctrl', 'd'])
    await terminal.wait()
    return await box.files.read('/tmp/typed')
  }
  // xdotool gives a letter that no key has to a key for a moment; a terminal that is busy then misses it.
  let typed
  for (let i = 0; i < 5 && typed !== `${text}\n--slowly\n`; i++) typed = await type()
  assert.equal(typed, `${text}\n--slowly\n`)
})

test('desktop.press :: names of keys and combinations', async () => {
  const watching = await box.commands.run(`stdbuf -oL xev -name keys -event keyboard > ${LOG}`, { background: true, timeoutMs: 0 })
  const id = await until(async () => (await out('xdotool search --onlyvisible --name "^keys$" || true')).trim(), 'the window')
  await box.commands.run(`xdotool windowactivate --sync ${id}`)
  for (const key of ['esc', 'page_down', 'F5', 'a', 'del', ['ctrl', 'shift', 'left']]) await box.press(key)
  const wanted = ['Escape', 'Next', 'F5', 'a', 'Delete', 'Control_L', 'Shift_L', 'Left']
  const pressed = async () => (await events()).filter(e => /^ ?KeyPress /.test(e)).map(e => /keysym \w+, (\w+)\)/.exec(e)[1])
  await until(async () => (await pressed()).length >= wanted.length, 'the keys')
  assert.deepEqual(await pressed(), wanted)
  await watching.kill()
})

test('desktop.open :: a file, in the program for it', async () => {
  await box.files.write('/home/user/note.txt', 'a note\n')
  await box.open('/home/user/note.txt')
  const [id] = await until(async () => { const ids = await windows('mousepad'); return ids.length && ids }, 'the editor', 60_000)
  await until(async () => /note\.txt/.test(await box.getWindowTitle(id)), 'the file in it')
})

async function browsed (title) {
  const titles = async () => Promise.all((await windows('chromium')).map(id => box.getWindowTitle(id).catch(() => '')))
  await until(async () => (await titles()).some(t => t.startsWith(title)), `a page called ${title}`, 60_000)
}

test('desktop.launch :: the browser, with a page', async () => {
  await box.files.write('/home/user/site/launched.html', '<title>Launched</title>')
  await box.launch('google-chrome', '/home/user/site/launched.html')
  await browsed('Launched')
})

test('desktop.open :: an address, in the browser', async () => {
  await box.files.write('/home/user/site/opened.html', '<title>Opened</title>')
  await box.commands.run('python3 -m http.server -d site 8000', { background: true, timeoutMs: 0 })
  await until(async () => (await out('netstat -tln')).includes(':8000 '), 'the server')
  await box.open('http://127.0.0.1:8000/opened.html')
  await browsed('Opened')
})

test('desktop.getApplicationWindows :: none of a program that does not run', async () => {
  await assert.rejects(box.getApplicationWindows('no-such-program'), desktop.CommandExitError)
})

test('desktop.wait :: waits in the sandbox', async () => { await box.wait(50) })

test('desktop.waitAndVerify :: until the outcome is right, or not', async () => {
  await box.commands.run('(sleep 0.3; touch /tmp/there) >/dev/null 2>&1 &')
  assert.equal(await box.waitAndVerify('ls /tmp', r => r.stdout.includes('there'), 30, 0.1), true)
  assert.equal(await box.waitAndVerify('echo no', r => r.stdout === 'yes\n', 0.2, 0.1), false)
})

// The first words of whoever listens there.
const banner = port => out(`python3 -c "import socket; print(socket.create_connection(('127.0.0.1', ${port})).recv(12).decode().strip())"`)
const page = () => out('curl -s http://127.0.0.1:6080/vnc.html')

test('desktop.stream :: start, the address, and stop', async () => {
  assert.throws(() => box.stream.getUrl(), /not running/)
  assert.throws(() => box.stream.getAuthKey(), /auth key/)
  await box.stream.start()
  await assert.rejects(box.stream.start(), /already running/)
  assert.match(await banner(5900), /^RFB 003\./)
  assert.match(await page(), /noVNC/)
  const url = new URL(box.stream.getUrl())
  assert.equal(url.host, box.getHost(6080))
  assert.equal(url.pathname, '/vnc.html')
  assert.deepEqual(Object.fromEntries(url.searchParams), { autoconnect: 'true', resize: 'scale' })
  await box.stream.stop()
  await until(async () => !(await out('pgrep -x x11vnc || true')).trim(), 'the end of it')
})

// What a browser does with the address: the page, then a WebSocket beside it. Where its name leads is DNS's matter; here
// it is the daemon's own address.
function ask (path, headers = {}) {
  const { hostname, port } = new URL(process.env.WARREN_URL)
  return new Promise((resolve, reject) => {
    const request = http.get({ hostname, port, path, headers: { ...headers, host: box.getHost(6080) } }, async answer => {
      let text = ''
      for await (const part of answer.setEncoding('utf8')) text += part
      resolve({ status: answer.statusCode, text })
    })
    request.on('upgrade', (answer, socket, head) => resolve({ status: answer.statusCode, socket, head }))
    request.on('error', reject)
  })
}

test('desktop.stream :: the screen through the preview proxy', async t => {
  await box.stream.start()
  t.after(() => box.stream.stop())
  const page = await ask(new URL(box.stream.getUrl()).pathname)
  assert.equal(page.status, 200)
  assert.match(page.text, /noVNC/)
  const { status, socket, head } = await ask('/websockify', { connection: 'Upgrade', upgrade: 'websocket',
    'sec-websocket-version': '13', 'sec-websocket-key': crypto.randomBytes(16).toString('base64'), 'sec-websocket-protocol': 'binary' })
  assert.equal(status, 101)
  let got = head
  while (got.length < 14) got = Buffer.concat([got, (await once(socket, 'data'))[0]])
  assert.deepEqual([...got.subarray(0, 2)], [0x82, 12]) // a binary frame of 12 bytes, the banner
  assert.match(got.subarray(2, 14).toString(), /^RFB 003\./)
  socket.destroy()
})

test('desktop.stream :: a key, view only and size in the address', async () => {
  await box.stream.start({ requireAuth: true })
  const authKey = box.stream.getAuthKey()
  const url = new URL(box.stream.getUrl({ autoConnect: false, viewOnly: true, resize: 'remote', authKey }))
  assert.deepEqual(Object.fromEntries(url.searchParams), { view_only: 'true', resize: 'remote', password: authKey })
  // After the banners a server says how many kinds of entry it offers, and which: 2 wants the key.
  const kinds = await out(`python3 -c "
import socket
s = socket.create_connection(('127.0.0.1', 5900))
s.recv(12)
s.send(b'RFB 003.008\\n')
n = s.recv(1)[0]
print(sorted(s.recv(n)))"`)
  assert.match(kinds, /\b2\b/)
  assert.doesNotMatch(kinds, /\b1\b/)
  await box.stream.stop()
})

test('desktop.stream :: one window, on another port', async () => {
  const [windowId] = await windows('mousepad')
  await box.stream.start({ vncPort: 5901, windowId })
  assert.match(await banner(5901), /^RFB 003\./)
  await box.stream.stop()
})

test('desktop create :: a template without a screen is an error, and is not left behind', async t => {
  needs(t, givesUp, 'it tries for ever')
  const error = await noScreen
  assert.ok(error instanceof desktop.TimeoutError, String(error))
  assert.match(error.message, /Xvfb/)
  assert.deepEqual(await Sandbox.list({ query: { metadata: { screen: 'none' } } }).nextItems(), [])
})
