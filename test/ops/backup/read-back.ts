import { expect } from 'vitest'
import type { Appliance } from '../../support/appliance.ts'

/** What changes by being looked at, or says where the box is. */
const passing = new Set(['last_used_at', 'url', 'supabase_url', 'expires_at', 'request_id', 'next_check_at', 'last_checked_at'])

/** What a look at the DNS, at any time, finds of a record. */
const looked = new Set(['found', 'reason', 'status'])

type Json = ReturnType<typeof JSON.parse>

/** All that an account has, as the API tells it: every list to its end, every message with its octets. */
export async function readBack(box: Appliance, key?: string): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {}
  const get = async (path: string): Promise<Json> => {
    const { status, body } = await box.call<Json>('GET', path, undefined, key === undefined ? {} : { key })
    expect([path, status]).toEqual([path, 200])
    answers[path] = kept(body)
    return body
  }
  const list = async (path: string): Promise<Json[]> => {
    const rows: Json[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: Json = await get(`${path}${path.includes('?') ? '&' : '?'}limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`)
      rows.push(...page.data)
      cursor = page.next_cursor
    }
    return rows
  }
  for (const path of ['/v1/api-keys', '/v1/webhooks', '/v1/suppressions', '/v1/domains']) await list(path)
  for (const { id } of await list('/v1/identities')) {
    const at = `/v1/identities/${id}`
    await get(at)
    for (const email of await list(`${at}/emails?direction=all`)) {
      await get(`${at}/emails/${email.id}`)
      await get(`${at}/emails/${email.id}/raw`)
      for (const { index } of (await get(`${at}/emails/${email.id}/attachments`)).data) {
        const { url } = await get(`${at}/emails/${email.id}/attachments/${index}`)
        answers[`${at}/emails/${email.id}/attachments/${index} octets`] = await (await fetch(url)).text()
      }
    }
    for (const { id: thread } of await list(`${at}/threads`)) await get(`${at}/threads/${thread}`)
    for (const place of ['sms', 'messages', 'events', 'totp']) await list(`${at}/${place}`)
    for (const { id: card } of await list(`${at}/cards`)) await get(`/v1/cards/${card}`)
  }
  return answers
}

/** Without what passes. */
export function kept(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(kept)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !passing.has(name) && !('ttl' in value && looked.has(name)))
      // cursors are signed, and say nothing of what is on the page
      .map(([name, one]) => [name, name === 'next_cursor' ? one !== null : kept(one)]),
  )
}
