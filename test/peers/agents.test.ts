import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { openPair } from '../outbound/outgoing.ts'
import { examples } from './agents/examples.ts'
import { type Script, ScriptedModel } from './agents/scripted-model.ts'
import { sharedSecret, Shop } from './agents/shop.ts'

// nothing else runs meanwhile
const directory = examples()

const { world, close } = await openPair()
const { box, bob } = world
const home = mkdtempSync(join(tmpdir(), 'pillarbox-agents-'))
const shop = new Shop(box.smtp)
const site = await shop.listen()
afterAll(async () => {
  shop.close()
  await close()
  rmSync(home, { recursive: true, force: true })
})

function first(results: string[], pattern: RegExp): string {
  for (const result of results) {
    const found = pattern.exec(result)?.[1]
    if (found !== undefined) return found
  }
  throw new Error(`${pattern} is in none of ${results.join('\n')}`)
}

/** What a model does that reads what its tools return. */
const script: Script = (results) => {
  const email = (): string => first(results, /e-mail (\S+?@[\w.-]+)/)
  const steps = [
    () => ({ tool: 'whoami', input: {} }),
    () => ({ tool: 'submit_form', input: { url: `${site}/signup`, fields: { email: email() } } }),
    () => ({ tool: 'wait_for_message', input: { from: 'shop.test', timeout: 20 } }),
    () => ({
      tool: 'submit_form',
      input: { url: `${site}/verify`, fields: { email: email(), code: first(results, /codes: (\d{6})/) } },
    }),
    () => ({ tool: 'one_time_password', input: { service: 'Shop' } }),
    () => ({
      tool: 'submit_form',
      input: { url: `${site}/login`, fields: { email: email(), otp: first(results, /code: (\d{6}), for/) } },
    }),
    () => ({ tool: 'list_messages', input: { query: `from:${bob.email}` } }),
    () => ({ tool: 'read_message', input: { id: first(results.slice(6), /(email_\w+)/) } }),
    () => ({
      tool: 'reply_email',
      input: { message_id: first(results.slice(6), /(email_\w+)/), text: 'Yes, the shop let me in.', idempotency_key: 'answer' },
    }),
  ]
  return steps[results.length]?.() ?? { text: results.at(-1)!.includes('queued') ? 'Done.' : `Not done: ${results.join('\n')}` }
}

test.each(['vercel-ai', 'langchain', 'openai-agents', 'claude-agent'])(
  'the example %s signs up, reads the code, logs in and answers a mail',
  async (name) => {
    const { body: agent } = await box.call('POST', '/v1/identities', { name })
    const email = agent['email'] as string
    const scopes = ['identities:read', 'messages:read', 'messages:write']
    const { body: made } = await box.call('POST', '/v1/api-keys', { identity_id: agent['id'], scopes })
    await box.call('POST', `/v1/identities/${agent['id']}/totp`, { secret: sharedSecret, service_name: 'Shop' })
    const question = { to: email, subject: 'Does the shop work?', body_text: 'Could you sign in?' }
    expect((await box.call('POST', `/v1/identities/${bob.id}/emails`, question)).status).toBe(201)
    await box.settled()

    const model = new ScriptedModel(script)
    const url = await model.listen()
    const task = `Sign up at ${site} with your e-mail address, sign in there with your one-time password, then answer what Bob asks by mail.`
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      PILLARBOX_URL: box.url,
      PILLARBOX_API_KEY: made['key'] as string,
      MODEL_URL: `${url}/v1`,
      MODEL: 'scripted',
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }
    const { stdout } = await promisify(execFile)(process.execPath, [join(directory, `${name}.mjs`), task], {
      cwd: directory,
      env,
      timeout: 120_000,
    }).finally(() => model.close())

    expect(stdout.trim()).toBe('Done.')
    expect(model.offered.length).toBeGreaterThanOrEqual(13)
    expect(shop.signedIn).toContain(email)
    await box.settled()
    const { body: inbox } = await box.call('GET', `/v1/identities/${bob.id}/emails?include=body&limit=200`)
    const answer = inbox.data.find((row) => row.from === email || String(row.from).includes(email))!
    expect(answer.subject).toBe('Re: Does the shop work?')
    expect(answer.body_text).toContain('Yes, the shop let me in.')
  },
)
