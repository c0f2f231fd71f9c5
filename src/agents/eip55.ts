import { keccak_256 } from '@noble/hashes/sha3'

/** An Ethereum address in the one spelling whose capitals are its checksum (EIP-55). `address` is 0x and 40 hexadecimal digits. */
export function checksummed(address: string): string {
  const digits = address.slice(2).toLowerCase()
  const hash = keccak_256(new TextEncoder().encode(digits))
  const letters = Array.from(digits, (digit, index) => {
    const nibble = (hash[index >> 1]! >> (index % 2 === 0 ? 4 : 0)) & 15
    return nibble >= 8 ? digit.toUpperCase() : digit
  })
  return `0x${letters.join('')}`
}

/** Whether the capitals of an address are its checksum, or there is none: all letters of one case. */
export function isUnbroken(address: string): boolean {
  const digits = address.slice(2)
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() || address === checksummed(address)
}
