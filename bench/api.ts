import { benchKey, type Box } from './box.ts'

/** For every call. */
export const authorized = { Authorization: `Bearer ${benchKey}`, 'Content-Type': 'application/json' }

/** Posts to the box's API; throws with the answer when that is no success. */
export async function post<Answer>(box: Pick<Box, 'url'>, path: string, body: object): Promise<Answer> {
  const response = await fetch(`${box.url}${path}`, { method: 'POST', headers: authorized, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
  return (await response.json()) as Answer
}

/** Where a subscriber connects, token included. */
export async function realtime(box: Pick<Box, 'url'>): Promise<{ host: string; port: number; path: string }> {
  const { token } = await post<{ token: string }>(box, '/v1/realtime/token', {})
  const { hostname, port } = new URL(box.url)
  return { host: hostname, port: Number(port), path: `/v1/realtime?token=${token}` }
}

/** The ids of every identity of the box. */
export async function identityIds(box: Pick<Box, 'url'>): Promise<string[]> {
  const ids: string[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const response = await fetch(`${box.url}/v1/identities?limit=100${cursor && `&cursor=${cursor}`}`, { headers: authorized })
    const list = (await response.json()) as { data: { id: string }[]; next_cursor: string | null }
    ids.push(...list.data.map(({ id }) => id))
    cursor = list.next_cursor
  }
  return ids
}
