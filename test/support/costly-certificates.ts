import { randomBytes } from 'node:crypto'

/**
 * What a TLS 1.2 server sends after ClientHello: ServerHello, and a chain of certificates whose keys are on an elliptic curve of their own. The modulus is
 * c·2^647+1, and points are compressed: to read one, OpenSSL takes a square root, which lasts an eighth of a second. Nothing in it is signed.
 */
export function costlyFlight(certificates: number): Buffer {
  const hello = Buffer.concat([hex('0303'), randomBytes(32), hex('00c02b00'), hex('0005ff01000100')])
  const list = Buffer.concat(
    Array.from({ length: certificates }, (_, number) => certificate(number)).flatMap((one) => [three(one.length), one]),
  )
  return record(Buffer.concat([handshake(2, hello), handshake(11, Buffer.concat([three(list.length), list]))]))
}

/** The first prime of this form with 661 bits, the most that OpenSSL takes. */
const modulus = (8271n << 647n) + 1n
/** Coordinates of points on y² = x³ + 7 for that modulus. */
const [generator, point] = pointsOn(modulus)

function certificate(number: number): Buffer {
  const curve = sequence(
    integer(1n),
    sequence(der(6, hex('2a8648ce3d0101')), integer(modulus)),
    sequence(der(4, hex('00')), der(4, hex('07'))),
    der(4, compressed(generator!)),
    integer(modulus - 2n),
    integer(1n),
  )
  const key = sequence(sequence(der(6, hex('2a8648ce3d0201')), curve), bits(compressed(point!)))
  const algorithm = sequence(der(6, hex('2a8648ce3d040302')))
  const validity = sequence(der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('490101000000Z')))
  const unsigned = sequence(integer(1n), algorithm, name(number + 1), validity, name(number), key)
  return sequence(unsigned, algorithm, bits(sequence(integer(1n), integer(1n))))
}

function pointsOn(prime: bigint): bigint[] {
  const found: bigint[] = []
  for (let x = 2n; found.length < 2; x++) {
    const square = (x * x * x + 7n) % prime
    // a square, but not one of a square, whose root would take less
    if (power(square, (prime - 1n) >> 1n, prime) === 1n && power(square, (prime - 1n) >> 2n, prime) !== 1n) found.push(x)
  }
  return found
}

function power(base: bigint, exponent: bigint, prime: bigint): bigint {
  let [result, square] = [1n, base]
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * square) % prime
    square = (square * square) % prime
  }
  return result
}

function compressed(x: bigint): Buffer {
  return Buffer.concat([hex('02'), hex(x.toString(16).padStart(2 * octetsOf(modulus).length, '0'))])
}

function name(number: number): Buffer {
  return sequence(der(0x31, sequence(der(6, hex('550403')), der(12, Buffer.from(`n${number}`)))))
}

function octetsOf(value: bigint): Buffer {
  const text = value.toString(16)
  return hex(text.padStart(text.length + (text.length % 2), '0'))
}

function integer(value: bigint): Buffer {
  const octets = octetsOf(value)
  return der(2, octets[0]! & 0x80 ? Buffer.concat([hex('00'), octets]) : octets)
}

function bits(octets: Buffer): Buffer {
  return der(3, Buffer.concat([hex('00'), octets]))
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts))
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function handshake(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type]), three(body.length), body])
}

/** Records of at most 16,384 octets (RFC 5246 6.2.1). */
function record(octets: Buffer): Buffer {
  const records: Buffer[] = []
  for (let at = 0; at < octets.length; at += 16_384) {
    const fragment = octets.subarray(at, at + 16_384)
    records.push(Buffer.from([22, 3, 3, fragment.length >> 8, fragment.length & 255]), fragment)
  }
  return Buffer.concat(records)
}

function three(length: number): Buffer {
  return Buffer.from([length >> 16, (length >> 8) & 255, length & 255])
}

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex')
}
