import { expect, test } from 'vitest'
import { pair, send, source } from './outgoing.ts'
import { loggedIn, office, sourceOf, submit } from '../support/submission.ts'

test('the further fields of a message are few and short enough to be a header', async () => {
  const world = await pair()
  for (const headers of [fields(101, 'x'), fields(100, 'long '.repeat(150)), fields(7, 'é'.repeat(5000))]) {
    const { status, body } = await send(world, { to: world.bob.email, headers })
    expect([status, body.error]).toMatchObject([400, { param: 'headers', code: 'headers_too_large' }])
    expect(body.error['message']).toMatch(/at most 100 fields and 65536 bytes/)
  }
  expect((await send(world, { to: world.bob.email, headers: fields(100, 'long '.repeat(100)) })).status).toBe(201)
})

test('a name that is none is repeated no further than 128 characters', async () => {
  const world = await pair()
  const { status, body } = await send(world, { to: world.bob.email, headers: { ['k'.repeat(1000)]: 'a' } })
  expect([status, body.error['param']]).toEqual([400, `headers.${'k'.repeat(127)}…`])
  expect(body.error['message']).toBe(`headers.${'k'.repeat(127)}… has a key that is not allowed.`)
})

test('nobody hears of a blind copy of a message that is sent on', async () => {
  const world = await pair()
  const { status, body } = await send(world, { to: world.bob.email, headers: { 'resent-BCC': 'secret@elsewhere.test' } })
  expect([status, body.error]).toMatchObject([400, { param: 'headers.resent-BCC', code: 'header_refused' }])
  const fine = await send(world, { to: world.bob.email, headers: { 'Resent-To': 'kim@elsewhere.test' } })
  expect(await source(world, fine.body.id)).toMatch(/^resent-to: kim@elsewhere\.test/im)

  const here = await office()
  const client = await loggedIn(here)
  const raw = 'From: ada@pillarbox.test\r\nResent-Bcc:\r\n secret@elsewhere.test\r\nResent-To: kim@elsewhere.test\r\n\r\nx\r\n'
  const id = (await submit(client, { raw })).split(' ').at(-1)!
  const octets = await sourceOf(here, id)
  expect(octets).toMatch(/^Resent-To: kim/m)
  expect(octets).not.toMatch(/secret|resent-bcc/i)
})

function fields(count: number, value: string): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, value]))
}
