import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { living } from '../outbound/outgoing.ts'
import { openAppliance } from '../support/appliance.ts'
import { freePort } from '../support/free-port.ts'
import { signIn, withPassword } from '../support/people.ts'
import { authorizationChecks, checksOf, conformance, KeyedProxy, scenarios } from './mcp-conformance.ts'

// nothing else runs meanwhile
conformance()

const proxy = await KeyedProxy.start()
const { box, close } = await openAppliance({ PILLARBOX_PUBLIC_URL: proxy.url })
afterAll(async () => {
  proxy.close()
  await close()
})
const ada = await (async () => {
  proxy.target = { port: box.app.httpAddresses.plain!.port, key: box.key }
  const { id, email } = await living(box, 'Ada')
  const scopes = ['identities:read', 'messages:read', 'messages:write']
  const { body } = await box.call('POST', '/v1/api-keys', { identity_id: id, scopes })
  proxy.target.key = body['key'] as string
  return email
})()

const revisions = ['2025-06-18', '2025-11-25', '2026-07-28']

/** Checks of a scenario that need what the box does not have, by the start of their ids. */
const beside: Record<string, Record<string, string>> = {
  'server-stateless': {
    'sep-2575-server-rejects-undeclared-capability':
      'calls test_missing_capability, a tool of the reference server; no tool here needs a capability of the client',
    'sep-2575-missing-capability-http-400': 'the same call',
  },
  caching: {
    'sep-2549-prompts-list': 'there are no prompts, and no such capability is declared',
    'sep-2549-resources': 'there are no resources, and no such capability is declared',
  },
}

/** The scenarios that are run, with the revisions for which each is. */
const applicable: Record<string, string[]> = {
  'server-initialize': ['2025-06-18', '2025-11-25'],
  'server-session-lifecycle': ['2025-06-18', '2025-11-25'],
  'server-stateless': ['2026-07-28'],
  ping: ['2025-06-18', '2025-11-25'],
  'tools-list': revisions,
  'server-sse-multiple-streams': ['2026-07-28'],
  'dns-rebinding-protection': ['2025-11-25', '2026-07-28'],
  caching: ['2026-07-28'],
  'http-header-validation': ['2026-07-28'],
  'input-required-result-unsupported-methods': ['2026-07-28'],
}

/** Why the others are not run, by the start of their names. */
const others: Record<string, string> = {
  'tools-call-':
    'calls a tool of the reference server (test_simple_text, test_image_content …); test/mcp calls every tool of the box',
  'json-schema-2020-12': 'looks at the schema of a tool of the reference server (json_schema_2020_12_tool)',
  'http-custom-header-server-validation': 'needs a tool whose arguments are header fields (x-mcp-header): none here is',
  'server-sse-polling': 'calls test_reconnection, a tool of the reference server, in a session; there are no sessions',
  'input-required-result-': 'calls tools of the reference server that ask back; no tool here asks its client for anything',
  'elicitation-': 'the same, by elicitation',
  'logging-set-level': 'the box sends no log lines to clients, and declares no such capability',
  'completion-complete': 'nothing is completed, and no such capability is declared',
  'resources-': 'there are no resources, and no such capability is declared',
  'sep-2164-resource-not-found': 'the same',
  'prompts-': 'there are no prompts, and no such capability is declared',
  'tasks-': 'an extension that the box does not have: the longest call, wait_for_message, takes 50 s',
  'sep-2640-': 'an extension that the box does not have (skills)',
}

function reasonFor(name: string, reasons: Record<string, string> = {}): string | undefined {
  return Object.entries(reasons).find(([start]) => name.startsWith(start))?.[1]
}

test('each scenario of the suite is run, or there is a reason why not', async () => {
  const all = await scenarios()
  expect([...all.keys()]).toEqual(expect.arrayContaining(Object.keys(applicable)))
  const left = [...all.keys()].filter((name) => applicable[name] === undefined && reasonFor(name, others) === undefined)
  expect(left).toEqual([])
  // of those that are run, for each revision they are for; without sessions there is one stream a request
  const omitted = Object.entries(applicable).flatMap(([name, run]) =>
    all
      .get(name)!
      .flatMap((revision) => (revisions.includes(revision) && !run.includes(revision) ? [`${name} ${revision}`] : [])),
  )
  expect(omitted).toEqual(['server-sse-multiple-streams 2025-11-25'])
})

const runs = Object.entries(applicable).flatMap(([name, run]) => run.map((revision) => [name, revision] as const))

test.each(runs)('the scenario %s passes for revision %s', async (name, revision) => {
  const checks = await checksOf(name, revision, `${proxy.url}/mcp`)
  expect(checks.length).toBeGreaterThan(0)
  const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
  expect(failed.filter(({ id }) => reasonFor(id, beside[name]) === undefined)).toEqual([])
  // a reason for what passes is none
  const reasons = Object.keys(beside[name] ?? {})
  expect(reasons.filter((start) => !failed.some(({ id }) => id.startsWith(start)))).toEqual([])
})

describe('as an authorization server', () => {
  let cookie: string
  beforeAll(async () => {
    await withPassword(box)
    ;({ cookie } = await signIn(box))
  })

  test('it describes itself, and grants a code for a token to a client that a person lets in', async () => {
    const port = await freePort()
    const redirect_uris = [`http://127.0.0.1:${port}/callback`]
    const { body: client } = await box.call('POST', '/oauth/register', { client_name: 'Suite', redirect_uris }, { key: null })
    const checks = await authorizationChecks({
      url: box.url,
      clientId: client['client_id'] as string,
      resource: `${box.url}/mcp`,
      port,
      follow: async (link) => {
        const form = new URLSearchParams(new URL(link).search)
        for (const scope of ['identities:read', 'messages:read']) form.append('scopes', scope)
        form.set('identity', ada)
        form.set('decision', 'allow')
        const headers = { Cookie: cookie, Origin: box.url, 'Content-Type': 'application/x-www-form-urlencoded' }
        const request = { method: 'POST', headers, body: form.toString(), redirect: 'manual' } as const
        const allowed = await fetch(`${box.url}/oauth/authorize`, request)
        const back = allowed.headers.get('location')!
        expect(back).toContain(redirect_uris[0])
        // the client shows its link before it listens
        const arrived = async () =>
          fetch(back).then(
            () => true,
            () => false,
          )
        await expect.poll(arrived).toBe(true)
      },
    })
    expect(checks.map(({ id, status }) => `${id} ${status}`).toSorted()).toEqual([
      'authorization-code-grant SUCCESS',
      'authorization-server-metadata SUCCESS',
      'authorization-server-metadata-cimd SUCCESS',
    ])
  })
})
