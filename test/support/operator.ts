import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'

type Any = ReturnType<typeof JSON.parse>

/** Calls by the box's own socket: as the operator, for an account. Throws for a refusal. */
export function operator(socketPath: string, account?: string) {
  return async (method: string, path: string, body?: unknown): Promise<Any> => {
    const headers = {
      Host: 'localhost',
      ...(account === undefined ? {} : { 'Pillarbox-Account': account }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    }
    const call = request({ socketPath, method, path, headers, agent: false })
    call.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    const answer = (await json(response)) as Any
    if (response.statusCode! >= 400) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
    return answer
  }
}
