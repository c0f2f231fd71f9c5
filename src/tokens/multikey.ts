const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** The multicodec of ed25519-pub, as a varint. */
const prefix = Buffer.from([0xed, 0x01])

/** An Ed25519 public key (32 octets) as a Multikey: multibase base58btc of multicodec and key, `z6Mk…`. */
export function multikeyOf(key: Uint8Array): string {
  let number = BigInt(`0x${Buffer.concat([prefix, key]).toString('hex')}`)
  let text = ''
  for (; number > 0n; number /= 58n) text = alphabet[Number(number % 58n)]! + text
  return `z${text}`
}

/** The 32 octets of an Ed25519 public key; undefined for a text that is no Multikey of that kind. */
export function keyOfMultikey(text: string): Buffer | undefined {
  if (!/^z6Mk[1-9A-HJ-NP-Za-km-z]{44}$/.test(text)) return undefined
  let number = 0n
  for (const character of text.slice(1)) number = number * 58n + BigInt(alphabet.indexOf(character))
  const octets = Buffer.from(number.toString(16), 'hex')
  return octets.length === 34 && octets.subarray(0, 2).equals(prefix) ? octets.subarray(2) : undefined
}
