import { type AddressInfo, createServer, isIP, type Server, type Socket } from 'node:net'

/** The address of a listener as configured; `host` is undefined for every address of the machine, port 0 is any free one. */
export interface Endpoint {
  host: string | undefined
  port: number
}

/** The address that a listener has. */
export interface BoundEndpoint extends Endpoint {
  host: string
}

/**
 * Listens on every endpoint. When one fails, all are closed and the error names it. `failed` is called for later connections that could not be
 * accepted.
 */
export async function listenOn(
  endpoints: Endpoint[],
  accept: (socket: Socket) => void,
  failed: (error: Error) => void,
): Promise<Server[]> {
  const servers: Server[] = []
  try {
    for (const endpoint of endpoints) {
      // Both 0.0.0.0 and [::] on one port only fit when the second one leaves IPv4 alone.
      const ipv6Only = endpoints.some((other) => other.port === endpoint.port && isIP(other.host ?? '::') === 4)
      const server = await open({ host: endpoint.host ?? '::', port: endpoint.port, ipv6Only }, accept)
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
export function addressesOf(servers: Server[]): BoundEndpoint[] {
  return servers
    .map((server) => server.address())
    .filter((address): address is AddressInfo => address !== null && typeof address === 'object')
    .map(({ address, port }) => ({ host: address, port }))
}

function open(endpoint: BoundEndpoint & { ipv6Only: boolean }, accept: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ noDelay: true }, accept)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(endpoint, () => {
      server.off('error', reject)
      resolve(server)
    })
  })
}
