import { withFiles } from '../support/documents.ts'
import { hostile } from '../support/hostile-documents.ts'
import type { Attacker } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'
import { deliver } from '../support/appliance.ts'

/** Attachments that choose how much time and memory it takes to read their text. */
const attacks: Attack[] = [
  ...hostile.map(({ name, content, answer, isLong }): Attack => ({
    name: `the text of ${name}, asked for eight times at once`,
    scopes: ['messages:read'],
    lasts: 1000,
    prepare: async (attacker) => mail(attacker, [await content()]),
    run: async (attacker) => {
      const path = await place(attacker)
      await Promise.all(Array.from({ length: 8 }, () => attacker.own('GET', `${path}/0/text`)))
    },
    answers: [
      answer.startsWith('attachment_') ? `400 ${answer}` : '200',
      // on a slow machine it takes more than its time
      ...(isLong ? ['400 attachment_too_large_for_text'] : []),
      '429 too_much_at_once',
    ],
  })),
  {
    name: 'the texts of all hostile attachments, one after the other and many at once',
    scopes: ['messages:read'],
    lasts: 20_000,
    prepare: async (attacker) => {
      const small = await Promise.all(hostile.map(async ({ content }) => content()))
      for (const content of small) if (content.length < 4_000_000) await mail(attacker, [content])
    },
    run: async (attacker) => {
      const { body } = await attacker.own('GET', '/emails?limit=100', { quiet: true })
      const ids: string[] = body.data.map(({ id }: { id: string }) => id)
      await attacker.repeat(20, (number) =>
        attacker.own('GET', `/emails/${ids[number % ids.length]}/attachments/0/text?offset=${number}`),
      )
    },
    answers: [
      '200',
      '400 attachment_unreadable',
      '400 attachment_too_large_for_text',
      '429 too_much_at_once',
      '429 rate_limited',
    ],
  },
]

underAttack(attacks)

async function mail(attacker: Attacker, contents: Buffer[]): Promise<void> {
  const files = contents.map((content) => ({ name: 'file', type: 'application/octet-stream', content }))
  await deliver(attacker.target.smtp, { to: attacker.target.identity.email, raw: withFiles(...files) })
}

async function place(attacker: Attacker): Promise<string> {
  const { body } = await attacker.own('GET', '/emails', { quiet: true })
  return `/emails/${body.data[0].id}/attachments`
}
