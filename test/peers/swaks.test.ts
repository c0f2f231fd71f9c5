import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Appliance, message } from '../support/appliance.ts'
import { peer } from '../support/peer.ts'
import { type Finished, run } from '../support/program.ts'
import { boxWithAda, identity, keptFor, sha } from './kept.ts'

const program = peer('swaks')

/** A body that a careless program changes: dots, blanks at line ends, empty lines, octets above 127. */
const awkward = message(
  { To: 'Ada <ada@pillarbox.test>', Subject: 'Awkward', 'Content-Type': 'text/plain; charset=utf-8' },
  `.\n..\n. dot\n\n\ntrailing   \n\ttab\t\nGrüße 東京\n${'x'.repeat(998)}\n.end\n\n\n`,
)

describe.runIf(program !== undefined)('swaks', () => {
  test('every octet is kept, in the clear and under TLS, pipelined and not', async () => {
    const { box, ada } = await boxWithAda()
    const routing: [string[], RegExp][] = [
      [[], /with ESMTP id/],
      [['--tls'], /\(using TLSv1\.[23] with cipher [\w-]+\)\r\n\tby pillarbox\.test with ESMTPS id/],
      [['--pipeline'], /with ESMTP id/],
      [['--pipeline', '--tls'], /with ESMTPS id/],
      [['--protocol', 'SMTP'], /with SMTP id/],
    ]
    for (const [options, protocol] of routing) {
      const sent = await swaks(box, ['--to', 'ada@pillarbox.test', ...data(box, awkward), ...options])
      expect(sent).toMatchObject({ code: 0, errors: '' })
      const [kept] = await keptFor(box, ada)
      expect(sha(kept!.octets)).toBe(sha(awkward))
      expect(kept!.trace).toMatch(protocol)
      expect(kept!.trace).toContain('Return-Path: <sender@sender.test>')
      expect(kept!.email).toMatchObject({ subject: 'Awkward', from: 'sender@sender.test', parse_error: null })
      expect(kept!.email.body_text).toContain('Grüße 東京')
      await box.call('DELETE', `/v1/identities/${ada}/emails/${kept!.email.id}`)
    }
  })

  test('sends attachments and headers in UTF-8, and the API shows them as they were', async () => {
    const { box, ada } = await boxWithAda()
    const content = Buffer.from(Array.from({ length: 3000 }, (_, index) => (index * 7) % 256))
    const file = join(box.directory, 'data.bin')
    writeFileSync(file, content)
    const fields = ['--h-Subject', 'Bücher für 東京', '--h-From', '"Zoë" <sender@sender.test>']
    const attachment = ['--attach-type', 'application/octet-stream', '--attach-name', 'data.bin', '--attach', `@${file}`]
    const addressed = ['--to', 'ada@pillarbox.test', '--tls']
    const sent = await swaks(box, [...addressed, ...fields, '--body', 'See the file', ...attachment])
    expect(sent).toMatchObject({ code: 0 })
    const [kept] = await keptFor(box, ada)
    expect(kept!.email).toMatchObject({ subject: 'Bücher für 東京', from_name: 'Zoë', has_attachments: true })
    expect(kept!.email.body_text).toContain('See the file')
    expect(kept!.email.attachments).toMatchObject([{ filename: 'data.bin', size: 3000, sha256: sha(content) }])
    const { body } = await box.call('GET', `/v1/identities/${ada}/emails/${kept!.email.id}/attachments/0`)
    const opened = await fetch(body.url as string)
    expect(sha(Buffer.from(await opened.arrayBuffer()))).toBe(sha(content))
  })

  test('several recipients get a copy each, and the unknown one is named', async () => {
    const { box, ada } = await boxWithAda()
    const bob = await identity(box, 'Bob')
    const to = 'ada@pillarbox.test,nobody@pillarbox.test,bob+swaks@pillarbox.test'
    for (const options of [[], ['--pipeline']]) {
      const sent = await swaks(box, ['--to', to, ...data(box, awkward), ...options])
      expect(sent).toMatchObject({ code: 0 })
      expect(sent.output.toString()).toMatch(/<\*\* +550 5\.1\.1 /)
    }
    for (const owner of [ada, bob]) {
      const kept = await keptFor(box, owner, 2)
      expect(kept.map(({ octets }) => sha(octets))).toEqual([sha(awkward), sha(awkward)])
    }
    const [kept] = await keptFor(box, bob, 2)
    expect(kept!.email).toMatchObject({ to: 'bob+swaks@pillarbox.test', tag: 'swaks' })
  })

  test('unknown recipients and relaying are refused before any data is sent', async () => {
    const { box, ada } = await boxWithAda()
    const unknown = await swaks(box, ['--to', 'nobody@pillarbox.test'])
    expect(unknown.code).toBe(noRecipients)
    expect(unknown.output.toString()).toMatch(/<\*\* +550 5\.1\.1 /)
    for (const to of ['someone@elsewhere.test', 'ada%elsewhere.test@elsewhere.test', 'ada@pillarbox.test@elsewhere.test']) {
      const relayed = await swaks(box, ['--to', to])
      expect(relayed.code).toBe(noRecipients)
      expect(relayed.output.toString()).toMatch(/<\*\* +5\d\d /)
      expect(relayed.output.toString()).not.toMatch(/-> DATA/)
    }
    const mixed = await swaks(box, ['--to', 'ada@pillarbox.test,someone@elsewhere.test', ...data(box, awkward)])
    expect(mixed).toMatchObject({ code: 0 })
    expect(mixed.output.toString()).toMatch(/<\*\* +550 5\.7\.1 /)
    expect(await keptFor(box, ada)).toHaveLength(1)
  })

  test('a login is neither offered nor taken', async () => {
    const { box } = await boxWithAda()
    const credentials = ['--auth-user', 'ada', '--auth-password', 'secret']
    const sent = await swaks(box, ['--to', 'ada@pillarbox.test', '--tls', '--auth', ...credentials])
    expect(sent.code).toBe(noLogin)
  })
})

/** Exit codes of swaks: no recipient was accepted; AUTH is not possible. */
const noRecipients = 24
const noLogin = 28

function data(box: Appliance, raw: string): string[] {
  const file = join(box.directory, 'message.eml')
  // swaks ends the last line itself
  writeFileSync(file, raw.replace(/\r\n$/, ''))
  return ['--data', `@${file}`]
}

function swaks(box: Appliance, options: string[]): Promise<Finished> {
  const server = ['--server', box.smtp.host, '--port', `${box.smtp.port}`, '--helo', 'swaks.peer.test', '--timeout', '30s']
  return run(program!, [...server, '--from', 'sender@sender.test', ...options], { env: { HOME: box.directory } })
}
