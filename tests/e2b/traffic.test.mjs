// Ports of a sandbox from outside: the address that the client computes leads to what listens there.
import assert from 'node:assert/strict'
import { create, needs, since, test, until } from './lib.mjs'

async function serve (sbx) {
  await sbx.files.write('/tmp/server.py', `
import http.server, json
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"path": self.path, "host": self.headers["Host"], "all": dict(self.headers)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", 3000), H).serve_forever()
`)
  await sbx.commands.run('python3 /tmp/server.py', { background: true, timeoutMs: 0 })
  await until(async () => {
    const tried = await sbx.commands.run('curl -s http://127.0.0.1:3000/ || true')
    return tried.stdout
  }, 'the server inside')
}

test('sandbox.getHost :: the address leads to a server on 127.0.0.1 inside', async () => {
  const sbx = await create()
  await serve(sbx)
  const answer = await fetch(`https://${sbx.getHost(3000)}/a?b=c`)
  assert.equal(answer.status, 200)
  assert.equal((await answer.json()).path, '/a?b=c')
  const closed = await fetch(`https://${sbx.getHost(3001)}/`)
  assert.equal(closed.status, 502)
  const said = await closed.json()
  assert.equal(said.sandboxId, sbx.sandboxId)
  assert.equal(said.port, 3001)
  assert.match(said.message, /port is not open/)
  const gone = `https://${sbx.getHost(3000)}/`
  await sbx.kill()
  await until(async () => /not found/.test((await (await fetch(gone)).json()).message), 'the answer for one that ended')
})

test('sandbox.create network.allowPublicTraffic :: a private sandbox wants its token', async t => {
  needs(t, since('2.8.4'), 'no network option')
  const sbx = await create({ network: { allowPublicTraffic: false } })
  await serve(sbx)
  const url = `https://${sbx.getHost(3000)}/`
  assert.equal((await fetch(url)).status, 403)
  assert.ok(sbx.trafficAccessToken)
  const answer = await fetch(url, { headers: { 'e2b-traffic-access-token': sbx.trafficAccessToken } })
  assert.equal(answer.status, 200)
  assert.ok(!('e2b-traffic-access-token' in (await answer.json()).all))
})

test('sandbox.create network.maskRequestHost :: servers inside are told the host that was asked for', async t => {
  needs(t, since('2.8.4'), 'no network option')
  const sbx = await create({ network: { maskRequestHost: 'localhost:${PORT}' } })
  await serve(sbx)
  const answer = await fetch(`https://${sbx.getHost(3000)}/`)
  assert.equal((await answer.json()).host, 'localhost:3000')
})
