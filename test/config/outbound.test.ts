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
