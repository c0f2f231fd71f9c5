import { describe, expect, test } from 'vitest'
import { checkedPolicy, type Departure, judge, type Policy, type Recipient, type Rule } from '../../src/core/policy.ts'
import type { Finding } from '../../src/core/policy.ts'

function to(...recipients: (Partial<Recipient> & { address: string })[]): Departure {
  return {
    channel: 'email',
    recipients: recipients.map((one) => ({ sort: 'new', isAnswered: false, ...one })),
    hasAttachments: false,
    hasLinks: false,
    found: new Set<Finding>(),
    newToday: recipients.length,
    amount: null,
  }
}

const stranger = { address: 'x@stranger.example' }
const friend = { address: 'ada@friend.example', sort: 'known' } as const
const own = { address: 'bob@pillarbox.test', sort: 'own' } as const
const card: Departure = { ...to(), channel: 'card', amount: 5000, newToday: 0 }
const login: Departure = { ...to(), channel: 'login', newToday: 0, isKnownPlace: false }
const knownLogin: Departure = { ...login, isKnownPlace: true }

/** What each policy does with each message, written by hand. */
const table: [what: string, policy: Policy, departure: Departure, action: string][] = [
  ['open sends all', { preset: 'open', rules: [] }, to(stranger), 'send'],
  ['open reveals cards', { preset: 'open', rules: [] }, card, 'send'],
  ['known sends to own and known', { preset: 'known', rules: [] }, to(own, friend), 'send'],
  ['known holds for one who is new', { preset: 'known', rules: [] }, to(friend, stranger), 'hold'],
  ['known holds cards', { preset: 'known', rules: [] }, card, 'hold'],
  ['open reveals logins', { preset: 'open', rules: [] }, login, 'send'],
  ['known holds a login of a new place', { preset: 'known', rules: [] }, login, 'hold'],
  ['known reveals a login of a known place', { preset: 'known', rules: [] }, knownLogin, 'send'],
  ['all holds a login of a known place too', { preset: 'all', rules: [] }, knownLogin, 'hold'],
  ['a login is to nobody', { preset: 'open', rules: [{ when: { to: ['new'] }, action: 'refuse' }] }, login, 'send'],
  [
    'a rule for logins comes first',
    { preset: 'open', rules: [{ when: { channel: ['login'] }, action: 'hold' }] },
    knownLogin,
    'hold',
  ],
  [
    'a rule for cards is for no login',
    { preset: 'open', rules: [{ when: { channel: ['card'] }, action: 'hold' }] },
    login,
    'send',
  ],
  ['all holds even one’s own', { preset: 'all', rules: [] }, to(own), 'hold'],
  ['a rule comes before the preset', { preset: 'all', rules: [{ when: { to: ['own'] }, action: 'send' }] }, to(own), 'send'],
  [
    'the strictest recipient wins',
    { preset: 'open', rules: [{ when: { to: ['new'] }, action: 'refuse' }] },
    to(own, stranger, friend),
    'refuse',
  ],
  [
    'the first rule wins',
    {
      preset: 'open',
      rules: [
        { when: { to: ['@friend.example'] }, action: 'send' },
        { when: {}, action: 'hold' },
      ],
    },
    to(friend),
    'send',
  ],
  [
    'a domain is not its subdomain',
    { preset: 'all', rules: [{ when: { to: ['@friend.example'] }, action: 'send' }] },
    to({ address: 'a@sub.friend.example' }),
    'hold',
  ],
  [
    'a domain is not the end of another',
    { preset: 'all', rules: [{ when: { to: ['@friend.example'] }, action: 'send' }] },
    to({ address: 'a@notfriend.example' }),
    'hold',
  ],
  ['an address', { preset: 'all', rules: [{ when: { to: ['ada@friend.example'] }, action: 'send' }] }, to(friend), 'send'],
  [
    'a verified reply',
    { preset: 'all', rules: [{ when: { reply: 'verified' }, action: 'send' }] },
    to({ ...friend, isAnswered: true }),
    'send',
  ],
  ['no reply', { preset: 'all', rules: [{ when: { reply: 'verified' }, action: 'send' }] }, to(friend), 'hold'],
  [
    'attachments',
    { preset: 'open', rules: [{ when: { attachments: true }, action: 'hold' }] },
    { ...to(own), hasAttachments: true },
    'hold',
  ],
  ['no attachments', { preset: 'open', rules: [{ when: { attachments: true }, action: 'hold' }] }, to(own), 'send'],
  ['links', { preset: 'open', rules: [{ when: { links: true }, action: 'hold' }] }, { ...to(own), hasLinks: true }, 'hold'],
  [
    'found',
    { preset: 'open', rules: [{ when: { found: ['secret', 'card'] }, action: 'refuse' }] },
    { ...to(own), found: new Set<Finding>(['card']) },
    'refuse',
  ],
  [
    'something else found',
    { preset: 'open', rules: [{ when: { found: ['secret'] }, action: 'refuse' }] },
    { ...to(own), found: new Set<Finding>(['code']) },
    'send',
  ],
  [
    'what cannot be scanned is held',
    { preset: 'open', rules: [{ when: { found: ['secret'] }, action: 'send' }] },
    { ...to(own), found: null },
    'hold',
  ],
  [
    '… or refused, where that is the rule',
    { preset: 'open', rules: [{ when: { found: ['secret'] }, action: 'refuse' }] },
    { ...to(own), found: null },
    'refuse',
  ],
  ['as many as allowed', { preset: 'open', rules: [{ when: { recipients_over: 2 }, action: 'hold' }] }, to(own, friend), 'send'],
  ['one more', { preset: 'open', rules: [{ when: { recipients_over: 2 }, action: 'hold' }] }, to(own, friend, stranger), 'hold'],
  [
    'few new ones today',
    { preset: 'open', rules: [{ when: { new_per_day_over: 5 }, action: 'hold' }] },
    { ...to(stranger), newToday: 5 },
    'send',
  ],
  [
    'many new ones today',
    { preset: 'open', rules: [{ when: { new_per_day_over: 5 }, action: 'hold' }] },
    { ...to(stranger), newToday: 6 },
    'hold',
  ],
  ['another channel', { preset: 'open', rules: [{ when: { channel: ['sms'] }, action: 'refuse' }] }, to(stranger), 'send'],
  ['a small amount', { preset: 'open', rules: [{ when: { amount_over: 5000 }, action: 'hold' }] }, card, 'send'],
  ['a large amount', { preset: 'open', rules: [{ when: { amount_over: 4999 }, action: 'hold' }] }, card, 'hold'],
  [
    'a login has no text',
    { preset: 'open', rules: [{ when: { found: ['secret'] }, action: 'refuse' }] },
    { ...login, found: null },
    'send',
  ],
  [
    'a card has no text',
    { preset: 'open', rules: [{ when: { found: ['secret'] }, action: 'refuse' }] },
    { ...card, found: null },
    'send',
  ],
  ['a card is to nobody', { preset: 'open', rules: [{ when: { to: ['new'] }, action: 'refuse' }] }, card, 'send'],
]

test.each(table)('%s', (_what, policy, departure, action) => {
  expect(judge(policy, departure).action).toBe(action)
})

describe('a policy is refused, with the place of the rule, when', () => {
  const wrong: [string, Rule[], param: string, message: RegExp][] = [
    [
      'a rule contradicts another',
      [
        { when: { to: ['own'] }, action: 'send' },
        { when: { to: ['own'] }, action: 'hold' },
      ],
      'rules.1',
      /contradicts rules\.0/,
    ],
    [
      'a rule repeats another',
      [
        { when: { links: true }, action: 'hold' },
        { when: { links: true }, action: 'hold' },
      ],
      'rules.1',
      /repeats rules\.0/,
    ],
    [
      'a rule comes after one for everything',
      [
        { when: {}, action: 'hold' },
        { when: { links: true }, action: 'send' },
      ],
      'rules.1',
      /never matches/,
    ],
    ['a card has recipients', [{ when: { channel: ['card'], to: ['new'] }, action: 'hold' }], 'rules.0.when.to', /never matches/],
    [
      'a message has an amount',
      [{ when: { amount_over: 1, attachments: true }, action: 'hold' }],
      'rules.0.when.amount_over',
      /never matches/,
    ],
    [
      'one who is new is answered',
      [{ when: { to: ['new'], reply: 'verified' }, action: 'hold' }],
      'rules.0.when.reply',
      /never matches/,
    ],
    [
      'one before it is for smaller amounts too',
      [
        { when: { amount_over: 100 }, action: 'hold' },
        { when: { amount_over: 500 }, action: 'refuse' },
      ],
      'rules.1',
      /never matches: rules\.0/,
    ],
    [
      'one before it is for the whole domain',
      [
        { when: { to: ['@friend.example', 'own'] }, action: 'send' },
        { when: { to: ['ada@friend.example'], links: true }, action: 'hold' },
      ],
      'rules.1',
      /never matches: rules\.0/,
    ],
    [
      'one before it is for each sort of recipient',
      [
        { when: { to: ['own', 'known', 'new'] }, action: 'hold' },
        { when: { to: ['@friend.example'] }, action: 'send' },
      ],
      'rules.1',
      /never matches: rules\.0/,
    ],
    [
      'one before it is for each channel',
      [
        { when: { channel: ['email', 'sms', 'card', 'login'] }, action: 'hold' },
        { when: { links: true }, action: 'send' },
      ],
      'rules.1',
      /never matches: rules\.0/,
    ],
    [
      'it says the opposite in another order',
      [
        { when: { to: ['own', 'new'] }, action: 'hold' },
        { when: { to: ['new', 'own'] }, action: 'send' },
      ],
      'rules.1',
      /contradicts rules\.0/,
    ],
    [
      'an e-mail goes to a number',
      [{ when: { channel: ['email'], to: ['+15550100123'] }, action: 'hold' }],
      'rules.0.when.to',
      /never matches/,
    ],
    [
      'a text message goes to an address',
      [{ when: { channel: ['sms'], to: ['@a.example'] }, action: 'hold' }],
      'rules.0.when.to',
      /never matches/,
    ],
    ['a domain is one word', [{ when: { to: ['new', 'everyone'] }, action: 'hold' }], 'rules.0.when.to.1', /neither/],
    ['a domain is none', [{ when: { to: ['@not a domain'] }, action: 'hold' }], 'rules.0.when.to.0', /neither an address/],
    ['a number is none', [{ when: { to: ['555 0100'] }, action: 'hold' }], 'rules.0.when.to.0', /not a number/],
  ]
  test.each(wrong)('%s', (_what, rules, param, message) => {
    expect(() => checkedPolicy({ preset: 'open', rules })).toThrow(
      expect.objectContaining({ type: 'invalid_request', param, message: expect.stringMatching(message) }),
    )
  })
})

test('a rule that another does not cover stays', () => {
  const rules: Rule[] = [
    { when: { amount_over: 500 }, action: 'refuse' },
    { when: { amount_over: 100 }, action: 'hold' },
    { when: { to: ['ada@friend.example'] }, action: 'hold' },
    { when: { to: ['@friend.example'] }, action: 'send' },
    { when: { found: ['secret'], links: true }, action: 'refuse' },
    { when: { found: ['secret', 'card'] }, action: 'hold' },
    { when: { to: ['own', 'known', 'new'] }, action: 'hold' },
    { when: { channel: ['card', 'login'] }, action: 'hold' },
  ]
  expect(checkedPolicy({ preset: 'open', rules }).rules).toEqual(rules)
})

test('of a hundred thousand policies and messages each is judged as by a plain reading of its rules', () => {
  let seed = 1
  const pick = <T>(from: readonly T[]): T => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
    return from[(seed >> 8) % from.length]!
  }
  const maybe = <T>(value: T): T | undefined => (pick([0, 1, 2]) === 0 ? value : undefined)
  const someone = (): Recipient => ({
    address: pick(['a@one.example', 'b@one.example', 'c@two.example']),
    sort: pick(['own', 'known', 'new'] as const),
    isAnswered: pick([true, false, false]),
  })
  const count = { send: 0, hold: 0, refuse: 0 }
  for (let number = 0; number < 100_000; number += 1) {
    const rules = Array.from({ length: pick([0, 1, 2, 5]) }, (): Rule => {
      const when = {
        channel: maybe([pick(['email', 'sms', 'card'] as const)]),
        to: maybe([pick(['own', 'known', 'new', '@one.example', 'c@two.example'])]),
        reply: maybe('verified' as const),
        attachments: maybe(pick([true, false])),
        links: maybe(pick([true, false])),
        found: maybe([pick(['secret', 'card'] as const)]),
        recipients_over: maybe(pick([0, 1, 2])),
        new_per_day_over: maybe(pick([0, 2])),
        amount_over: maybe(pick([0, 100])),
      }
      const given = Object.fromEntries(Object.entries(when).filter(([, value]) => value !== undefined)) as Rule['when']
      return { when: given, action: pick(['send', 'hold', 'refuse'] as const) }
    })
    const policy: Policy = { preset: pick(['open', 'known', 'all'] as const), rules }
    const channel = pick(['email', 'sms', 'card'] as const)
    const recipients = channel === 'card' ? [] : Array.from({ length: channel === 'sms' ? 1 : pick([1, 2, 3]) }, someone)
    const departure: Departure = {
      channel,
      recipients,
      hasAttachments: channel === 'email' && pick([true, false]),
      hasLinks: channel !== 'card' && pick([true, false]),
      found: channel === 'card' ? new Set() : pick([null, new Set<Finding>(), new Set<Finding>(['secret'])]),
      newToday: pick([0, 1, 3]),
      amount: channel === 'card' ? pick([null, 50, 500]) : null,
    }
    const expected = plainly(policy, departure)
    count[expected] += 1
    expect([number, judge(policy, departure).action]).toEqual([number, expected])
  }
  for (const times of Object.values(count)) expect(times).toBeGreaterThan(5000)
})

/** The same, said as the documentation says it: without thinking of speed. */
function plainly(policy: Policy, departure: Departure): 'send' | 'hold' | 'refuse' {
  const said = (departure.channel === 'card' ? [undefined] : departure.recipients).map((recipient) => {
    for (const { when, action } of policy.rules) {
      const holds = [
        when.channel === undefined || when.channel.includes(departure.channel),
        when.found === undefined || departure.channel !== 'card',
        when.to === undefined ||
          (recipient !== undefined &&
            when.to.some((entry) => [recipient.sort, recipient.address, `@${recipient.address.split('@')[1]}`].includes(entry))),
        when.reply === undefined || recipient?.isAnswered === true,
        when.attachments === undefined || when.attachments === departure.hasAttachments,
        when.links === undefined || when.links === departure.hasLinks,
        when.recipients_over === undefined || departure.recipients.length > when.recipients_over,
        when.new_per_day_over === undefined || departure.newToday > when.new_per_day_over,
        when.amount_over === undefined || (departure.amount ?? -1) > when.amount_over,
      ]
      if (holds.includes(false)) continue
      if (when.found === undefined) return action
      if (departure.found === null) return action === 'refuse' ? 'refuse' : 'hold'
      if (when.found.some((kind) => departure.found!.has(kind))) return action
    }
    if (policy.preset === 'all') return 'hold'
    if (policy.preset === 'known') return recipient === undefined || recipient.sort === 'new' ? 'hold' : 'send'
    return 'send'
  })
  return said.includes('refuse') ? 'refuse' : said.includes('hold') ? 'hold' : 'send'
}
