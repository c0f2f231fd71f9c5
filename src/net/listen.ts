import { type AddressInfo, createServer, isIP, type Server, type Socket } from 'node:net'

/** Parses `host:port` or `[IPv6]:port`; throws on anything else. */
export function parseEndpoint(text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port > 65_535) throw new Error(`Not an address to listen on: ${text} (want host:port or [IPv6]:port)`)
  return { host, port }
}

/**
 * Listens on every address; port 0 means any free one. When one fails, all are closed and the error names it. `failed` is called for later
 * connections that could not be accepted.
 */
export async function listenOn(
  addresses: string[],
  accept: (socket: Socket) => void,
  failed: (error: Error) => void,
): Promise<Server[]> {
  const endpoints = addresses.map(parseEndpoint)
  const servers: Server[] = []
  try {
    for (const endpoint of endpoints) {
      // Both 0.0.0.0 and [::] on one port only fit when the second one leaves IPv4 alone.
      const ipv6Only = endpoints.some((other) => other.port === endpoint.port && isIP(other.host) === 4)
      const server = await open({ ...endpoint, ipv6Only }, accept)
      // Running out of file descriptors is reported here, and must not end the process.
      server.on('error', failed)
      servers.push(server)
    }
    return servers
  } catch (error) {
    for (const server of servers) server.close()
    throw error
  }
}

/** The addresses that the servers listen on. */
export function addressesOf(servers: Server[]): { host: string; port: number }[] {
  return servers
    .map((server) => server.address())
    .filter((address): address is AddressInfo => address !== null && typeof address === 'object')
    .map(({ address, port }) => ({ host: address, port }))
}

function open(endpoint: { host: string; port: number; ipv6Only: boolean }, accept: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ noDelay: true }, accept)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(endpoint, () => {
      server.off('error', reject)
      resolve(server)
    })
  })
}
