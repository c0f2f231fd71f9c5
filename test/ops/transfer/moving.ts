import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Packable, zip } from '../../../src/core/zip/zip.ts'
import { type Appliance, deliver } from '../../support/appliance.ts'

/** An answer, of which a test says what it expects. */
export type Fields = Record<string, Any>
type Any = ReturnType<typeof JSON.parse>

export interface Finished {
  id: string
  status: string
  progress: { done: number; total: number | null; unit: string }
  result: Fields | null
  error: { message: string; code: string | null } | null
}

/** Waits for the end of a job. */
export async function finished(box: Appliance, id: string): Promise<Finished> {
  for (;;) {
    const { body } = await box.call('GET', `/v1/jobs/${id}`)
    if (body.status !== 'running') return body as unknown as Finished
    await sleep(20)
  }
}

/** An export of an identity: the job, and the octets that its URL opens. */
export async function exported(
  box: Appliance,
  identity: string,
  format = 'mbox',
  key = box.key,
): Promise<{ job: Finished; octets: Buffer }> {
  const { body, status } = await box.call('POST', `/v1/identities/${identity}/export`, { format }, { key })
  if (status !== 201) throw new Error(JSON.stringify(body))
  const job = await finished(box, body.id)
  if (job.status !== 'done') throw new Error(JSON.stringify(job))
  const answer = await fetch(job.result!['url'])
  return { job, octets: Buffer.from(await answer.arrayBuffer()) }
}

/** Imports octets into an identity and answers how it ended. */
export async function imported(box: Appliance, identity: string, octets: Uint8Array | string, key = box.key): Promise<Finished> {
  const answer = await upload(box, identity, octets, key)
  const body = (await answer.json()) as { id: string }
  if (answer.status !== 201) throw new Error(JSON.stringify(body))
  return finished(box, body.id)
}

export function upload(box: Appliance, identity: string, octets: Uint8Array | string, key = box.key): Promise<Response> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/octet-stream' }
  return fetch(`${box.url}/v1/identities/${identity}/import`, {
    method: 'POST',
    headers,
    body: octets as Uint8Array<ArrayBuffer>,
  })
}

/** A ZIP of these files. */
export async function packed(files: Record<string, Packable['content'] | string>): Promise<Buffer> {
  async function* each(): AsyncGenerator<Packable> {
    for (const [name, content] of Object.entries(files)) {
      yield { name, modified: 0, content: typeof content === 'string' ? Buffer.from(content) : content }
    }
  }
  return buffer(zip(each()))
}

/** Every e-mail of an identity, oldest first, whole. */
export async function emailsOf(box: Appliance, identity: string): Promise<Fields[]> {
  const all: Fields[] = []
  for (const spam of ['false', 'true']) {
    const { body } = await box.call(
      'GET',
      `/v1/identities/${identity}/emails?limit=200&direction=all&duplicates=true&spam=${spam}`,
    )
    for (const { id } of body.data) all.push((await box.call('GET', `/v1/identities/${identity}/emails/${id}`)).body)
  }
  return all.toReversed()
}

/** Delivers messages one after another to an address. */
export async function deliverAll(box: Appliance, to: string, messages: readonly (Buffer | string)[]): Promise<void> {
  for (const raw of messages) {
    const reply = await deliver(box.smtp, { to, raw })
    if (!reply.startsWith('250')) throw new Error(reply)
  }
}
