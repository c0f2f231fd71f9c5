import { join } from 'node:path'
import { openStore } from './open-store.ts'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/core/clock.ts'
import { type Appliance, openAppliance } from './appliance.ts'
import { Dialogue } from './smtp.ts'

export type Door = 'starttls' | 'tls'

/** A box that takes submissions, where ada@pillarbox.test lives and from whose domain mail may leave. */
export interface Office {
  box: Appliance
  /** The id of Ada's identity. */
  ada: string
  port: (door?: Door) => number
}

/** Starts one; failed logins are answered at once unless said otherwise. Stopped and removed when the test ends. */
export async function office(env: Record<string, string> = {}, clock?: Clock, maySend = true): Promise<Office> {
  const { here, close } = await openOffice(env, clock, maySend)
  onTestFinished(close)
  return here
}

/** The same for all tests of a file, which must close it. */
export async function openOffice(
  env: Record<string, string> = {},
  clock?: Clock,
  maySend = true,
): Promise<{ here: Office; close: () => Promise<void> }> {
  const listeners = { PILLARBOX_SUBMISSION__LISTEN: '127.0.0.1:0', PILLARBOX_SUBMISSION__LISTEN_TLS: '127.0.0.1:0' }
  const { box, close } = await openAppliance({ ...listeners, PILLARBOX_SUBMISSION__FAILED_LOGIN_DELAY: '0 ms', ...env }, clock)
  if (maySend) await verify(box)
  const { body } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const port = (door: Door = 'starttls'): number => box.app.submissionAddresses[door][0]!.port
  return { here: { box, ada: body.id as string, port }, close }
}

/** Makes an API key; answers its id and secret. */
export async function newKey(box: Appliance, input: Record<string, unknown> = {}): Promise<{ id: string; key: string }> {
  const { status, body } = await box.call('POST', '/v1/api-keys', { label: 'test', scopes: ['messages:write'], ...input })
  if (status !== 201) throw new Error(`no key: ${JSON.stringify(body)}`)
  return { id: body.id as string, key: body.key as string }
}

/** Under TLS and after EHLO, not logged in. */
export async function greeted(port: number, door: Door = 'starttls'): Promise<Dialogue> {
  const client = await Dialogue.connect(port)
  if (door === 'starttls') {
    await client.reply()
    await client.say('EHLO client.test')
    await client.say('STARTTLS')
  }
  await client.upgrade()
  if (door === 'tls') await client.reply()
  await client.say('EHLO client.test')
  return client
}

/** AUTH PLAIN in one line (RFC 4616). */
export function plain(user: string, password: string, authzid = ''): string {
  return `AUTH PLAIN ${base64(`${authzid}\0${user}\0${password}`)}`
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** Under TLS, and logged in as Ada unless said otherwise. */
export async function loggedIn(
  { box, port }: Office,
  { user = 'ada@pillarbox.test', key = box.key, door = 'starttls' }: { user?: string; key?: string; door?: Door } = {},
): Promise<Dialogue> {
  const client = await greeted(port(door), door)
  const answer = await client.say(plain(user, key))
  if (!answer.startsWith('235')) throw new Error(`not logged in: ${answer}`)
  return client
}

/** MAIL, RCPT for each, DATA and the message; answers the first reply that is a refusal, or the last. */
export async function submit(client: Dialogue, mail: { from?: string; to?: string[]; raw: string | Buffer }): Promise<string> {
  const { from = 'ada@pillarbox.test', to = ['bob@elsewhere.test'], raw } = mail
  for (const command of [`MAIL FROM:<${from}>`, ...to.map((one) => `RCPT TO:<${one}>`), 'DATA']) {
    const answer = await client.say(command)
    if (!/^[23]/.test(answer)) return answer
  }
  const stuffed = Buffer.from(raw).toString('latin1').replace(/^\./gm, '..')
  client.send(Buffer.from(stuffed, 'latin1'))
  return client.say('.')
}

/** As after the records of the box's own domain were found in the DNS. */
export async function verify(box: Appliance): Promise<void> {
  await box.app.stop()
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'))
  database.exec("UPDATE domains SET status = 'verified', verified_at = created_at")
  database.close()
  await box.restart()
}

/** What the API lists of Ada's outbound mail. */
export async function outbound({ box, ada }: Office): Promise<Record<string, unknown>[]> {
  const { body } = await box.call('GET', `/v1/identities/${ada}/emails?direction=outbound`)
  return body.data as Record<string, unknown>[]
}

/** The source of one of Ada's messages, as UTF-8. */
export async function sourceOf({ box, ada }: Office, id: string): Promise<string> {
  const { body } = await box.call<string>('GET', `/v1/identities/${ada}/emails/${id}/raw`)
  return body
}
