import { createHash } from 'node:crypto'
import { vi } from 'vitest'
import type { Email, EmailRow } from '../../src/mail/model.ts'
import { appliance, type Appliance } from '../support/appliance.ts'

/** An e-mail as the API shows it, and its source parted in what the box put before it and what came. */
export interface Kept {
  email: Email
  trace: string
  octets: Buffer
}

/** A box where ada@pillarbox.test lives; `ada` is the id of that identity. */
export async function boxWithAda(env: Record<string, string> = {}): Promise<{ box: Appliance; ada: string }> {
  const box = await appliance(env)
  return { box, ada: await identity(box, 'Ada') }
}

/** Makes an identity of this name; answers its id. */
export async function identity(box: Appliance, name: string): Promise<string> {
  const { body } = await box.call('POST', '/v1/identities', { name })
  return body.id as string
}

/** Waits until an identity has that many e-mails; answers the list, newest first. `query` narrows it. */
export async function arrived(box: Appliance, id: string, count: number, query = ''): Promise<EmailRow[]> {
  return vi.waitFor(
    async () => {
      const { body } = await box.call('GET', `/v1/identities/${id}/emails?limit=200${query}`)
      if (body.data.length < count) throw new Error(`${body.data.length} of ${count} e-mails came`)
      return body.data as EmailRow[]
    },
    { timeout: 100_000, interval: 50 },
  )
}

/** As `arrived`, and answers the e-mails whole. */
export async function keptFor(box: Appliance, id: string, count = 1, query = ''): Promise<Kept[]> {
  const rows = await arrived(box, id, count, query)
  return Promise.all(rows.map((row) => read(box, `/v1/identities/${id}/emails/${row.id}`)))
}

/** SHA-256 in hexadecimal. */
export function sha(octets: Buffer | string): string {
  return createHash('sha256').update(octets).digest('hex')
}

async function read(box: Appliance, path: string): Promise<Kept> {
  const { body: email } = await box.call<Email>('GET', path)
  const source = await fetch(`${box.url}${path}/raw`, { headers: { Authorization: `Bearer ${box.key}` } })
  const octets = Buffer.from(await source.arrayBuffer())
  const length = octets.length - email.size
  return { email, trace: octets.toString('utf8', 0, length), octets: octets.subarray(length) }
}
