// A web server in a sandbox, and its address for a browser out here.
//
//   node server.mjs          shows that it answers, and ends
//   node server.mjs --stay   serves until Ctrl-C
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Sandbox } from 'e2b'

const PORT = 8000
const PAGE = `<!doctype html><title>From a sandbox</title><h1>Hello from a sandbox</h1>\n`

const sandbox = await Sandbox.create({ timeoutMs: 600_000 })
try {
  await sandbox.files.write('/home/user/site/index.html', PAGE)
  await sandbox.commands.run(`python3 -m http.server --directory site ${PORT}`, { background: true, timeoutMs: 0 })
  await sandbox.commands.run(`until curl -so /dev/null http://127.0.0.1:${PORT}/; do sleep 0.05; done`)

  const host = sandbox.getHost(PORT)
  const url = `${/\.localhost(:|$)/.test(host) ? 'http' : 'https'}://${host}/` // no certificate is for "localhost"
  console.log(url)

  // curl rather than fetch: it knows that all names under "localhost" are this machine, as browsers do.
  const { stdout } = await promisify(execFile)('curl', ['--silent', '--show-error', '--fail', url])
  console.log(stdout.trim())
  if (process.argv[2] === '--stay') await new Promise(resolve => process.once('SIGINT', resolve))
} finally {
  await sandbox.kill()
}
