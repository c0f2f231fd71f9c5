import { expect, test } from 'vitest'
import { type Reporting, reporting } from '../reporting/box.ts'
import { message } from '../support/appliance.ts'
import { type Connected, connect } from '../support/mcp-clients.ts'
import { loggedIn, submit } from '../support/submission.ts'

type Any = ReturnType<typeof JSON.parse>

/** Addresses of a stranger, and spellings that might be taken for one who is known. */
const spellings = [
  'x@out.example',
  'X@OUT.EXAMPLE',
  'x+tag@out.example',
  'x@out.example.',
  'x@sub.out.example',
  'x@xn--out-hoa.example',
  '"Kim <kim@friend.example>" <x@out.example>',
  '"kim@friend.example" <x@out.example>',
  'kim@friend.example <x@out.example>',
  '<@friend.example:x@out.example>',
  'friends: kim@friend.example, x@out.example;',
  'kim@friend.example, x@out.example',
  '"kim@friend.example"@out.example',
  '"x@out.example"@friend.example',
  'x%out.example@friend.example',
  'out.example!x@friend.example',
  'kim(comment)@out.example',
  'kim@friend.example\u0000@out.example',
  'kim@friend.example\r\nRCPT TO:<x@out.example>',
  '\u212Aim@out.example',
  'k\u00ADim@friend.example',
  'k\u0131m@friend.example',
  'kim+x@friend.example',
  'kim@x.friend.example',
  'x@[127.0.0.1]',
  'x@127.0.0.1',
  'nobody@elsewhere.example',
  'bob@pillarbox.test.out.example',
  'bob@out.example@pillarbox.test',
  'mailto:x@out.example',
]

class Agent {
  readonly world: Reporting
  readonly #key: string
  readonly #mcp: Connected
  tries = 0
  /** All that it was told. */
  readonly told: string[] = []
  readonly errors: number[] = []

  private constructor(world: Reporting, key: string, mcp: Connected) {
    this.world = world
    this.#key = key
    this.#mcp = mcp
  }

  /** An agent with every scope but `holds:decide`. */
  static async begin(): Promise<Agent> {
    const world = await reporting({
      PILLARBOX_HTTP__RATE_LIMIT: '0',
      PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '0',
      PILLARBOX_OUTBOUND__RATE_PER_DOMAIN: '0',
      PILLARBOX_SUBMISSION__LISTEN: '127.0.0.1:0',
      PILLARBOX_SUBMISSION__LISTEN_TLS: '127.0.0.1:0',
      PILLARBOX_SUBMISSION__FAILED_LOGIN_DELAY: '0 ms',
    })
    const { box } = world
    for (const name of ['out.example', 'friend.example', 'elsewhere.example', 'sub.out.example', 'x.friend.example'])
      box.dns.mx(name, `mx.${name}`).a(`mx.${name}`, '127.0.0.1')
    const { body } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
    return new Agent(world, body.key, await connect('2026-07-28', `${box.url}/mcp`, body.key))
  }

  async call(method: string, path: string, input?: object, headers: Record<string, string> = {}): Promise<Any> {
    this.tries += 1
    const answer = await this.world.box.call(method, path, input, { key: this.#key, headers })
    this.#hear(answer.status, answer.body)
    return answer
  }

  async tool(name: string, given: Record<string, unknown>): Promise<void> {
    this.tries += 1
    const told = await this.#mcp.call(name, given).then(
      ({ text }) => text,
      (error: unknown) => String(error),
    )
    this.#hear(200, told)
  }

  async submit(to: string[], fields: Record<string, string> = {}): Promise<void> {
    this.tries += 1
    const { box, ada } = this.world
    const port = (door: 'starttls' | 'tls' = 'starttls'): number => box.app.submissionAddresses[door][0]!.port
    const client = await loggedIn({ box, ada, port }, { key: this.#key })
    const raw = message({ From: 'ada@pillarbox.test', To: 'kim@friend.example', Subject: 'Out', ...fields }, 'Hello.\r\n')
    this.#hear(200, await submit(client, { to, raw }))
    client.destroy()
  }

  close(): Promise<void> {
    return this.#mcp.close()
  }

  #hear(status: number, body: unknown): void {
    if (status >= 500) this.errors.push(status)
    this.told.push(typeof body === 'string' ? body : JSON.stringify(body))
  }
}

/** Every way to send to this. */
async function sendTo(agent: Agent, to: string): Promise<void> {
  const path = `/v1/identities/${agent.world.ada}/emails`
  const text = { subject: 'Out', body_text: 'Hello.' }
  await agent.call('POST', path, { to, ...text })
  await agent.call('POST', path, { to: 'kim@friend.example', cc: to, ...text })
  await agent.call('POST', path, { to: 'kim@friend.example', bcc: [to], ...text })
  await agent.call('POST', path, { to: ['kim@friend.example', to], send_at: '2026-11-20T11:00:00Z', ...text })
  await agent.call('POST', path, {
    to: 'kim@friend.example',
    reply_to: to,
    headers: { 'Resent-To': to, Bcc: to, To: to },
    ...text,
  })
  await agent.tool('send_email', { to: [to], subject: 'Out', text: 'Hello.', identity: agent.world.ada })
  if (!/[\r\n\0]/.test(to)) await agent.submit([to], { Bcc: to, 'Resent-To': to })
}

/** What might let a held message go. */
async function letGo(agent: Agent): Promise<void> {
  const { world } = agent
  const path = `/v1/identities/${world.ada}/emails`
  const hold = async (more: object = {}, headers = {}): Promise<Any> =>
    (await agent.call('POST', path, { to: 'x@out.example', subject: 'Out', body_text: 'Hello.', ...more }, headers)).body
  const email = await hold()
  const at = `${path}/${email.id}`
  for (const input of [
    { status: 'queued' },
    { status: 'scheduled' },
    { hold: null },
    { hold: { status: 'approved' } },
    { send_at: '2026-11-20T10:06:00Z' },
    { to: 'kim@friend.example' },
    { labels: { add: ['approved'] } },
    { direction: 'inbound' },
  ]) {
    await agent.call('PATCH', at, input)
    await agent.call('PUT', at, input)
  }
  for (const call of ['approve', 'release', 'retry', 'send', 'resend', 'redeliver', 'restore'])
    await agent.call('POST', `${at}/${call}`, {})
  for (const call of ['approve', 'reject']) await agent.call('POST', `/v1/holds/${email.hold.id}/${call}`, {})
  for (const call of ['read', 'decide'])
    await agent.call('POST', `/v1/hold-links/${call}`, { token: email.hold.id, decision: 'approve' })
  await agent.call('POST', `${at}/forward`, { to: 'x@out.example' })
  await agent.call('POST', `${at}/reply`, { to: 'x@out.example', body_text: 'Hello.' })
  await agent.tool('reply_email', { message_id: email.id, text: 'Hello.', forward_to: 'x@out.example', identity: world.ada })
  await agent.call('POST', `${path}/bulk`, { ids: [email.id], read: true })
  await agent.call('DELETE', at)
  await agent.call('POST', `${at}/restore`)
  const key = { 'Idempotency-Key': 'one' }
  await hold({ to: 'kim@friend.example' }, key)
  await hold({}, key)
  // what it is for the policy must not change once it was let go
  await agent.call('POST', '/v1/suppressions', { address: 'kim@friend.example' })
}

/** What might change or tell the rules. */
async function change(agent: Agent): Promise<void> {
  const { ada } = agent.world
  for (const path of ['/v1/policy', `/v1/identities/${ada}/policy`]) {
    await agent.call('GET', path)
    for (const input of [{ preset: 'open' }, { rules: [] }, { rules: [{ when: {}, action: 'send' }] }]) {
      await agent.call('PATCH', path, input)
      await agent.call('PUT', path, input)
    }
    await agent.call('DELETE', path)
  }
  for (const path of [
    '/v1/holds',
    '/v1/holds?status=all',
    '/v1/people',
    '/v1/audit?action=policy.changed',
    '/v1/whoami',
    '/v1/account',
  ])
    await agent.call('GET', path)
  for (const scopes of [['holds:decide'], ['emails:write', 'holds:decide']])
    await agent.call('POST', '/v1/api-keys', { label: 'more', scopes })
  await agent.call('POST', '/v1/people/invitations', { email: 'x@out.example', role: 'approver', password: 'none' })
  await agent.call('PATCH', '/v1/senders', { allow: ['@out.example'] })
  await agent.call('POST', `/v1/identities/${ada}/aliases`, { address: 'x@out.example' })
  await agent.call('PATCH', `/v1/identities/${ada}`, { email: 'x@out.example' })
  await agent.call('POST', '/v1/accounts', { name: 'Other', email: 'x@out.example', password: 'a password of the agent' })
}

/** Policies that let nothing go to strangers. */
const policies = [
  { preset: 'known', rules: [] },
  { preset: 'all', rules: [] },
  { preset: 'open', rules: [{ when: { to: ['new'] }, action: 'refuse' }] },
]

test('an agent with every scope but holds:decide gets nothing out that a policy keeps, nor learns what it says', async () => {
  const agent = await Agent.begin()
  const { box, sink, ada } = agent.world
  // a person knows Kim
  await box.call('PATCH', '/v1/policy', { preset: 'all' })
  await agent.call('POST', `/v1/identities/${ada}/emails`, { to: 'kim@friend.example', subject: 'First' })
  const [first] = (await box.call('GET', '/v1/holds')).body.data
  expect((await box.call('POST', `/v1/holds/${first.id}/approve`, {})).status).toBe(200)
  for (const policy of policies) {
    expect((await box.call('PATCH', '/v1/policy', policy)).status).toBe(200)
    for (const to of spellings) {
      await sendTo(agent, to)
      // a box takes a hundred open holds of an identity: they are ended as nobody decides
      for (const { id } of (await box.call('GET', '/v1/holds?limit=100')).body.data)
        await box.call('POST', `/v1/holds/${id}/reject`, {})
    }
    if (policy.preset !== 'open') await letGo(agent)
    await change(agent)
  }
  agent.world.clock.advance(2 * 3_600_000)
  await box.settled()
  await agent.close()
  expect(agent.tries).toBeGreaterThan(500)
  expect(agent.errors).toEqual([])
  expect([...new Set(sink.messages.flatMap(({ to }) => to))]).toEqual(['kim@friend.example'])
  expect(
    agent.told.filter((text) => /"preset"|"rules"|"reasons"|"rule"|@out\.example.{0,20}refuse|preset of/.test(text)),
  ).toEqual([])
}, 600_000)
