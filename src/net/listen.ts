import { type AddressInfo, createServer, isIP, type Server, type Socket } from 'node:net'

/** `host:port` or `[IPv6]:port`, taken apart; throws on anything else. */
export function placeOf(text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port > 65_535) throw new Error(`Not a place to listen on: ${text} (want host:port or [IPv6]:port)`)
  return { host, port }
}

/**
 * Listens on every place, port 0 meaning any free one; when one cannot be had, none is held and the error names it. `failed` hears of
 * connections that could not be accepted later.
 */
export async function listenOn(
  places: string[],
  accept: (socket: Socket) => void,
  failed: (error: Error) => void,
): Promise<Server[]> {
  const wanted = places.map(placeOf)
  const servers: Server[] = []
  try {
    for (const place of wanted) {
      // Both 0.0.0.0 and [::] on one port only fit when the second one leaves IPv4 alone.
      const ipv6Only = wanted.some((other) => other.port === place.port && isIP(other.host) === 4)
      const server = await open({ ...place, ipv6Only }, accept)
      // Running out of file descriptors is told here, and must not end the process.
      server.on('error', failed)
      servers.push(server)
    }
    return servers
  } catch (error) {
    for (const server of servers) server.close()
    throw error
  }
}

/** Where the servers listen. */
export function addressesOf(servers: Server[]): { host: string; port: number }[] {
  return servers
    .map((server) => server.address())
    .filter((address): address is AddressInfo => address !== null && typeof address === 'object')
    .map(({ address, port }) => ({ host: address, port }))
}

function open(place: { host: string; port: number; ipv6Only: boolean }, accept: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ noDelay: true }, accept)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(place, () => {
      server.off('error', reject)
      resolve(server)
    })
  })
}
