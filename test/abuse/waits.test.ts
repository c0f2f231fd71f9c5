import { setTimeout as sleep } from 'node:timers/promises'
import { address, type Attacker, mailWith } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

const calls = 480

/** So many calls that wait for a message; resolves when they have arrived. */
async function wait(attacker: Attacker, query: (number: number) => string): Promise<void> {
  for (let number = 0; number < calls; number += 1) {
    void attacker.own('GET', `/wait?timeout=120&${query(number)}`, { from: address(number % 20) })
    if (number % 50 === 49) await sleep(100)
  }
  await sleep(1500)
}

/** A field of encoded words, whose lines are short. */
const words = (count: number): string =>
  Array(count)
    .fill(`=?utf-8?Q?${'a'.repeat(60)}?=`)
    .join('\r\n ')

/** The start of a mail whose name of the sender is long. */
const named = `Subject: x\r\nFrom: ${words(800)} <mallory@attacker.test>`

/** Almost found at each place of a text of the same letter; another for each number. */
const dear = (length: number, number = 0): string =>
  `${'a'.repeat(17)}${String(number).padStart(4, '0')}${'a'.repeat(length - 21)}`

const body = (character: string, count = 280): string => {
  const lines = `${character.repeat(300)}\r\n`.repeat(count)
  const part = (type: string): string => `--b\r\nContent-Type: text/${type}; charset=utf-8\r\n\r\n${lines}\r\n`
  return `${part('plain')}${part('html')}--b--`
}

/** What the holder of a key does by calls that wait for messages. */
const attacks: Attack[] = [
  ...[
    { what: 'names', head: named, query: (number: number) => `from=${dear(320, number)}` },
    { what: 'subjects', head: `Subject: ${words(70)}`, query: (number: number) => `subject_contains=${dear(998, number)}` },
  ].map(({ what, head, query }): Attack => ({
    name: `waits whose filters take long to compare with long ${what}`,
    scopes: ['messages:read'],
    lasts: 8000,
    run: async (attacker) => {
      await wait(attacker, query)
      for (let mails = 0; mails < 3; mails += 1) {
        await attacker.mail(mailWith(head, 'x'))
        await sleep(500)
      }
    },
    answers: ['250'],
  })),
  {
    name: 'searches of waits through sixty mails with long names',
    scopes: ['messages:read'],
    lasts: 3000,
    prepare: async (attacker) => {
      for (let mails = 0; mails < 60; mails += 1) await attacker.mail(mailWith(named, 'x'))
    },
    run: (attacker) =>
      attacker.repeat(16, () => attacker.own('GET', `/wait?timeout=0&since=2026-01-01T00:00:00Z&from=${dear(320)}`)),
    answers: ['200', '429 rate_limited'],
  },
  {
    name: 'a hundred waits that look through 26 mails with more than an event holds',
    scopes: ['messages:read'],
    lasts: 4000,
    prepare: async (attacker) => {
      const long = `漢${body('a', 970)}`
      for (let mails = 0; mails < 26; mails += 1) {
        await attacker.mail(mailWith(`Subject: ${mails}\r\nContent-Type: multipart/alternative; boundary=b`, long))
      }
    },
    run: (attacker) => attacker.repeat(100, () => attacker.own('GET', `/wait?timeout=1&since=2026-01-01T00:00:00Z&from=nobody`)),
    answers: ['200', '429 rate_limited'],
  },
  {
    name: 'waits that all get one long mail',
    scopes: ['messages:read'],
    lasts: 20_000,
    run: async (attacker) => {
      await wait(attacker, () => 'spam=true')
      await attacker.mail(mailWith('Subject: x\r\nContent-Type: multipart/alternative; boundary=b', body('漢')))
      while (!attacker.signal.aborted && (attacker.answers.get('200') ?? 0) < calls) await sleep(50)
    },
    answers: ['250', '200'],
  },
]

underAttack(attacks)
