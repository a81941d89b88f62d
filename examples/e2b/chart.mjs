// A plot drawn in a sandbox: the picture goes to a file, and what is in it comes as data.
//
//   node chart.mjs [chart.png]
import fs from 'node:fs'
import { Sandbox } from '@e2b/code-interpreter'

const file = process.argv[2] ?? 'chart.png'
const sandbox = await Sandbox.create()
try {
  await sandbox.runCode(`
import numpy as np
months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]
rain = np.array([54, 41, 48, 39, 52, 61])`)

  // The names of the cell before are still there, as in a notebook.
  const execution = await sandbox.runCode(`
import matplotlib.pyplot as plt
plt.bar(months, rain)
plt.title("Rain")
plt.ylabel("Amount (mm)")
plt.show()
float(rain.mean())`, { onStdout: line => console.log(line.line) })
  if (execution.error) throw new Error(execution.error.traceback)

  const plot = execution.results.find(r => r.png)
  fs.writeFileSync(file, Buffer.from(plot.png, 'base64'))
  console.log(`${plot.chart.type} chart "${plot.chart.title}" in ${file}`)
  for (const { label, value } of plot.chart.elements) console.log(`${label} ${value}`)
  console.log(`mean ${execution.text}`)
} finally {
  await sandbox.kill()
}
