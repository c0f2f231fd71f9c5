import { type IncomingMessage, request } from 'node:http'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'

/** As `fetch`, which sets Host by itself: asks a server by a name of the caller's choice. */
export async function fetchAs(
  url: string,
  { method = 'GET', headers }: { method?: string; headers: Record<string, string> },
): Promise<Response> {
  const [answer] = (await once(request(url, { method, headers, agent: false }).end(), 'response')) as [IncomingMessage]
  const body = await buffer(answer)
  const pairs = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, [value].flat().join(', ')])
  return new Response(body.length === 0 ? null : body, { status: answer.statusCode ?? 0, headers: pairs })
}
