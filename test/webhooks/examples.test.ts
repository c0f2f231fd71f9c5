import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/events.md'), 'utf8')

/** What each language needs around its example: the program then says `true` or `false` of `body` and `delivery.json` beside it. */
const around: Record<
  string,
  { file: string; before?: string; after: string; command: (file: string) => [string, string[]] | undefined }
> = {
  typescript: {
    file: 'verify.ts',
    after: `
import { readFileSync } from 'node:fs'
const { secret, headers } = JSON.parse(readFileSync('delivery.json', 'utf8'))
console.log(verify(secret, headers, readFileSync('body', 'utf8')))`,
    command: (file) => [process.execPath, [file]],
  },
  'typescript library': {
    file: 'library.ts',
    after: `
import { readFileSync } from 'node:fs'
const { secret, headers } = JSON.parse(readFileSync('delivery.json', 'utf8'))
try {
  console.log(typeof read(secret, headers, readFileSync('body', 'utf8')) === 'object')
} catch {
  console.log(false)
}`,
    command: (file) => [process.execPath, [file]],
  },
  python: {
    file: 'verify.py',
    after: `
import json

delivery = json.load(open("delivery.json"))
print(str(verify(delivery["secret"], delivery["headers"], open("body", "rb").read())).lower())`,
    command: (file) => programOf('python3', [file]),
  },
  go: {
    file: 'verify.go',
    after: '',
    command: () => programOf('go', ['run', 'verify.go', 'driver.go'], 'apt-get install golang-go'),
  },
  bash: {
    file: 'verify.sh',
    after: `
if verify "$1" "$2" body; then echo true; else echo false; fi`,
    command: (file) => (peer('openssl') ? programOf('bash', [file]) : undefined),
  },
}

const goDriver = `package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	var delivery struct {
		Secret  string
		Headers map[string]string
	}
	text, _ := os.ReadFile("delivery.json")
	if err := json.Unmarshal(text, &delivery); err != nil {
		panic(err)
	}
	body, _ := os.ReadFile("body")
	fmt.Println(verify(delivery.Secret, func(name string) string { return delivery.Headers[name] }, body))
}
`

test('the page shows each of these once', () => {
  const counts = [...examples()].map(([language, list]) => [language, list.length])
  expect(Object.fromEntries(counts)).toEqual(Object.fromEntries(Object.keys(around).map((language) => [language, 1])))
})

test('every example knows a true delivery from a tampered one', async () => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const sink = await WebhookSink.start()
  const { body: webhook } = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.created'] })
  await box.call('POST', '/v1/identities', { name: 'Grüße 🎉' })
  const [received] = await sink.until(1)
  for (const [language, { file, after, command }] of Object.entries(around)) {
    const directory = folder()
    mkdirSync(join(directory, 'node_modules'))
    symlinkSync(join(root, 'node_modules/standardwebhooks'), join(directory, 'node_modules/standardwebhooks'))
    writeFileSync(join(directory, 'package.json'), '{"type": "module"}')
    writeFileSync(join(directory, 'delivery.json'), JSON.stringify({ secret: webhook['secret'], headers: received!.headers }))
    writeFileSync(join(directory, file), `${examples().get(language)![0]}${after}\n`)
    if (language === 'go') writeFileSync(join(directory, 'driver.go'), goDriver)
    const program = command(file)
    if (!program) continue
    const [name, parameters] = program
    const given = language === 'bash' ? [webhook['secret'] as string, String(received!.headers['x-service-signature'])] : []
    const ask = async (body: string): Promise<string> => {
      writeFileSync(join(directory, 'body'), body)
      const { stdout } = await run(name, [...parameters, ...given], {
        cwd: directory,
        env: { ...process.env, GO111MODULE: 'off', NO_COLOR: '1' },
      })
      return stdout.trim()
    }
    expect(await ask(received!.raw), `${language}: the true one`).toBe('true')
    expect(await ask(received!.raw.replace('identity.created', 'identity.creatde')), `${language}: a tampered one`).toBe('false')
  }
})

/** The page's fenced blocks in these languages, by the text after the fence. */
function examples(): Map<string, string[]> {
  const blocks = [...page.matchAll(/^```([^\n]+)\n(.*?)^```$/gms)].map(([, language, code]) => ({
    language: language!,
    code: code!,
  }))
  const grouped = Map.groupBy(
    blocks.filter(({ language }) => language in around),
    ({ language }) => language,
  )
  return new Map([...grouped].map(([language, list]) => [language, list.map(({ code }) => code)]))
}

function programOf(name: string, parameters: string[], install?: string): [string, string[]] | undefined {
  const path = peer(name, install)
  return path === undefined ? undefined : [path, parameters]
}
