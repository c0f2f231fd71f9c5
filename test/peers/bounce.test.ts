import { describe, expect, test, vi } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import { absent, peer } from '../support/peer.ts'
import { rows, sent } from '../support/sent.ts'
import { boxWithAda } from './kept.ts'
import { Postfix } from './postfix.ts'

const master = peer('master', 'apt-get install postfix')
const isRoot = process.getuid?.() === 0
if (!isRoot) absent('postfix', 'Postfix starts only as root')
const possible = isRoot && master !== undefined && peer('setpriv', 'apt-get install util-linux') !== undefined

/** It hosts mailboxes, and takes mail for everybody in their domain before it looks whether they are there. */
const hosting = `virtual_mailbox_domains = away.test
virtual_mailbox_maps = inline:{ { bob@away.test=bob } }
virtual_mailbox_base = /nonexistent
virtual_minimum_uid = 1
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
smtpd_reject_unlisted_recipient = no
`

describe.runIf(possible)('Postfix that takes a message and then bounces it', { timeout: 60_000 }, () => {
  test('marks the recipients that its own reports are about, and no other', async () => {
    const { box, ada } = await boxWithAda()
    // the port is kept over the restart
    box.env['PILLARBOX_SMTP__LISTEN'] = `${box.smtp.host}:${box.smtp.port}`
    const to = ['gone@away.test', 'ada@pillarbox.test', 'full@away.test', 'nobody@pillarbox.test']
    const mail = await sent(box, { id: ada, email: 'ada@pillarbox.test' }, to)
    const postfix = await Postfix.start(master!, box.smtp, { more: hosting })
    // as our courier does: one transaction for each recipient, under a return path of its own
    for (const [index, recipient] of to.entries())
      await postfix.take({ from: mail.paths[index]!, to: [recipient], raw: mail.raw })

    const read = async (): Promise<Email> => (await box.call<Email>('GET', `/v1/identities/${ada}/emails/${mail.id}`)).body
    await vi.waitFor(
      async () => {
        const count = (await read()).deliveries.filter(({ status }) => status === 'bounced').length
        if (count < 3) throw new Error(`${count} of 3 bounces came:\n${postfix.log}`)
      },
      { timeout: 100_000, interval: 50 },
    )
    expect(postfix.log.match(/status=bounced/g)).toHaveLength(3)
    expect((await read()).deliveries).toMatchObject([
      {
        recipient: to[0],
        status: 'bounced',
        smtp_code: null,
        enhanced_code: '5.1.1',
        response: 'unknown user: "gone@away.test" (reported by relay.peer.test)',
      },
      { recipient: to[1], status: 'delivered', response: '250 2.0.0 Ok' },
      {
        recipient: to[2],
        status: 'bounced',
        smtp_code: null,
        enhanced_code: '5.2.2',
        response: 'The mailbox is over its quota (reported by relay.peer.test)',
      },
      {
        recipient: to[3],
        status: 'bounced',
        smtp_code: 550,
        enhanced_code: '5.1.1',
        response: expect.stringMatching(/^550 5\.1\.1 No such mailbox here/),
      },
    ])
    const { body: events } = await box.call('GET', `/v1/identities/${ada}/events?type=email.bounced`)
    const bounced = events.data.map((event) => event.data.delivery.recipient as string)
    expect(new Set(bounced)).toEqual(new Set([to[0], to[2], to[3]]))
    expect(bounced).toHaveLength(3)
    const { body: suppressions } = await box.call('GET', '/v1/suppressions')
    const refused = suppressions.data.map(({ email, source }) => `${source as string} ${email as string}`)
    expect(new Set(refused)).toEqual(new Set([`bounce ${to[0]}`, `bounce ${to[3]}`]))
    // the one that came for her; no bounce is mail of hers
    const { body: inbox } = await box.call('GET', `/v1/identities/${ada}/emails`)
    expect(inbox.data.map(({ subject }) => subject)).toEqual(['Figures'])
    expect(rows(box, 'SELECT count(*) AS count FROM deliveries_queue')).toMatchObject([{ count: 0 }])
    expect(postfix.log).not.toMatch(/(?:warning|fatal|panic): /)
  })
})
