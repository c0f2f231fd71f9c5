import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { expect, test, vi } from 'vitest'
import { addConfigCommand } from '../../src/commands/config.ts'
import { Config, loadConfig } from '../../src/config.ts'
import { example, jsonSchema } from '../../src/config/documents.ts'
import { settingsReference } from '../../src/config/reference.ts'
import { sections, settingsOf } from '../../src/config/settings.ts'
import { certificate } from '../../src/certificates/self-signed.ts'

const kept = (name: string) => readFile(join(import.meta.dirname, '../../config', name), 'utf8')

async function printed(...words: string[]): Promise<string> {
  const lines: string[] = []
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    lines.push(String(text))
    return true
  })
  const program = new Command('pillarbox').exitOverride()
  addConfigCommand(program)
  await program.parseAsync(words, { from: 'user' })
  vi.restoreAllMocks()
  return lines.join('')
}

test('the example in the repository is the one the settings make', async () => {
  expect(await kept('pillarbox.example.yaml')).toBe(example(Config))
  expect(await printed('config', 'example')).toBe(example(Config))
})

test('the JSON Schema in the repository is the one the settings make', async () => {
  expect(await kept('pillarbox.schema.json')).toBe(jsonSchema(Config))
  expect(await printed('config', 'schema')).toBe(jsonSchema(Config))
})

test('docs/settings.md is what the settings say of themselves (npm run docs writes it), and has every one', async () => {
  const page = await kept('../docs/settings.md')
  expect(page).toBe(settingsReference(Config))
  const rows = [...page.matchAll(/^\| `([a-z0-9_.]+)` \| ([^|]+) \| /gm)]
  const all = settingsOf(sections(Config)).map(({ name }) => name)
  expect(rows.map(([, name]) => name!).toSorted()).toEqual(all.toSorted())
  expect(
    rows.filter(([, , type]) => !/^(?:text|list|size|time|path of a|true or false|one of|whole number, -?\d)/.test(type!)),
  ).toEqual([])
})

test('editors find the schema beside the example', async () => {
  expect((await kept('pillarbox.example.yaml')).split('\n')[0]).toBe('# yaml-language-server: $schema=./pillarbox.schema.json')
})

test('the example loads as it is, and with every setting uncommented', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'pillarbox-example-'))
  try {
    const text = await kept('pillarbox.example.yaml')
    await writeFile(join(cwd, 'pillarbox.yaml'), text)
    expect(await loadConfig({ env: {}, cwd })).toEqual(await loadConfig({ file: '/dev/null', env: {}, cwd }))

    const secrets = join(cwd, 'secrets')
    await mkdir(secrets)
    const sms = [
      'sms.twilio.auth_token',
      'sms.android.password',
      'sms.android.signing_key',
      'sms.http.secret',
      'acme.eab_hmac_key',
      'blobs.s3.secret_access_key',
    ]
    for (const name of ['bootstrap_key', 'metrics.token', 'mail.rspamd.password', 'outbound.relay.password', ...sms]) {
      await writeFile(join(secrets, `pillarbox.${name}`), 'a-secret-of-twenty-characters\n')
    }
    await writeFile(join(secrets, 'pillarbox.database.url'), 'postgres://pillarbox@db.example.com/pillarbox\n')
    await writeFile(join(secrets, 'pillarbox-master-key'), `${Buffer.alloc(32).toString('base64')}\n`)
    await writeFile(join(secrets, 'pillarbox-backup-passphrase'), 'correct horse battery\n')
    const { cert } = await certificate(join(cwd, 'tls'), 'mx.example.com')
    await copyFile(join(cwd, 'tls/cert.pem'), join(cwd, 'tls/authorities.pem'))
    await writeFile(join(cwd, 'tls', 'roots.pem'), cert)
    const whole = text.replace(/^( *)#(?=\S)/gm, '$1').replaceAll('/run/secrets', secrets)
    expect(whole).not.toMatch(/^ *#\S/m)
    await writeFile(join(cwd, 'pillarbox.yaml'), whole)
    expect(await loadConfig({ env: {}, cwd })).toMatchObject({
      hostname: 'mx.example.com',
      bootstrap_key: 'a-secret-of-twenty-characters',
      http: { tls: { cert: join(cwd, 'tls/cert.pem') }, cors_origins: ['https://app.example.com'] },
      mail: { rspamd: { url: 'http://127.0.0.1:11334' } },
    })
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
})

test('config check says what is wrong, and that all is well', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'pillarbox-check-'))
  try {
    await writeFile(join(cwd, 'good.yaml'), 'hostname: mx.example.com\n')
    await writeFile(join(cwd, 'bad.yaml'), 'hostnam: mx.example.com\n')
    expect(await printed('config', 'check', '--config', join(cwd, 'good.yaml'))).toBe('The configuration is valid.\n')
    await expect(printed('config', 'check', '--config', join(cwd, 'bad.yaml'))).rejects.toThrow(
      `${cwd}/bad.yaml:1:1 hostnam: is not a setting, did you mean hostname?`,
    )
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
})
