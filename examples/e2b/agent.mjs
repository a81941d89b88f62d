// An agent: it has a goal and a computer, and works until it says that the goal is reached. What it does happens in
// a sandbox, so that a bad idea costs nothing.
//
//   node agent.mjs                                         a few rules play the model: it runs anywhere
//   MODEL_URL=http://127.0.0.1:8080/v1 node agent.mjs      any server of chat completions (MODEL, MODEL_KEY)
import { CommandExitError, Sandbox } from 'e2b'

const STEPS_MAX = 12
const OUTPUT_MAX = 4000 // characters of a command's output that are shown to the model
const GOAL = 'The tests of the project in ~/project fail. Find out why and make them pass, without changing the tests.'
const RULES = `You work on a Linux computer. Answer with one JSON object and nothing else:
{"run": "shell command"} or {"write": "path", "text": "content"} or {"done": "what you did"}.`

const PROJECT = {
  'prices.py': 'def total(prices, discount=0):\n    return sum(prices) - discount\n',
  'test_prices.py': `import unittest
from prices import total

class Total(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_discount(self):
        self.assertEqual(total([200], discount=10), 180)
`
}

// A model of five rules. It looks at what happened last, as a large one does.
async function rules (messages) {
  const last = messages.at(-1).content
  if (last === GOAL) return '{"run": "cd project && python3 -m unittest"}'
  if (/FAILED|Error:/.test(last)) return '{"run": "cat project/prices.py"}'
  if (last.includes('sum(prices) - discount')) {
    const text = last.slice(last.indexOf('def ')).replace(' - discount', ' * (1 - discount / 100)').trim() + '\n'
    return JSON.stringify({ write: '/home/user/project/prices.py', text })
  }
  if (last.startsWith('written')) return '{"run": "cd project && python3 -m unittest"}'
  return '{"done": "The discount was taken off as an amount; it is a percentage."}'
}

async function chat (messages) {
  const answer = await fetch(`${process.env.MODEL_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${process.env.MODEL_KEY ?? ''}` },
    body: JSON.stringify({ model: process.env.MODEL ?? 'default', messages })
  })
  if (!answer.ok) throw new Error(`the model answered ${answer.status}: ${await answer.text()}`)
  return (await answer.json()).choices[0].message.content
}

// Failures are for the model to read, not for this program to end of.
async function act (sandbox, action) {
  if (action.write) {
    await sandbox.files.write(action.write, action.text)
    return `written: ${action.write}`
  }
  try {
    const done = await sandbox.commands.run(action.run, { timeoutMs: 60_000 })
    return `exit 0\n${done.stdout}${done.stderr}`.slice(0, OUTPUT_MAX)
  } catch (e) {
    if (e instanceof CommandExitError) return `exit ${e.exitCode}\n${e.stdout}${e.stderr}`.slice(0, OUTPUT_MAX)
    return `failed: ${e.message}`
  }
}

const think = process.env.MODEL_URL ? chat : rules
const sandbox = await Sandbox.create({ timeoutMs: 600_000 })
try {
  await sandbox.files.write(Object.entries(PROJECT).map(([name, data]) => ({ path: `/home/user/project/${name}`, data })))
  const messages = [{ role: 'system', content: RULES }, { role: 'user', content: GOAL }]
  for (let step = 1; ; step++) {
    if (step > STEPS_MAX) throw new Error('no end in sight')
    const content = await think(messages)
    const action = JSON.parse(content)
    console.log(`${step}. ${action.run ?? (action.write ? `write ${action.write}` : `done: ${action.done}`)}`)
    if (action.done) break
    const seen = await act(sandbox, action)
    console.log(seen.trim().replace(/^/gm, '   '))
    messages.push({ role: 'assistant', content }, { role: 'user', content: seen })
  }
  await sandbox.commands.run('cd project && python3 -m unittest') // its word is not enough: this throws if they fail
  console.log('the tests pass')
} finally {
  await sandbox.kill()
}
