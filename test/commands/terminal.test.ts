import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { openStore } from '../support/open-store.ts'
import { pillarbox } from '../support/pillarbox.ts'
import { says, WebhookSink } from '../support/webhook-sink.ts'

const timeout = 240_000
const hostile = 'x\u202ey\u200f\u2028z\u{e0041}'
const visible = String.raw`x\u{202e}y\u{200f}\u{2028}z\u{e0041}`

/** Control and format characters, and line separators, apart from line ends. */
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

test(
  'what others wrote is printed with characters that are not seen written out, in JSON as its escapes',
  { timeout },
  async () => {
    const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
    const sink = await WebhookSink.start()
    sink.behaviour = says(500, { 'content-type': 'text/plain; charset=utf-8' }, `\u009b31m\u0085${hostile}`)
    await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['*'] })
    const { body: key } = await box.call('POST', '/v1/api-keys', {})
    for (let turn = 0; turn < 5; turn += 1) await box.call('POST', '/v1/identities', {})
    await sink.until(5)
    await box.settled()
    const database = openStore(join(box.directory, 'data', 'pillarbox.db'))
    // a label from before such were refused
    database.prepare('UPDATE api_keys SET label = ? WHERE id = ?').run(hostile, key.id)
    // the doctor shows the last answer once five have failed: why there was none, not the body of an endpoint
    const answer = JSON.stringify({ status: null, body: null, error: `\u009b31m\u0085${hostile}` })
    database.prepare(`UPDATE deliveries_queue SET first_answer = ? WHERE first_answer IS NOT NULL`).run(answer)
    database.close()

    const keys = await pillarbox(box, ['key', 'list'])
    expect(keys.output).toMatch(new RegExp(`^${key.id} +${visible.replaceAll(/[\\{}]/g, String.raw`\$&`)} +\\S+…`, 'm'))
    const asJson = await pillarbox(box, ['key', 'list', '--json'])
    expect((JSON.parse(asJson.output) as { label: string }[]).map(({ label }) => label)).toContain(hostile)
    const refused = await pillarbox(box, ['key', 'revoke', `\u009b${hostile}`])
    expect(refused.errors).toContain(String.raw`The account has no key \u{9b}${visible}.`)
    const doctor = await pillarbox(box, ['doctor'])
    expect(doctor.output).toContain(visible)
    const doctorAsJson = await pillarbox(box, ['doctor', '--json'])
    for (const { output, errors } of [keys, asJson, refused, doctor, doctorAsJson]) {
      expect(unseen.exec(`${output}${errors}`)).toBeNull()
    }
  },
)
