// E2B's own client, asked by lines on standard input; see sdk.h.
import readline from 'node:readline'
import { Sandbox } from 'e2b'
import { Sandbox as Interpreter } from '@e2b/code-interpreter'

const us = since => Number(process.hrtime.bigint() - since) / 1000

async function life () {
  const start = process.hrtime.bigint()
  const sandbox = await Sandbox.create('base')
  await sandbox.commands.run('true')
  await sandbox.kill()
  return us(start)
}

async function code () {
  const start = process.hrtime.bigint()
  const sandbox = await Interpreter.create()
  try {
    const { text } = await sandbox.runCode('1 + 1')
    if (text !== '2') throw new Error(`1 + 1 was ${text}`)
    return us(start)
  } finally {
    await sandbox.kill()
  }
}

async function burst (clients, lives) {
  const times = []
  const errors = []
  await Promise.all(Array.from({ length: clients }, async () => {
    for (let i = 0; i < lives; i++) await life().then(t => times.push(t), e => errors.push(e))
  }))
  return `${errors.length} ${times.join(' ')}\t${errors[0] ?? ''}`
}

const what = { life, code, burst }
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [name, ...numbers] = line.split(' ')
  const answer = await what[name](...numbers.map(Number)).catch(e => `error ${e}`)
  console.log(String(answer).replaceAll('\n', ' '))
}
process.exit(0)
