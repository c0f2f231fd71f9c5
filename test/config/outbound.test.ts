import { expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../src/config.ts'

test.each([
  [{ USER: 'box' }, 'PILLARBOX_OUTBOUND__RELAY__PASSWORD', 'is required with a user'],
  [{ PASSWORD: 'secret-word' }, 'PILLARBOX_OUTBOUND__RELAY__USER', 'is required with a password'],
])('a relay with %j could not log in, and the start says so', async (fields, name, why) => {
  const relay = Object.entries({ HOST: 'smtp.example.net', ...fields }).map(([key, value]) => [
    `PILLARBOX_OUTBOUND__RELAY__${key}`,
    value,
  ])
  const failure = await loadConfig({ env: Object.fromEntries(relay) as Record<string, string>, cwd: '/' }).catch(
    (error: unknown) => error,
  )
  const problems = failure instanceof ConfigError ? failure.message : 'it is taken'
  expect(problems).toContain(why)
  expect(problems).toMatch(new RegExp(`${name}|outbound\\.relay\\.${name.split('__').at(-1)!.toLowerCase()}`))
  expect(problems).not.toContain('secret-word')
})

test('unverified domains can be permitted to use a relay only where there is one that is used', async () => {
  const permitted = { PILLARBOX_OUTBOUND__UNVERIFIED_DOMAINS: 'relay' }
  const relay = { PILLARBOX_OUTBOUND__RELAY__HOST: 'smtp.example.net' }
  // a relay that the mode does not use sends nothing
  for (const env of [permitted, { ...permitted, ...relay }, { ...permitted, PILLARBOX_OUTBOUND__MODE: 'none' }]) {
    const failure: unknown = await loadConfig({ env, cwd: '/' }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(ConfigError)
    expect(String(failure)).toMatch(
      /PILLARBOX_OUTBOUND__UNVERIFIED_DOMAINS: can be relay only if mail goes through a relay: set outbound\.mode to relay and outbound\.relay/,
    )
  }
  const env = { ...permitted, ...relay, PILLARBOX_OUTBOUND__MODE: 'relay' }
  expect((await loadConfig({ env, cwd: '/' })).outbound.unverified_domains).toBe('relay')
  expect((await loadConfig({ env: {}, cwd: '/' })).outbound.unverified_domains).toBe('refuse')
  const wrong = { ...env, PILLARBOX_OUTBOUND__UNVERIFIED_DOMAINS: 'yes' }
  await expect(loadConfig({ env: wrong, cwd: '/' })).rejects.toThrow(/UNVERIFIED_DOMAINS: must be one of refuse, relay/)
})

test('a relay with a whole login, or none, is fine', async () => {
  for (const relay of [{}, { USER: 'box', PASSWORD: 'secret-word' }, { TLS: 'none' }]) {
    const env = Object.entries({ HOST: 'smtp.example.net', ...relay }).map(([key, value]) => [
      `PILLARBOX_OUTBOUND__RELAY__${key}`,
      value,
    ])
    const { outbound } = await loadConfig({ env: Object.fromEntries(env) as Record<string, string>, cwd: '/' })
    expect(outbound.relay?.host).toBe('smtp.example.net')
  }
})

test.each(['192.0.2.25', '2001:db8::25'])('a relay without TLS may be named by its address, %s', async (address) => {
  const env = { PILLARBOX_OUTBOUND__RELAY__HOST: address, PILLARBOX_OUTBOUND__RELAY__TLS: 'none' }
  const { outbound } = await loadConfig({ env, cwd: '/' })
  expect(outbound.relay).toMatchObject({ host: address, tls: 'none' })
})
