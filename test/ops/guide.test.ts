import { expect, test } from 'vitest'
import { type Appliance, appliance } from '../support/appliance.ts'

interface Example {
  method: string
  path: string
  body: string | undefined
  status: number
  response: unknown
}

/** The calls of the page with the responses that it shows. */
function examplesOf(page: string): Example[] {
  return [...page.matchAll(/^(GET|POST) (\S+)(?: (\{.*\}))?\n(\d{3}) (.+)$/gm)].map(
    ([, method, path, body, status, response]) => ({
      method: method!,
      path: path!,
      body,
      status: Number(status),
      response: JSON.parse(response!.replaceAll('[…]', '"…"')) as unknown,
    }),
  )
}

/** Fails unless the page shows what was answered; keeps the values that it gives names to. */
function compare(shown: unknown, answered: unknown, names: Map<string, string>, place: string): void {
  if (typeof shown === 'string') {
    const name = /^\{(\w+)\}$/.exec(shown)?.[1]
    if (name !== undefined) {
      expect([place, typeof answered]).toEqual([place, 'string'])
      names.set(name, answered as string)
    } else if (shown === '…') expect([place, answered === undefined]).toEqual([place, false])
    else if (shown.endsWith('…')) expect([place, (answered as string).startsWith(shown.slice(0, -1))]).toEqual([place, true])
    else expect([place, answered]).toEqual([place, shown])
  } else if (typeof shown === 'object' && shown !== null) {
    for (const [key, value] of Object.entries(shown))
      compare(value, (answered as Record<string, unknown>)[key], names, `${place}.${key}`)
  } else if (place.endsWith('_seconds')) expect([place, typeof answered]).toEqual([place, 'number'])
  else expect([place, answered]).toEqual([place, shown])
}

async function guideOf(box: Appliance): Promise<string> {
  const response = await fetch(`${plainUrl(box)}/llms.txt`)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
  return response.text()
}

test('every call of the page does what the page shows, by a key as it says', async () => {
  const box = await appliance()
  const page = await guideOf(box)
  const examples = examplesOf(page)
  expect(examples.length).toBe([...page.matchAll(/^(?:GET|POST) /gm)].length)
  expect([...page.matchAll(/^\d+\. /gm)]).toHaveLength(10)
  const names = new Map<string, string>()
  const make = async (example: Example, key: string): Promise<void> => {
    const filled = (text: string): string => text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => names.get(name) ?? whole)
    const { method, path, body, status, response } = example
    const answer = await box.call(method, filled(path), body === undefined ? undefined : filled(body), { key })
    expect({ path, status: answer.status, body: answer.body }).toEqual({ path, status, body: answer.body })
    compare(response, answer.body, names, path)
  }
  const create = examples.find(({ path }) => path === '/v1/identities')!
  await make(create, box.key)
  const scopes = ['messages:read', 'messages:write', 'identities:read']
  expect(page.replaceAll('\n', ' ')).toContain('messages:read, messages:write and identities:read')
  const { body } = await box.call('POST', '/v1/api-keys', { identity_id: names.get('identity'), scopes })
  for (const example of examples.filter((one) => one !== create)) {
    const wide = example.method === 'POST' && /(?:api-keys|totp)$/.test(example.path)
    await make(example, wide ? box.key : (body['key'] as string))
  }
})

test('the page is at most 6 kB, also where the box can do little', async () => {
  for (const env of [
    { PILLARBOX_SMS__PROVIDER: 'none' },
    { PILLARBOX_PUBLIC_URL: 'https://a-box-with-a-long-name.mail.example.com' },
  ]) {
    expect(Buffer.byteLength(await guideOf(await appliance(env)))).toBeLessThanOrEqual(6000)
  }
})

test('the page says what this box can do now', async () => {
  const box = await appliance({ PILLARBOX_PUBLIC_URL: 'https://box.test', PILLARBOX_SMS__PROVIDER: 'none' })
  const page = await guideOf(box)
  expect(page).toMatch(/^# Pillarbox \S+ at https:\/\/box\.test\n/)
  expect(page).toContain('(https://box.test/docs/events.md)')
  const { body } = await box.call('GET', `${plainUrl(box)}/v1/domains`)
  const { name: domain } = body.data[0]!
  expect(page).toContain(`Addresses are at ${domain}.`)
  expect(page).toContain(`${domain} is not verified, so mail from it can be sent only to addresses on this box`)
  expect(page).toContain('Ask whoever runs this box to set the DNS records')
  expect(page).toContain('Text messages cannot be sent or received')
})

test('the page says how many are deleted, and how a token opens a socket', async () => {
  const page = await guideOf(await appliance())
  expect(page).toMatch(/^8\. .*`"delete": true`/m)
  expect(page).toContain('`url?token=`')
})

test('the links of the page lead to pages of the box', async () => {
  const box = await appliance()
  const links = [...(await guideOf(box)).matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => new URL(link!).pathname)
  expect(links.length).toBeGreaterThan(6)
  for (const path of links) expect([path, (await fetch(box.url + path, { method: 'HEAD' })).status]).toEqual([path, 200])
})

test('a refused key reads what it can do next, and whom it can ask', async () => {
  const box = await appliance()
  const { body: identity } = await box.call('POST', '/v1/identities', {})
  const { body: narrow } = await box.call('POST', '/v1/api-keys', { identity_id: identity['id'], scopes: ['messages:read'] })
  const unknown = await box.call('GET', '/v1/whoami', undefined, { key: 'pbx_unknown' })
  expect([unknown.status, unknown.body.error['message']]).toEqual([401, expect.stringContaining('Ask whoever gave it to you')])
  const lacking = await box.call('POST', '/v1/identities', {}, { key: narrow['key'] as string })
  expect([lacking.status, lacking.body.error['code']]).toEqual([403, 'insufficient_scope'])
  expect(lacking.body.error['message']).toMatch(/identities:write\. Ask whoever gave it to you .* GET \/v1\/whoami/)
  const path = await box.call('GET', '/v1/nothing', undefined)
  expect([path.status, path.body.error['message']]).toEqual([404, expect.stringContaining('/llms.txt')])
})

function plainUrl({ app }: Appliance): string {
  return `http://127.0.0.1:${app.httpAddresses.plain!.port}`
}
