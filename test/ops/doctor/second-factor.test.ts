import { expect, test } from 'vitest'
import { linesOf, patient } from '../../support/checkup.ts'
import { person, signIn, withPassword } from '../../support/people.ts'
import { generateSync } from 'otplib'

test('who signs in with a password alone is named, with what to do; a second factor that was never confirmed is none', async () => {
  const { box, clock } = await patient()
  expect(await linesOf(box, 'second_factor')).toMatchObject([{ status: 'pass', subject: 'all', fix: null }])
  await withPassword(box)
  const { body: people } = await box.call('GET', '/v1/people')
  const bare = { status: 'warn', subject: people.data[0].id, fix: expect.stringContaining('POST /v1/account/totp/confirm') }
  const [line] = await linesOf(box, 'second_factor')
  expect(line).toMatchObject(bare)
  expect(JSON.stringify(line)).not.toContain(person.email)
  const page = await signIn(box)
  const { body: begun } = await page.call('POST', '/v1/account/totp', { password: person.password })
  expect(await linesOf(box, 'second_factor')).toMatchObject([bare])
  const code = generateSync({ secret: begun['secret'] as string, epoch: Math.floor(clock.now() / 1000) })
  expect((await page.call('POST', '/v1/account/totp/confirm', { code })).status).toBe(200)
  expect(await linesOf(box, 'second_factor')).toMatchObject([{ status: 'pass', subject: 'all' }])
})
