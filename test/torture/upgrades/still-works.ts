import { codeAt } from '../box/code.ts'
import type { RunningBox } from '../box/world.ts'
import { made, reply } from './caller.ts'
import { audience, type Filled, jobEnd, type Person } from './fill.ts'

/** Uses what was stored by a release: one sentence for each thing that does not work any more. */
export async function faultsOfUse(box: RunningBox, filled: Filled): Promise<string[]> {
  return [
    ...(await faultsOfSecrets(box, filled)),
    ...(filled.person === undefined ? [] : await faultsOfPerson(box, filled.person)),
    ...(await faultsOfCalls(box, filled)),
    ...(await faultsOfExport(box)),
  ]
}

async function faultsOfSecrets(box: RunningBox, { passwords, cards, logins }: Filled): Promise<string[]> {
  const faults: string[] = []
  for (const { path, secret } of passwords) {
    const right = codesOf(secret)
    const { status, body } = await reply(box, 'GET', path)
    if (![...right, ...codesOf(secret)].includes(String(body['code']))) faults.push(`${path}: ${status} ${JSON.stringify(body)}`)
  }
  for (const { id, encrypted_data } of cards) {
    const { status, body } = await reply(box, 'POST', `/v1/cards/${id}/reveal`, { body: {} })
    if (body['encrypted_data'] !== encrypted_data)
      faults.push(`the card ${id} reveals other data: ${status} ${JSON.stringify(body).slice(0, 200)}`)
  }
  for (const { id, password } of logins) {
    const { status, body } = await reply(box, 'POST', `/v1/logins/${id}/reveal`, { body: { purpose: 'to sign in' } })
    if (body['password'] !== password) faults.push(`the login ${id} reveals another password: ${status} ${JSON.stringify(body)}`)
  }
  return faults
}

/** The session goes on, and a new one begins by the same password with a code, and not without. */
async function faultsOfPerson(box: RunningBox, { email, password, secret, cookie, key }: Person): Promise<string[]> {
  const faults: string[] = []
  const session = await reply(box, 'GET', '/v1/session', { cookie })
  if (session.status !== 200) faults.push(`the session has ended: ${session.status} ${JSON.stringify(session.body)}`)
  const { data } = await made(box, 'GET', '/v1/identities', { key })
  if (!(data as { name: string }[]).some(({ name }) => name === 'Grace')) faults.push('the other account has lost its identity')
  const signIn = (code: object) => reply(box, 'POST', '/v1/session', { cookie: '', body: { email, password, ...code } })
  const without = await signIn({})
  if (without.status !== 401) faults.push(`without a second factor the person is signed in: ${without.status}`)
  // a code that was used when the factor was added is not taken again
  const answers = []
  for (const totp of codesOf(secret).slice(1)) answers.push(await signIn({ totp }))
  if (!answers.some(({ status }) => status === 200))
    faults.push(`the person cannot sign in: ${JSON.stringify(answers.map(({ body }) => body))}`)
  return faults
}

async function faultsOfCalls(box: RunningBox, { token, repeated }: Filled): Promise<string[]> {
  const faults: string[] = []
  if (token !== undefined) {
    const { body } = await reply(box, 'POST', '/v1/verify/token', { body: { token, audience } })
    if (body['valid'] !== true) faults.push(`a token that was issued is not valid: ${JSON.stringify(body)}`)
  }
  if (repeated !== undefined) {
    const { body, idempotency, answer } = repeated
    const again = await reply(box, 'POST', '/v1/identities', { body, idempotency })
    if (again.body['id'] !== answer['id']) faults.push(`a repeated call was made again: ${JSON.stringify(again.body)}`)
  }
  return faults
}

/** Every identity can be exported, and the archive is a zip. */
async function faultsOfExport(box: RunningBox): Promise<string[]> {
  const faults: string[] = []
  for (const { id, name } of await box.list('/v1/identities')) {
    const { result } = await jobEnd(box, await made(box, 'POST', `/v1/identities/${id}/export`))
    const response = await fetch(String(result.url))
    const archive = Buffer.from(await response.arrayBuffer())
    if (response.status !== 200 || archive.subarray(0, 2).toString() !== 'PK')
      faults.push(`the export of ${name} is answered with ${response.status} and ${archive.length} bytes`)
  }
  return faults
}

/** Those of the step before, of now, and of the next. */
function codesOf(secret: string): string[] {
  const now = Math.floor(Date.now() / 1000)
  return [-30, 0, 30].map((seconds) => codeAt(secret, now + seconds))
}
