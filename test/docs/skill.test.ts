import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { peer } from '../support/peer.ts'
import { read } from './pages.ts'

const skill = read('skills/pillarbox/SKILL.md')
const blocks = [...skill.matchAll(/^```bash\n(.*?)^```$/gms)].map(([, code]) => code!)

test('the skill has a name that is its folder, and a description of what and when', () => {
  const [, head] = /^---\n(.*?)\n---\n/s.exec(skill)!
  const fields = Object.fromEntries(head!.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2))) as Record<string, string>
  expect(Object.keys(fields)).toEqual(['name', 'description'])
  expect(fields['name']).toBe('pillarbox')
  expect(fields['description']!.length).toBeLessThanOrEqual(1024)
  expect(fields['description']).toMatch(/Use it when/)
  expect(read('README.md')).toContain('](skills/pillarbox/SKILL.md)')
})

test('its commands do what it says', async () => {
  const [bash, curl] = [peer('bash'), peer('curl')]
  if (!bash || !curl) return
  const box = await appliance()
  const { body: identity } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: identity['id'], scopes: ['messages:read'] })
  const env = {
    ...process.env,
    PILLARBOX_URL: box.url,
    PILLARBOX_API_KEY: bound['key'] as string,
    IDENTITY: identity['id'] as string,
  }
  expect(blocks).toHaveLength(2)
  const started = await promisify(execFile)(bash, ['-euc', blocks[0]!], { env })
  expect(started.stdout).toContain(`# Pillarbox`)
  expect(started.stdout).toContain(`"email":"${identity['email']}"`)
  const waiting = promisify(execFile)(bash, ['-euc', blocks[1]!], { env })
  const raw = message({ To: identity['email'] as string, Subject: 'Code' }, 'Your code is 493817')
  // a message from before the call counts as one that was waited for only with since
  await expect.poll(() => box.app.metrics.text()).toMatch(/^pillarbox_waiting_calls 1$/m)
  expect(await deliver(box.smtp, { to: identity['email'] as string, raw })).toMatch(/^250 /)
  expect(JSON.parse((await waiting).stdout)).toMatchObject({ timed_out: false, codes: ['493817'], item: { subject: 'Code' } })
})
