import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'

const rules = `policy:
  preset: known
  hold_lifetime: 1 h
  rules:
    - when: { found: [secret] }
      action: refuse
    - when: { to: ['@Partner.example'] }
      action: send
`

function written(text: string): Promise<Awaited<ReturnType<typeof loadConfig>>> {
  const cwd = folder()
  writeFileSync(join(cwd, 'pillarbox.yaml'), text)
  return loadConfig({ env: {}, cwd })
}

test('the policy of the box is in its settings', async () => {
  expect((await written(rules)).policy).toEqual({
    preset: 'known',
    hold_lifetime: 3_600_000,
    digest: false,
    rules: [
      { when: { found: ['secret'] }, action: 'refuse' },
      { when: { to: ['@partner.example'] }, action: 'send' },
    ],
  })
  expect((await written('')).policy).toEqual({ preset: 'open', hold_lifetime: 3 * 86_400_000, digest: false, rules: [] })
})

test.each([
  ['an unknown preset', 'policy:\n  preset: closed\n', /pillarbox\.yaml:2:.*policy\.preset/],
  ['an unknown condition', `${rules}    - when: { too: [own] }\n      action: hold\n`, /pillarbox\.yaml:9:.*too/],
  [
    'a domain that is none',
    `${rules}    - when: { to: ['@a b'] }\n      action: hold\n`,
    /pillarbox\.yaml:9:.*@a b is neither an address/,
  ],
  [
    'a domain that there is not',
    `${rules}    - when: { to: ['ada@exmaple.con'] }\n      action: hold\n`,
    /pillarbox\.yaml:9:.*ada@exmaple\.con is of no known domain: there is no top-level domain con, neither public nor for networks of one's own \([^)]+\)\.$/m,
  ],
  [
    'a contradiction',
    `${rules}    - when: { found: [secret] }\n      action: hold\n`,
    /pillarbox\.yaml:9:.*rules\.2 contradicts rules\.0/,
  ],
])('%s is refused with its line', async (_what, text, message) => {
  await expect(written(text)).rejects.toThrow(message)
})

test.each(['bank.co.uk', 'shop.example', 'mx.home.arpa', 'files.lan', 'wiki.internal', 'bücher.みんな', 'a.github.io'])(
  'a rule may name %s',
  async (domain) => {
    await expect(written(`${rules}    - when: { to: ['@${domain}'] }\n      action: hold\n`)).resolves.toBeDefined()
  },
)

test('it holds for every account, and a change takes effect without a restart', async () => {
  const box = await appliance({ PILLARBOX_POLICY__PRESET: 'all' })
  const { body: ada } = await box.call('POST', '/v1/identities', {})
  const path = `/v1/identities/${ada.id}/emails`
  expect((await box.call('POST', path, { to: ada.email })).body).toMatchObject({ status: 'held' })
  const config = await loadConfig({ env: { ...box.env, PILLARBOX_POLICY__PRESET: 'open' }, cwd: '/' })
  await box.app.reload(config)
  expect((await box.call('POST', path, { to: ada.email })).body).toMatchObject({ status: 'queued' })
})

test.each([
  ['a policy that is none', 'policy:\n  preset: closed\n', 'held'],
  ['a file that cannot be read', 'policy:\n  preset: [all\n', 'held'],
  ['a section that is misspelt', 'polcy:\n  preset: all\n', 'held'],
  ['a fault elsewhere', 'smtp:\n  sise: 3\n', 'queued'],
])(
  'after %s is reloaded, what a key sends is held while it is not known what the policy is to be',
  async (_what, text, status) => {
    const box = await appliance()
    const { body: ada } = await box.call('POST', '/v1/identities', {})
    const send = async (): Promise<unknown> =>
      (await box.call('POST', `/v1/identities/${ada.id}/emails`, { to: ada.email })).body['status']
    const file = join(box.directory, 'pillarbox.yaml')
    expect(await send()).toBe('queued')
    writeFileSync(file, text)
    const said = status === 'held' ? /all that keys send is held until the settings are right/ : /remain in effect\.$/
    await expect(box.app.reread()).rejects.toThrow(said)
    expect(await send()).toBe(status)
    writeFileSync(file, 'policy:\n  preset: open\n')
    await box.app.reread()
    expect(await send()).toBe('queued')
  },
)
