import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect as connectTls, createServer as createTlsServer, type SecureContextOptions } from 'node:tls'
import { generate } from 'selfsigned'

/** A TLS server's context that has no key exchange but one whose finite field (2,048 bits here) the server chooses. */
export async function finiteField(): Promise<SecureContextOptions & { cert: string; key: string }> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], { keyType: 'rsa', keySize: 2048 })
  const context = { cert, key, dhparam: 'auto', ciphers: 'DHE-RSA-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' } as const
  await requireUsable(context)
  return context
}

/** Throws when no client of Node.js gets through. */
async function requireUsable(context: SecureContextOptions): Promise<void> {
  const server = createTlsServer(context).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connectTls({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  socket.destroy()
  server.close()
}
