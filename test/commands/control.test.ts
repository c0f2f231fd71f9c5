import { type IncomingMessage, request } from 'node:http'
import { chmodSync, statSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import { appliance, type Appliance } from '../support/appliance.ts'

/** What the box's own socket answers. */
async function inPerson(box: Appliance, method: string, path: string, headers: Record<string, string> = {}, body?: unknown) {
  const socketPath = join(box.env['PILLARBOX_DATA_DIR']!, 'control.sock')
  const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
  const call = request({ socketPath, method, path, headers: { Host: 'localhost', ...type, ...headers }, agent: false })
  call.end(body === undefined ? undefined : JSON.stringify(body))
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  return { status: answer.statusCode!, body: (await json(answer)) as Record<string, never> & { data: { name: string }[] } }
}

async function withGrace(): Promise<{ box: Appliance; grace: string }> {
  const box = await appliance()
  const input = { name: 'Grace', email: 'grace@example.com', password: 'a password of her own' }
  return { box, grace: (await box.app.accounts.add(input)).id }
}

test('the operator acts for the account they name, and for none that there is not', async () => {
  const { box, grace } = await withGrace()
  const made = await inPerson(box, 'POST', '/v1/identities', { 'Pillarbox-Account': grace }, { name: 'Hers' })
  expect(made.status).toBe(201)
  expect((await inPerson(box, 'GET', '/v1/identities')).body.data).toEqual([])
  const hers = await inPerson(box, 'GET', '/v1/identities', { 'Pillarbox-Account': grace })
  expect(hers.body.data.map(({ name }) => name)).toEqual(['Hers'])
  for (const nobody of [newId('acct'), 'Grace', '', `${grace}, ${grace}`]) {
    const told = await inPerson(box, 'POST', '/v1/identities', { 'Pillarbox-Account': nobody }, { name: 'Nobody’s' })
    expect([nobody, told.status, told.body['error']]).toMatchObject([nobody, 404, { type: 'not_found' }])
  }
})

test('by the ports nobody is the operator, whatever they say of themselves', async () => {
  const { box, grace } = await withGrace()
  await inPerson(box, 'POST', '/v1/identities', { 'Pillarbox-Account': grace }, { name: 'Hers' })
  const headers = { 'Pillarbox-Account': grace, 'X-Forwarded-For': 'local' }
  expect((await box.call('GET', '/v1/identities', undefined, { headers })).body.data).toEqual([])
  expect((await box.call('GET', '/v1/identities', undefined, { headers, key: null })).status).toBe(401)
  expect((await box.call('POST', '/v1/identities', {}, { headers, key: 'garbage' })).status).toBe(401)
})

test('the socket is its owner’s alone, in a directory that others may enter', async () => {
  const box = await appliance()
  const data = box.env['PILLARBOX_DATA_DIR']!
  expect(statSync(data).mode & 0o777).toBe(0o700)
  chmodSync(data, 0o777)
  await box.restart()
  expect(statSync(join(data, 'control.sock')).mode & 0o777).toBe(0o600)
})
