/** Base32 without padding (RFC 4648 6). */
export function base32(octets: Uint8Array): string {
  const bits = Array.from(octets, (octet) => octet.toString(2).padStart(8, '0')).join('')
  const whole = bits.padEnd(Math.ceil(bits.length / 5) * 5, '0')
  return whole.replace(/.{5}/g, (five) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[Number.parseInt(five, 2)]!)
}
