import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { identity } from '../support/live.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const examples = [...readFileSync(`${root}/docs/events.md`, 'utf8').matchAll(/^```js\n([^]*?)^```$/gm)].map(([, code]) => code!)

test.each([
  ['Node', examples[0]!],
  ['Supabase', examples[1]!],
])('the example for %s shows a mail that arrives', async (_, code) => {
  const box = await appliance()
  const { email } = await identity(box)
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: root,
    env: { PATH: process.env['PATH'] ?? '', PILLARBOX_URL: box.url, PILLARBOX_API_KEY: box.key },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  // mail is sent until it is shown: the example does not say when it listens
  for (let index = 0; !output.includes('email.received Hello'); index += 1) {
    await deliver(box.smtp, { to: email, raw: message({ Subject: `Hello ${index}` }, 'x\n') })
    await Promise.race([once(child.stdout, 'data'), new Promise((resolve) => setTimeout(resolve, 300))])
    expect(child.exitCode).toBe(null)
  }
})
