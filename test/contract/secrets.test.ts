import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, test } from 'vitest'
import { routePaths } from '../../src/http/route.ts'
import { inflate } from '../../src/store/blobs.ts'
import { newSecret } from '../../src/webhooks/signature.ts'
import { sealedValues } from '../keys/sealed.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { base32 } from '../support/base32.ts'
import { formsOf, Search } from './forms.ts'
import { liveWithCards } from './life-of-cards.ts'

const canary = 'canary-that-must-not-sing'

test('no secret is in a log line, a metric, an error or, unsealed, on disk', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', metadata: { private: `${canary}-metadata` } })
  const { body: made } = await box.call('POST', '/v1/api-keys', { label: 'made' }, { headers: { 'Idempotency-Key': 'made' } })
  const { body: rotated } = await box.call('POST', `/v1/api-keys/${made.id}/rotate`, { grace_seconds: 60 })
  const raw = message(
    { Subject: `Subject ${canary}-subject`, 'Content-Type': 'multipart/mixed; boundary=b' },
    `--b\n\nYour code is 493817 ${canary}-body\n--b\nContent-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\n${canary}-file\n--b--\n`,
  )
  await deliver(box.smtp, { to: ada.email, raw })
  const { body: emails } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const { body: attachment } = await box.call('GET', `/v1/identities/${ada.id}/emails/${emails.data[0].id}/attachments/0`)
  const signature = new URL(attachment.url).searchParams.get('signature')!
  const errors: string[] = []

  // every call there is, with keys good and bad, and canaries in every place a caller can write
  for (const { method, path, route } of routePaths(box.app.routes)) {
    const real = path.replace('identities/:id', `identities/${ada.id}`).replace(':email_id', emails.data[0].id)
    const target = real.replace(':thread_id', emails.data[0].thread_id).replace('api-keys/:id', `api-keys/${made.id}`)
    const filled = target.replace(':index', '0')
    const body = method === 'GET' ? undefined : `{"${canary}-field`
    for (const key of [null, `${canary}-key`, box.key, rotated.key as string]) {
      for (const query of ['', `?expires=1&signature=${signature}`, `?cursor=${canary}-cursor`]) {
        if (route.method === 'DELETE' || path.endsWith('/wait')) continue
        const told = await box.call(method, `${filled}${query}`, body, { key, headers: { Cookie: `session=${canary}-cookie` } })
        if (told.status >= 400) errors.push(JSON.stringify(told.body))
      }
    }
  }
  const opened = await box.call('GET', attachment.url, undefined, { key: null })
  expect(opened.body).toContain(`${canary}-file`)
  await box.call('GET', `${attachment.url}x`, undefined, { key: null })
  await box.call('GET', `/v1/nothing/${canary}-path?token=${canary}-query`)
  await deliver(box.smtp, { to: `nobody@pillarbox.test`, raw })
  await box.call('GET', '/healthz')

  const secrets = [box.key, made.key as string, rotated.key as string, signature, canary, '493817']
  const metrics = await box.app.metrics.text()
  // at the most talkative level, which is heard
  expect(box.env).toMatchObject({ PILLARBOX_LOG__LEVEL: 'trace' })
  expect(new Set(box.logged.map((line) => (JSON.parse(line) as { level: string }).level))).toContain('debug')
  for (const secret of secrets) {
    expect(box.logged.filter((line) => line.includes(secret))).toEqual([])
    expect(metrics).not.toContain(secret)
  }
  for (const secret of [
    box.key,
    made.key as string,
    rotated.key as string,
    signature,
    `${canary}-key`,
    `${canary}-cookie`,
    `${canary}-body`,
  ]) {
    expect(errors.filter((text) => text.includes(secret))).toEqual([])
  }
  expect(errors.length).toBeGreaterThan(50)

  const files = readdirSync(box.directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  expect(files.some((file) => file.endsWith('pillarbox.db'))).toBe(true)
  for (const key of [box.key, made.key as string, rotated.key as string, signature]) {
    expect(files.filter((file) => readFileSync(file).includes(key))).toEqual([])
  }
})

test('what the log does say of a call is who, what, and how it ended', async () => {
  const box = await appliance()
  const { body: keys } = await box.call('GET', '/v1/api-keys')
  const { headers } = await box.call('GET', '/v1/identities/ident_01jd3v8m2ef1pbx9mz5k7q4w6a/emails?from=somebody')
  const lines = box.logged.filter((line) => line.includes(headers.get('x-request-id')!)).map((line) => JSON.parse(line) as object)
  expect(lines).toMatchObject([{ method: 'GET', route: '/v1/identities/:id/emails', status: 404, key_id: keys.data[0].id }])
  expect(JSON.stringify(lines)).not.toContain('somebody')
})

test('after a run no secret lies in the data directory, the logs or the events, in any form', async () => {
  const settings = {
    PILLARBOX_METRICS__TOKEN: 'a-token-that-opens-the-metrics',
    PILLARBOX_OUTBOUND__RELAY__HOST: 'relay.test',
    PILLARBOX_OUTBOUND__RELAY__USER: 'pillarbox',
    PILLARBOX_OUTBOUND__RELAY__PASSWORD: 'a-password-of-the-relay',
  }
  const box = await appliance(settings)
  const run = await live(box)
  const secrets = [
    ...run.secrets,
    settings.PILLARBOX_METRICS__TOKEN,
    settings.PILLARBOX_OUTBOUND__RELAY__PASSWORD,
    box.key,
    Buffer.from(readFileSync(join(box.directory, 'data-keys', 'master.key'), 'utf8'), 'base64'),
    ...run.blobs.kept,
    ...run.blobs.destroyed,
  ].map((secret) => ({ secret: secret.toString('hex'), forms: formsOf(secret) }))
  // whatever is sealed, as it was before: keys for DKIM among it, which nobody is ever told
  const sealed = sealedValues(box).map(({ plain }) => ({ secret: plain, forms: [Buffer.from(plain, 'hex'), Buffer.from(plain)] }))
  secrets.push(...sealed.filter(({ secret }) => secret !== ''))
  const search = new Search<string>()
  for (const { secret, forms } of secrets) for (const form of forms) search.add(secret, form)
  // the octets of cards, as they are, may be in their table, and in the file of the database
  const found = (places: [string, Buffer][], cards: Set<string>): string[] =>
    places.flatMap(([place, octets]) => {
      const open = place === 'card_secrets' || /pillarbox\.db(?:-wal)?$/.test(place) ? cards : undefined
      const names = search.in(octets).filter(({ name, text }) => !(open?.has(name) && text.toString('hex') === name))
      return [...new Set(names.map(({ name }) => `${name} in ${place}`))]
    })
  const nothing = new Set<string>()
  const living = hexes(run.blobs.kept)

  await box.call('GET', '/healthz')
  // asked before the search, which takes longer than an idle connection is kept
  const { body: told } = await box.call('GET', `/v1/identities/${run.ada}/events?limit=200`)
  const running = filesOf(box)
  // while it runs the newest is in the log of the database
  expect(running.map(([place]) => place)).toContain(join(box.directory, 'data', 'pillarbox.db-wal'))
  expect(running.some(([, octets]) => octets.includes(run.blobs.kept[0]!))).toBe(true)
  // what was destroyed is written over with the next checkpoint, and gone from the log once the box has stopped
  expect(found(running, hexes([...run.blobs.kept, ...run.blobs.destroyed]))).toEqual([])
  const rows = rowsOf(box)
  expect(found(rows, living)).toEqual([])
  const said: [string, Buffer][] = [
    ['events', Buffer.from(JSON.stringify(told))],
    ['errors', Buffer.from(run.errors.join('\n'))],
    ['metrics', Buffer.from(await box.app.metrics.text())],
  ]
  await box.app.stop()
  expect(box.logged.some((line) => line.includes('"level":"debug"'))).toBe(true)
  said.push(['log', Buffer.from(box.logged.join(''))])
  expect(found(said, nothing)).toEqual([])
  expect(found(filesOf(box), living)).toEqual([])
  expect(new Set(found(filesOf(box), nothing).map((one) => one.split(' in ')[0]!))).toEqual(living)
  for (const code of run.codes) for (const [place, octets] of said) expect([place, octets.includes(code)]).toEqual([place, false])

  // and it would have been seen: what is no secret is there, in a file, in a row, and in one that is deflated
  expect(seen(filesOf(box), 'service-that-is-no-secret')).toBe(true)
  expect(seen(rows, 'service-that-is-no-secret')).toBe(true)
  expect(seen(rows, 'body that is no secret '.repeat(20))).toBe(true)
  expect(told.data.map(({ type }) => type as string)).toEqual(
    expect.arrayContaining(['totp.created', 'totp.read', 'totp.deleted', 'card.created', 'card.revealed', 'card.cancelled']),
  )
})

test('a secret is found in every form it may take', () => {
  const secret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
  const search = new Search<string>()
  for (const form of formsOf(secret)) search.add('secret', form)
  const sees = (octets: Buffer | string): boolean => search.in(Buffer.from(octets)).length > 0
  for (const around of ['', 'x', 'xy', 'xyz', '{"secret":"']) {
    const text = `${around}${secret}${around}`
    expect(sees(text)).toBe(true)
    expect(sees(text.toLowerCase())).toBe(true)
    expect(sees(Buffer.from(text, 'utf16le'))).toBe(true)
    expect(sees(Buffer.from(text, 'utf16le').swap16())).toBe(true)
    for (const encoding of ['base64', 'base64url', 'hex'] as const) {
      expect([around, encoding, sees(Buffer.from(text).toString(encoding))]).toEqual([around, encoding, true])
      expect(sees(Buffer.from(Buffer.from(text).toString(encoding), 'utf16le'))).toBe(true)
    }
    expect(sees(Buffer.from(text).toString('hex').toUpperCase())).toBe(true)
    expect(sees(Buffer.from(text, 'utf16le').toString('base64'))).toBe(true)
  }
  expect(sees(`${secret.slice(0, 16)} ${secret.slice(17)}`)).toBe(false)
})

/** A life in which every kind of secret is given, made, used, changed, mistaken and thrown away. */
async function live(box: Appliance): Promise<{
  ada: string
  secrets: (string | Buffer)[]
  blobs: { kept: Buffer[]; destroyed: Buffer[] }
  errors: string[]
  codes: string[]
}> {
  const totp = Array.from({ length: 8 }, () => randomBytes(20))
  const texts = totp.map((octets) => base32(octets))
  const [kept, byUri, deleted, ofDeleted, mistaken, refused, malformed, misplaced] = texts as [string, ...string[]]
  const given = [newSecret(), 'a secret that somebody thought of', 'Bearer of-a-header-that-is-secret', newSecret()] as const
  const secrets: (string | Buffer)[] = [...texts, ...totp, ...given]
  const errors: string[] = []
  const wrong = async (...call: Parameters<Appliance['call']>): Promise<void> => {
    const { status, body } = await box.call(...call)
    expect(status).toBeGreaterThanOrEqual(400)
    errors.push(JSON.stringify(body))
  }

  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const at = `/v1/identities/${ada.id}/totp`
  const once = { headers: { 'Idempotency-Key': 'once' } }
  const { body: entry } = await box.call('POST', at, { secret: kept, service_name: 'service-that-is-no-secret', digits: 8 }, once)
  const { body: second } = await box.call('POST', at, { uri: uri(byUri!) })
  const { body: third } = await box.call('POST', at, { secret: deleted, service_name: 'X' })
  await box.call('POST', `/v1/identities/${bob.id}/totp`, { secret: ofDeleted!.toLowerCase(), service_name: 'X' })
  const codes: string[] = []
  for (const { id } of [entry, second]) codes.push((await box.call('GET', `${at}/${id}/code`)).body.code as string)
  await box.call('DELETE', `${at}/${third.id}`)

  const blobs = await liveWithCards(box, ada.id as string, bob.id as string, wrong)
  secrets.push(...blobs.refused)
  expect((await box.call('POST', '/v1/domains', { name: 'keys.example' })).status).toBe(201)

  await box.call('DELETE', `/v1/identities/${bob.id}`)
  await wrong('POST', at, { secret: `${mistaken}!`, service_name: 'X' })
  await wrong('POST', at, { uri: `${uri(refused!)}&period=1` }, { headers: { 'Idempotency-Key': 'wrong' } })
  await wrong('POST', at, `{"secret":"${malformed}"`)
  await wrong('POST', at, { service_name: 'X', sekret: misplaced })
  await wrong('POST', `${at}?secret=${misplaced}`, {})
  await wrong('GET', at, undefined, { key: misplaced! })

  const { body: key } = await box.call('POST', '/v1/api-keys', { label: 'made' }, { headers: { 'Idempotency-Key': 'key' } })
  const { body: rotated } = await box.call('POST', `/v1/api-keys/${key.id}/rotate`, { grace_seconds: 60 }, once)
  const hook = { url: 'https://receiver.test/', events: ['*'], headers: { Authorization: given[2] } }
  const { body: made } = await box.call('POST', '/v1/webhooks', hook, { headers: { 'Idempotency-Key': 'hook' } })
  const { body: webhook } = await box.call('POST', '/v1/webhooks', { ...hook, secret: given[0] })
  await box.call('POST', `/v1/webhooks/${webhook.id}/secret/rotate`, { secret: given[1] })
  await box.call('POST', `/v1/webhooks/${made.id}/secret/rotate`, { secret: given[3] }, once)
  await box.call('DELETE', `/v1/webhooks/${made.id}`)
  secrets.push(key.key as string, rotated.key as string, made.secret as string)
  const reply = await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'X' }, 'body that is no secret '.repeat(200)) })
  expect(reply).toMatch(/^250/)
  return { ada: ada.id, secrets, blobs, errors, codes }
}

function hexes(blobs: Buffer[]): Set<string> {
  return new Set(blobs.map((one) => one.toString('hex')))
}

function uri(secret: string): string {
  return `otpauth://totp/X:ada?secret=${secret}&issuer=X&digits=8`
}

function seen(places: [string, Buffer][], text: string): boolean {
  return places.some(([, octets]) => octets.includes(text))
}

function filesOf(box: Appliance): [string, Buffer][] {
  return readdirSync(join(box.directory, 'data'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => [file, readFileSync(file)])
}

/** Every row of every table, what is deflated as it was before. */
function rowsOf(box: Appliance): [string, Buffer][] {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true })
  try {
    const tables = database.prepare(`SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'`).all()
    return tables.flatMap(({ name }) =>
      database
        .prepare(`SELECT * FROM ${String(name)}`)
        .all()
        .map((row): [string, Buffer] => {
          const { bytes, deflated } = row as { bytes?: Uint8Array; deflated?: number }
          const whole = bytes ? [inflate(deflated === 1, bytes)] : []
          const values = Object.values(row).map((value) => (value instanceof Uint8Array ? value : Buffer.from(String(value))))
          return [String(name), Buffer.concat([...values, ...whole])]
        }),
    )
  } finally {
    database.close()
  }
}
