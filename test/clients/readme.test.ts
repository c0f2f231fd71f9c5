import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { ambient } from '../support/ambient.ts'
import { appliance, deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { succeed } from '../support/program.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const client = join(root, 'clients/typescript')
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/** What calls the handler of webhooks: once signed, once not. */
const after = `
import { createHmac } from 'node:crypto'
const body = '{"type":"email.received"}'
const timestamp = String(Math.floor(Date.now() / 1000))
const signature = createHmac('sha256', Buffer.from('${secret.slice(6)}', 'base64')).update(\`evt_1.\${timestamp}.\${body}\`).digest('base64')
const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': timestamp, 'webhook-signature': \`v1,\${signature}\` }
for (const one of [headers, {}]) {
  console.log((await handle(new Request('http://localhost/hook', { method: 'POST', body, headers: one }))).status)
}
`

test('the package is what it says, and the examples of its page compile and run with it', async () => {
  const directory = folder()
  const installed = join(directory, 'node_modules/@pillarbox/sdk')
  mkdirSync(installed, { recursive: true })
  const tsc = join(root, 'node_modules/.bin/tsc')
  await succeed(tsc, ['-p', client, '--outDir', join(installed, 'dist')])
  const manifest = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8')) as Record<string, unknown>
  expect(manifest).toMatchObject({ name: '@pillarbox/sdk', type: 'module', license: 'MIT', files: ['dist'] })
  expect(manifest).not.toHaveProperty('dependencies')
  cpSync(join(client, 'package.json'), join(installed, 'package.json'))
  mkdirSync(join(directory, 'node_modules/@types'))
  symlinkSync(join(root, 'node_modules/@types/node'), join(directory, 'node_modules/@types/node'))

  const blocks = [...readFileSync(join(client, 'README.md'), 'utf8').matchAll(/^```typescript\n(.*?)^```$/gms)].map(
    ([, code]) => code!,
  )
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  writeFileSync(join(directory, 'example.ts'), `${blocks.join('\n')}${after}`)
  const options = { strict: true, noEmit: true, target: 'es2023', module: 'nodenext', types: ['node'], skipLibCheck: false }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['example.ts'] }))
  await succeed(tsc, ['-p', directory])

  const box = await appliance()
  const env = { PATH: ambient['PATH'], PILLARBOX_URL: box.url, PILLARBOX_API_KEY: box.key, WEBHOOK_SECRET: secret }
  const child = spawn(process.execPath, [join(directory, 'example.ts')], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = new Promise((resolve) => child.on('close', resolve))
  await expect.poll(() => output).toContain('\n')
  const address = /sign up with (\S+)/.exec(output)![1]!
  const mail = message({ From: 'hello@shop.test', Subject: 'Your code' }, 'Your sign-in code is 493817.\n')
  await deliver(box.smtp, { from: 'hello@shop.test', to: address, raw: mail })
  expect(await ended).toBe(0)
  expect(output.trim().split('\n').slice(1)).toEqual([
    'the code is 493817, from hello@shop.test',
    'queued',
    'Hello: Hello Bob.',
    'no such e-mail: not_found 404',
    'arrived: Live',
    'visa 4242 has 16 digits',
    'webhook: email.received',
    '200',
    '401',
  ])
})
