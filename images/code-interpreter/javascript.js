// javascript - node that stays: takes code from descriptor 3, tells on descriptor 4 what came of it.
//
// A cell is rewritten before it runs: it becomes the body of an async function, so that await works
// anywhere; what it declares at its top becomes global, so that later cells see it and may declare it
// again; its imports become import(); its last expression is its result.
'use strict'
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const { createRequire } = require('node:module')
const net = require('node:net')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const util = require('node:util')
const vm = require('node:vm')
const acorn = require('/usr/local/lib/node_modules/acorn')

const top = path.join(process.cwd(), 'cell.js') // where modules are looked for from
const requireHere = createRequire(top)
const tell = event => fs.writeSync(4, JSON.stringify(event) + '\n')

// ---- the rewriting ----

function parse(code) {
  const options = { ecmaVersion: 'latest', allowAwaitOutsideFunction: true, allowHashBang: true }
  try {
    return acorn.parse(code, { ...options, sourceType: 'module' })
  } catch (error) {
    try {
      return acorn.parse(code, { ...options, sourceType: 'script' }) // sloppy code is code, too
    } catch {
      throw Object.assign(new SyntaxError(error.message), { stack: `SyntaxError: ${error.message}` })
    }
  }
}

function namesIn(pattern, out) {
  switch (pattern?.type) {
    case 'Identifier': out.push(pattern.name); break
    case 'ObjectPattern': pattern.properties.forEach(p => namesIn(p.value ?? p.argument, out)); break
    case 'ArrayPattern': pattern.elements.forEach(p => namesIn(p, out)); break
    case 'AssignmentPattern': namesIn(pattern.left, out); break
    case 'RestElement': namesIn(pattern.argument, out); break
  }
  return out
}

function imported(node) {
  const from = JSON.stringify(node.source.value)
  if (node.specifiers.length === 0) return { names: [], text: `await __import(${from});` }
  const names = node.specifiers.map(s => s.local.name)
  const sets = node.specifiers.map(s => {
    if (s.type === 'ImportNamespaceSpecifier') return `${s.local.name} = __module;`
    const key = s.type === 'ImportDefaultSpecifier' ? 'default' : s.imported.name ?? s.imported.value
    return `${s.local.name} = __module[${JSON.stringify(key)}];`
  })
  return { names, text: `{ const __module = await __import(${from}); ${sets.join(' ')} }` }
}

// A declaration at the top as assignments to globals: the text, and the names.
function declared(node, code) {
  const text = code.slice(node.start, node.end)
  switch (node.type) {
    case 'VariableDeclaration': {
      const names = node.declarations.flatMap(d => namesIn(d.id, []))
      const sets = node.declarations.map(d => `(${code.slice(d.id.start, d.id.end)} = ` +
        `${d.init ? code.slice(d.init.start, d.init.end) : 'undefined'})`)
      return { names, text: `void (${sets.join(', ')});` }
    }
    case 'FunctionDeclaration': return { names: [], text, first: `globalThis.${node.id.name} = ${node.id.name};` }
    case 'ClassDeclaration': return { names: [node.id.name], text: `${node.id.name} = ${text};` }
    case 'ImportDeclaration': return imported(node)
    case 'ExportNamedDeclaration': return node.declaration ? declared(node.declaration, code) : { names: [], text: '' }
    case 'ExportDefaultDeclaration': return { names: [], text: `(${code.slice(node.declaration.start, node.declaration.end)});` }
  }
  return null
}

// Only what stands at the top is shared. Lines stay where they are, so that a trace tells the right ones.
function rewrite(source) {
  const code = source.replace(/^#!.*/, '')
  const body = parse(code).body
  const names = [], first = []
  let text = '', at = 0
  body.forEach((node, i) => {
    const made = declared(node, code)
    text += code.slice(at, node.start)
    at = node.end
    if (made) {
      names.push(...made.names)
      if (made.first) first.push(made.first)
      text += `;${made.text}`
    } else if (i === body.length - 1 && node.type === 'ExpressionStatement') {
      const { start, end } = node.expression
      text += `return { value: (${code.slice(start, end)}\n) };`
    } else {
      text += code.slice(node.start, node.end)
    }
  })
  const head = `(async () => {${first.join(' ')}`
  return { names, text: `${head}${text}${code.slice(at)}\n})()`, columnOffset: -head.length }
}

function fromTypescript(code) {
  try {
    return execFileSync('esbuild', ['--loader=ts', '--log-level=error', '--color=false', '--target=es2022',
      '--tsconfig-raw={"compilerOptions":{"preserveValueImports":true,"importsNotUsedAsValues":"preserve"}}'],
      { input: code, encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (error) {
    if (error.code === 'ENOENT') throw new Error('esbuild is missing in this image: TypeScript cannot be read')
    const text = String(error.stderr || error.message).trim()
    throw Object.assign(new SyntaxError(text.split('\n')[0].replace(/^.*?\[ERROR\] /, '')), { stack: text })
  }
}

// ---- what is shown ----

const asBase64 = v => Buffer.isBuffer(v) || v instanceof Uint8Array ? Buffer.from(v).toString('base64') : String(v)
const SHOWN = { _toHtml: 'text/html', _toSvg: 'image/svg+xml', _toMarkdown: 'text/markdown', _toLatex: 'text/latex',
  _toPng: 'image/png', _toJpeg: 'image/jpeg' }

function bundle(value) {
  const data = { 'text/plain': util.inspect(value, { depth: 4, maxArrayLength: 1000, maxStringLength: 1e6 }) }
  if (value === null || typeof value !== 'object') return data
  for (const [method, mime] of Object.entries(SHOWN))
    if (typeof value[method] === 'function') data[mime] = asBase64(value[method]())
  if (typeof value._toMime === 'function') Object.assign(data, value._toMime())
  else if (isData(value)) {
    try { data['application/json'] = JSON.parse(JSON.stringify(value)) } catch { /* it has circles */ }
  }
  return data
}
const isData = v => Array.isArray(v) || Object.getPrototypeOf(v) === Object.prototype

const show = data => { tell({ type: 'result', main: false, data }) }
const display = value => show(bundle(value))
const $$ = {
  html: v => show({ 'text/html': String(v) }),
  svg: v => show({ 'image/svg+xml': String(v) }),
  png: v => show({ 'image/png': asBase64(v) }),
  jpeg: v => show({ 'image/jpeg': asBase64(v) }),
  markdown: v => show({ 'text/markdown': String(v) }),
  latex: v => show({ 'text/latex': String(v) }),
  text: v => show({ 'text/plain': String(v) }),
  json: v => show({ 'application/json': v }),
  mime: v => show(v),
}

// ---- running ----

Object.assign(globalThis, { require: requireHere, module: { exports: {} }, exports: {}, display, $$,
  __import: name => import(/^[./]/.test(name) ? pathToFileURL(requireHere.resolve(name)).href : name)
    .catch(error => { try { return import(pathToFileURL(requireHere.resolve(name)).href) } catch { throw error } }) })
Object.defineProperty(globalThis, '__import', { enumerable: false })

let interrupted = null
process.on('SIGINT', () => interrupted?.(Object.assign(new Error('the execution was interrupted'), { name: 'Interrupted' })))
let cell = null // its reject: what fails with nobody waiting is the running cell's failure
for (const kind of ['uncaughtException', 'unhandledRejection'])
  process.on(kind, error => { if (cell) cell(error); else console.error(error) })

// A cell may take the name of something that node brings, and that cannot be assigned to.
function declare(name) {
  const was = Object.getOwnPropertyDescriptor(globalThis, name)
  if (!was || was.get || !was.writable)
    Object.defineProperty(globalThis, name, { value: undefined, writable: true, enumerable: true, configurable: true })
}

async function evaluate(code, number) {
  const { names, text, columnOffset } = rewrite(code)
  names.forEach(declare)
  const script = new vm.Script(text, { filename: `cell ${number}`, columnOffset,
    importModuleDynamically: name => globalThis.__import(name) })
  const stopped = new Promise((_, reject) => { interrupted = cell = reject })
  stopped.catch(() => {})
  return await Promise.race([script.runInThisContext({ breakOnSigint: true }), stopped])
}

function failure(error) {
  if (error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED')
    return { type: 'error', name: 'Interrupted', value: 'the execution was interrupted', traceback: '' }
  if (!(error instanceof Error) && typeof error?.stack !== 'string')
    return { type: 'error', name: 'Error', value: util.inspect(error), traceback: util.inspect(error) }
  const stack = String(error.stack).split('\n').filter(l => !l.includes(__filename) && !l.includes('(node:')).join('\n')
  return { type: 'error', name: error.name, value: error.message, traceback: stack }
}

function put(env) {
  const before = {}
  for (const [name, value] of Object.entries(env)) {
    before[name] = process.env[name] ?? null
    if (value === null) delete process.env[name]
    else process.env[name] = value
  }
  return before
}

async function run({ code, language, env, news, mark }, number) {
  put(news)
  const before = put(env)
  try {
    const result = await evaluate(language === 'typescript' ? fromTypescript(code) : code, number)
    if (result?.value !== undefined) tell({ type: 'result', main: true, data: bundle(result.value) })
  } catch (error) {
    tell(failure(error))
  }
  interrupted = cell = null
  put(before)
  for (const write of writes) await new Promise(done => write(mark, done))
  tell({ type: 'done' })
}

// Kept from before any code could put something else in their place.
const writes = [process.stdout, process.stderr].map(stream => stream.write.bind(stream))
let waiting = [], number = 0, chain = Promise.resolve()
// Not as a file: a thread that waits in read would keep process.exit from ending.
const input = new net.Socket({ fd: 3, readable: true, writable: false })
input.on('data', piece => {
  const parts = piece.toString('latin1').split('\n')
  for (let i = 0; i < parts.length - 1; i++) {
    const line = Buffer.from(waiting.join('') + parts[i], 'latin1').toString()
    waiting = []
    chain = chain.then(() => run(JSON.parse(line), ++number))
  }
  waiting.push(parts.at(-1))
})
input.on('end', () => process.exit(0))
tell({ type: 'ready' })
