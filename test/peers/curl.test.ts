import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Appliance, message } from '../support/appliance.ts'
import { peer } from '../support/peer.ts'
import { type Finished, run } from '../support/program.ts'
import { boxWithAda, keptFor, sha } from './kept.ts'

const curl = peer('curl')
const openssl = peer('openssl')
const to = 'ada@pillarbox.test'
const mail = message({ To: to, Subject: 'Your code' }, 'Your verification code is 493817.\n\n.dot\n..two\n\n')

describe.runIf(curl !== undefined)('curl', () => {
  test('delivers a file in the clear and under both versions of TLS, and every octet is kept', async () => {
    const { box, ada } = await boxWithAda()
    const routing: [string[], RegExp][] = [
      [[], /with ESMTP id/],
      [['--ssl-reqd', '--insecure', '--tls-max', '1.2'], /\(using TLSv1\.2 .*\r\n\tby pillarbox\.test with ESMTPS id/],
      [['--ssl-reqd', '--insecure', '--tlsv1.3'], /\(using TLSv1\.3 .*\r\n\tby pillarbox\.test with ESMTPS id/],
    ]
    for (const [options, protocol] of routing) {
      expect(await upload(box, [...options, '--upload-file', file(box, mail)])).toMatchObject({ code: 0, errors: '' })
      const [kept] = await keptFor(box, ada)
      expect(sha(kept!.octets)).toBe(sha(mail))
      expect(kept!.trace).toMatch(protocol)
      expect(kept!.email).toMatchObject({ subject: 'Your code', codes: ['493817'] })
      await box.call('DELETE', `/v1/identities/${ada}/emails/${kept!.email.id}`)
    }
  })

  test('delivers what a person types when told to end lines as mail does, and is refused otherwise', async () => {
    const { box, ada } = await boxWithAda()
    const typed = mail.replaceAll('\r\n', '\n')
    const bare = await upload(box, ['-v', '--upload-file', '-'], typed)
    expect(bare.code).not.toBe(0)
    expect(bare.errors).toMatch(/^< 550 5\.6\.0 .*bare LF/m)
    expect(await upload(box, ['--crlf', '--upload-file', '-'], typed)).toMatchObject({ code: 0 })
    const kept = await keptFor(box, ada)
    expect(kept.map(({ octets }) => sha(octets))).toEqual([sha(mail)])
  })

  test('waits for a message with the API while another delivers it', async () => {
    const { box, ada } = await boxWithAda()
    const authorization = ['-H', `Authorization: Bearer ${box.key}`]
    const waiting = run(curl!, ['-sS', ...authorization, `${box.url}/v1/identities/${ada}/wait?channel=email&timeout=120`])
    expect(await upload(box, ['--upload-file', file(box, mail)])).toMatchObject({ code: 0 })
    const { code, output } = await waiting
    expect(code).toBe(0)
    expect(JSON.parse(output.toString())).toMatchObject({ timed_out: false, codes: ['493817'], item: { subject: 'Your code' } })
  })

  test('hears that there is no such mailbox', async () => {
    const { box } = await boxWithAda()
    const refused = await run(curl!, [...uploading(box, 'nobody@pillarbox.test'), '--upload-file', file(box, mail)])
    expect(refused.code).toBe(recipientFailed)
    expect(refused.errors).toContain('550')
  })
})

describe.runIf(openssl !== undefined)('openssl s_client -starttls smtp', () => {
  test.each([
    ['-tls1_2', 'TLSv1.2'],
    ['-tls1_3', 'TLSv1.3'],
  ])('speaks %s, and the session goes on under it', async (option, version) => {
    const { box } = await boxWithAda()
    const spoken = await handshake(box, [option])
    expect(spoken.code).toBe(0)
    expect(spoken.errors).toContain(`Protocol version: ${version}`)
    expect(spoken.errors).toContain('CN = pillarbox.test')
    const replies = spoken.output.toString()
    expect(replies).toMatch(/^250[- ]SIZE /m)
    expect(replies).not.toMatch(/^250[- ]STARTTLS/m)
    expect(replies).toMatch(/^221 /m)
  })

  test.each(['-tls1_1', '-tls1'])('does not get %s, even when it would take it', async (option) => {
    const { box } = await boxWithAda()
    const refused = await handshake(box, [option, '-cipher', 'ALL@SECLEVEL=0'])
    expect(refused.code).not.toBe(0)
    // the box said so, not the program itself
    expect(refused.errors).toMatch(/alert protocol version/)
  })
})

/** The exit code of curl when a command was refused. */
const recipientFailed = 55

function uploading(box: Appliance, recipient: string): string[] {
  const server = `smtp://${box.smtp.host}:${box.smtp.port}`
  return ['-sS', '--url', server, '--mail-from', 'sender@sender.test', '--mail-rcpt', recipient]
}

function upload(box: Appliance, options: string[], input = ''): Promise<Finished> {
  return run(curl!, [...uploading(box, to), ...options], { input })
}

function file(box: Appliance, raw: string): string {
  const path = join(box.directory, 'message.eml')
  writeFileSync(path, raw)
  return path
}

function handshake(box: Appliance, options: string[]): Promise<Finished> {
  const connection = ['-connect', `${box.smtp.host}:${box.smtp.port}`, '-starttls', 'smtp', '-brief', '-ign_eof']
  return run(openssl!, ['s_client', ...connection, ...options], { input: 'EHLO client.peer.test\r\nQUIT\r\n' })
}
