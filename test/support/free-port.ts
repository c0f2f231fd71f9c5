import { once } from 'node:events'
import { createServer } from 'node:net'

/** Ports that the system gives nobody who asks for any (ip_local_port_range of ip(7) begins at 32768). */
const [lowest, count] = [10_000, 22_000]

let next = (process.pid * 97) % count

/** A TCP port of loopback that is free, and that only somebody who names it takes meanwhile: for programs that cannot pick one themselves. */
export async function freePort(): Promise<number> {
  for (;;) {
    next = (next + 1) % count
    const port = lowest + next
    const server = createServer()
    server.listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue
      throw error
    }
    server.close()
    await once(server, 'close')
    return port
  }
}
