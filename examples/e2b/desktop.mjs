// A browser on a screen that nobody has to look at, and a picture of it.
//
//   node desktop.mjs [screen.png]
import fs from 'node:fs'
import { Sandbox } from '@e2b/desktop'

const file = process.argv[2] ?? 'screen.png'
const desktop = await Sandbox.create({ resolution: [1280, 800], timeoutMs: 600_000 })
try {
  await desktop.files.write('/home/user/page.html', `<title>Guestbook</title>
<form onsubmit="document.title = 'Thanks, ' + who.value; return false"><input id="who" autofocus placeholder="Your name"></form>`)
  await desktop.launch('google-chrome', '/home/user/page.html')

  const titled = title => desktop.waitAndVerify(`xdotool search --onlyvisible --name '^${title}'`, r => r.exitCode === 0, 60)
  if (!await titled('Guestbook')) throw new Error('the browser did not show the page')
  await desktop.write('Warren')
  await desktop.press('enter')
  if (!await titled('Thanks, Warren')) throw new Error('the page did not take the name')

  fs.writeFileSync(file, await desktop.screenshot())
  console.log(`the page said thanks; see ${file}`)
  await desktop.stream.start({ requireAuth: true })
  console.log(`watch it at ${desktop.stream.getUrl({ authKey: desktop.stream.getAuthKey() })}`)
  await desktop.stream.stop()
} finally {
  await desktop.kill()
}
