// What the tests of E2B's clients share. A test is named `<feature> :: <what it shows>`; its outcome goes to
// the file E2B_RESULTS, from which docs/compatibility.md is made.
//
// The same tests run with old and new releases, so packages are taken as a whole (`import * as e2b`): a name
// that a release has not got is then undefined, where `import { name }` would be a syntax error.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { after, test as nodeTest } from 'node:test'
import * as e2b from 'e2b'

const NAME = path.basename(process.argv[1] ?? '')
const PACKAGES = { interpreter: '@e2b/code-interpreter', desktop: '@e2b/desktop' }

// The package that a file tests: the first word of its name says so.
export const packageName = PACKAGES[/^[a-z]+/.exec(NAME)?.[0]] ?? 'e2b'

class Missing extends Error {}

function record (name, outcome, reason) {
  if (!process.env.E2B_RESULTS) return
  const [feature, shows] = name.split(' :: ')
  fs.appendFileSync(process.env.E2B_RESULTS, JSON.stringify({ package: packageName, feature, shows, outcome, reason }) + '\n')
}

// node's test(name, [options], fn), with a limit of time and with the outcome recorded.
export function test (name, ...rest) {
  assert.match(name, /^\S.* :: \S/, 'a test is named "<feature> :: <what it shows>"')
  const fn = rest.pop()
  return nodeTest(name, { timeout: 90_000, ...rest[0] }, async t => {
    let outcome = 'fail'
    let reason
    t.lacks = why => { reason = why }
    try {
      await fn(t)
      outcome = reason ? 'lacks' : 'pass'
    } catch (e) {
      if (!(e instanceof Missing)) throw e
      outcome = 'absent'
      reason = e.message
      t.skip(reason)
    } finally {
      record(name, outcome, reason)
    }
  })
}

// Goes on only where this release of the package can do it: needs(t, e2b.Volume, 'no volumes').
export function needs (t, condition, reason) {
  if (!condition) throw new Missing(reason)
}

// The test shows that Warren refuses this in words: the table then says what is missing, not that it works.
export function lacks (t, reason) { t.lacks(reason) }

// The version of an installed package, and whether it is at least this one.
export function version (name = packageName) {
  const file = createRequire(import.meta.url).resolve(name) // its exports do not name package.json
  const top = file.slice(0, file.lastIndexOf(path.join('node_modules', name)) + path.join('node_modules', name).length)
  return JSON.parse(fs.readFileSync(path.join(top, 'package.json'))).version
}
export function since (wanted, name = packageName) {
  const [a, b] = [version(name), wanted].map(v => v.split('.').map(Number))
  const i = a.findIndex((n, at) => n !== b[at])
  return i < 0 || a[i] > b[i]
}

// The condition's value as soon as it is true.
export async function until (condition, what = 'condition', ms = 30_000) {
  const end = Date.now() + ms
  for (;;) {
    const value = await condition()
    if (value) return value
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`)
    await new Promise(r => setTimeout(r, 20))
  }
}

// Sandboxes that are gone after the file: create(options), create(options, 'template'), create(options, 'template', Class).
const made = []
export async function create (options = {}, template = 'base', Class = e2b.Sandbox) {
  const sandbox = await Class.create(template, options)
  made.push(sandbox)
  return sandbox
}
after(async () => { await Promise.all(made.map(s => s.kill().catch(() => {}))) })

// The daemon's own API: native('POST', '/v1/templates', {...}) answers a Response.
export function native (method, at, body) {
  return fetch(process.env.WARREN_URL + at, { method, body: body && JSON.stringify(body),
    headers: { authorization: `Bearer ${process.env.E2B_API_KEY}`, 'content-type': 'application/json' } })
}
