import { address } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

const deep = Buffer.alloc(41_000_000, '[')
const many = Buffer.from(`{"to":[${'{},'.repeat(3_300_000)}{}]}`)
const digits = Buffer.alloc(41_000_000, '1')
digits.write('{"subject":')
const escapes = Buffer.alloc(41_000_000, '\\"')
escapes.write('{"to":"nobody@pillarbox.test","body_text":" ')
const fewer = Buffer.from(`{"to":"nobody@pillarbox.test","body_text":"${'\\"'.repeat(6_000_000)}${'a'.repeat(28_000_000)}"}`)
const key = Buffer.alloc(41_000_000, 'k')
key.write('{"to":"nobody@pillarbox.test","headers":{"')

/** Bodies whose octets are few beside the work they ask for. */
const attacks: Attack[] = [
  {
    name: '41 MB of [ as an e-mail to be sent',
    scopes: ['emails:write'],
    run: (attacker) => attacker.own('POST', '/emails', { body: deep }),
    answers: ['400 too_deep'],
  },
  {
    name: '10 MB of {}, as an e-mail to be sent',
    scopes: ['emails:write'],
    run: (attacker) => attacker.repeat(2, () => attacker.own('POST', '/emails', { body: many })),
    answers: ['400 too_many_tokens', '429 too_much_at_once', 'closed'],
  },
  {
    name: 'a number of 41 MB',
    scopes: ['emails:write'],
    run: (attacker) => attacker.repeat(2, () => attacker.own('POST', '/emails', { body: digits })),
    answers: ['400 too_much_padding', '429 too_much_at_once', '429 rate_limited', 'closed'],
  },
  {
    name: 'a text of twenty million escapes',
    scopes: ['emails:write'],
    run: (attacker) => attacker.repeat(2, () => attacker.own('POST', '/emails', { body: escapes })),
    answers: ['400 too_many_escapes', '429 too_much_at_once', '429 rate_limited', 'closed'],
  },
  {
    name: 'as many escapes as may be, in 40 MB',
    scopes: ['emails:write'],
    run: (attacker) => attacker.repeat(2, () => attacker.own('POST', '/emails', { body: fewer })),
    answers: ['201', '400 message_too_large', '409 mailbox_full', '429 too_much_at_once', '429 rate_limited', 'closed'],
  },
  {
    name: 'a name of a header field of 40 MB',
    scopes: ['emails:write'],
    run: (attacker) => attacker.repeat(2, () => attacker.own('POST', '/emails', { body: key })),
    answers: ['400 too_long_key', '429 too_much_at_once', '429 rate_limited', 'closed'],
  },
  {
    name: '1 MB of [ in place of a password, from forty addresses',
    scopes: [],
    run: (attacker) => {
      const headers = { Origin: attacker.target.url }
      const body = deep.subarray(0, 1_000_000)
      const one = (_: unknown, number: number) =>
        attacker.call('POST', '/v1/session', { body, headers, key: null, from: address(number) })
      return Promise.all(Array.from({ length: 40 }, one))
    },
    answers: ['400 body_too_large', '400 too_deep'],
  },
]

underAttack(attacks)
