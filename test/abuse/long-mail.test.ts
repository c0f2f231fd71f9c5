import { mailWith } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

const line = '漢"'.repeat(200)

/** Text of so many bytes in lines that may be sent. */
function text(bytes: number, end: string): string {
  const one = line + end
  return one.repeat(Math.floor(bytes / Buffer.byteLength(one)))
}

/** The longest bodies that are read, with many long links. */
function longest(): Buffer {
  const links = Array.from({ length: 90 }, (_, number) => `<a href="https://a.test/${number}/${'x'.repeat(500)}">${number}</a>`)
  const bodies = { plain: text(5_000_000, '\r\n'), html: `${links.join('\r\n')}<p>${text(4_900_000, '\r\n')}` }
  const parts = Object.entries(bodies).map(
    ([type, body]) => `--b\r\nContent-Type: text/${type}; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${body}\r\n`,
  )
  return mailWith('Subject: Long\r\nContent-Type: multipart/alternative; boundary=b', `${parts.join('')}--b--`)
}

let id = ''

/** What is done with long messages where their texts are not asked for. */
const attacks: Attack[] = [
  {
    name: 'the attachments of a message to two with the longest texts and many links',
    scopes: ['messages:read'],
    lasts: 5000,
    prepare: async (attacker) => {
      const { email } = attacker.target.identity
      await attacker.mail(longest(), undefined, [email, email.replace('@', '+tag@')])
      id = (await attacker.own('GET', '/emails')).body.data[0].id
    },
    run: (attacker) => attacker.repeat(4, () => attacker.own('GET', `/emails/${id}/attachments`)),
    answers: ['200', '429 rate_limited'],
  },
  {
    name: 'a message with the longest texts, deleted and restored over and over',
    scopes: ['messages:write', 'messages:read'],
    lasts: 8000,
    prepare: async (attacker) => {
      await attacker.mail(longest())
      id = (await attacker.own('GET', '/emails')).body.data[0].id
    },
    run: (attacker) =>
      attacker.repeat(4, async () => {
        await attacker.own('DELETE', `/emails/${id}`)
        await attacker.own('POST', `/emails/${id}/restore`)
      }),
    answers: ['200', '404 not_found', '429 rate_limited', '429 too_much_unread'],
  },
  {
    name: 'an e-mail of four megabytes to a hundred tags of its sender',
    scopes: ['emails:write'],
    lasts: 20_000,
    run: async (attacker) => {
      const to = Array.from({ length: 100 }, (_, number) => attacker.target.identity.email.replace('@', `+${number}@`))
      const body = text(2_000_000, '\n')
      await attacker.own('POST', '/emails', { body: { to, subject: 'Long', body_text: body, body_html: `<p>${body}` } })
      await attacker.hold()
    },
    answers: ['201'],
  },
]

underAttack(attacks)
