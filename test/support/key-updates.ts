import { createCipheriv, createHmac } from 'node:crypto'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { connect } from 'node:tls'

/**
 * Completes a TLS handshake on this socket; answers so many KeyUpdates (RFC 8446 4.6.3) for it, to be written to the socket itself. `answered`: the
 * other end must answer each. They are made here, as no library makes many.
 */
export async function keyUpdates(socket: Socket, count: number, answered = false): Promise<Buffer> {
  socket.removeAllListeners('data')
  const secure = connect({ socket, rejectUnauthorized: false, minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' })
  secure.on('error', () => undefined)
  let secret: Buffer = Buffer.alloc(0)
  secure.on('keylog', (line: Buffer) => {
    const [label, , hex] = line.toString().trim().split(' ')
    if (label === 'CLIENT_TRAFFIC_SECRET_0') secret = Buffer.from(hex!, 'hex')
  })
  await new Promise((resolve) => secure.once('secureConnect', resolve).once('close', resolve))
  // the end of the handshake leaves first
  await turn()
  const records: Buffer[] = []
  while (records.length < count) {
    records.push(keyUpdate(secret, answered))
    secret = expand(secret, 'traffic upd', 32)
  }
  return Buffer.concat(records)
}

function keyUpdate(secret: Buffer, answered: boolean): Buffer {
  const text = Buffer.from([24, 0, 0, 1, answered ? 1 : 0, 22])
  const head = Buffer.from([23, 3, 3, 0, text.length + 16])
  const cipher = createCipheriv('aes-128-gcm', expand(secret, 'key', 16), expand(secret, 'iv', 12))
  cipher.setAAD(head)
  return Buffer.concat([head, cipher.update(text), cipher.final(), cipher.getAuthTag()])
}

/** HKDF-Expand-Label (RFC 8446 7.1), for up to 32 octets. */
function expand(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`)
  const info = Buffer.concat([Buffer.from([0, length, name.length]), name, Buffer.from([0, 1])])
  return createHmac('sha256', secret).update(info).digest().subarray(0, length)
}
