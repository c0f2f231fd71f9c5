import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** The status and error of a handshake that is refused. */
export async function refusal(
  url: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; error: { code: string } }> {
  const { hostname, port, pathname, search } = new URL(url)
  const socket = connect(Number(port), hostname)
  const fields = {
    Host: `${hostname}:${port}`,
    Upgrade: 'websocket',
    Connection: 'Upgrade, close',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`)
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
  await Promise.race([once(socket, 'close'), once(socket, 'end')])
  socket.destroy()
  const [head, body] = answer.split('\r\n\r\n')
  return { status: Number(head!.slice(9, 12)), error: (JSON.parse(body || '{"error":{}}') as { error: { code: string } }).error }
}

/** A client that opens a socket, and then neither asks nor answers. */
export async function silent(made: { token: string; url: string }): Promise<Socket> {
  const { hostname, port, pathname } = new URL(made.url)
  const socket = connect(Number(port), hostname)
  const handshake = [
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ]
  socket.write(`GET ${pathname}?token=${made.token} HTTP/1.1\r\nHost: ${hostname}\r\n${handshake.join('\r\n')}\r\n\r\n`)
  await once(socket, 'data')
  return socket.resume()
}
