// The TLS proxy that an operator puts before the daemon for clients that call names under a domain:
// `api.<domain>` is the API, `<port>-<sandbox>.<domain>` a port of a sandbox. usage: front.mjs URL KEY CERT; prints its port.
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'

const [upstream, key, cert] = process.argv.slice(2)
const { hostname, port } = new URL(upstream)

https.createServer({ key: fs.readFileSync(key), cert: fs.readFileSync(cert) }, (request, answer) => {
  const headers = { ...request.headers }
  const [, at, id] = /^(\d+)-([a-z0-9]+)\./.exec(headers.host) ?? []
  if (id) Object.assign(headers, { 'e2b-sandbox-port': at, 'e2b-sandbox-id': id })
  const on = http.request({ hostname, port, method: request.method, path: '/e2b' + request.url, headers }, from => {
    answer.writeHead(from.statusCode, from.headers)
    from.on('error', () => answer.destroy()) // cut short there, cut short here
    from.pipe(answer)
  })
  on.on('error', () => answer.destroy())
  answer.on('close', () => on.destroy())
  request.pipe(on)
}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })
