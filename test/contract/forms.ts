/** The octets in which a secret could lie about: as text in several encodings, as hexadecimal, in base64 wherever it begins in it. */
export function formsOf(secret: string | Buffer): Buffer[] {
  const octets = Buffer.from(secret)
  const texts = [octets.toString('hex'), octets.toString('hex').toUpperCase(), ...base64Of(octets)]
  if (typeof secret === 'string') {
    const spelled = [secret, secret.toLowerCase(), encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]
    texts.push(...spelled, ...spelled.flatMap((text) => base64Of(Buffer.from(text, 'utf16le'))))
  }
  const unique = [...new Set(texts)]
  const plain = typeof secret === 'string' ? [] : [octets]
  return [
    ...plain,
    ...unique.map((text) => Buffer.from(text)),
    ...unique.map((text) => Buffer.from(text, 'utf16le')),
    ...unique.map((text) => Buffer.from(text, 'utf16le').swap16()),
  ]
}

/** What all base64 texts have in common that hold these octets one, two or no places after a whole group. */
function base64Of(octets: Buffer): string[] {
  const texts = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), octets])
      .toString('base64')
      .replace(/=+$/, '')
    // the ends are shared with what comes before and after
    const whole = Math.floor(((before + octets.length) * 8) / 6)
    return text.slice(before === 0 ? 0 : before + 1, whole)
  })
  return texts.flatMap((text) => [text, text.replaceAll('+', '-').replaceAll('/', '_')])
}

/** Looks for many texts at once: byte by byte for how any of them begins, which takes a hundredth of the time of a search for each. */
export class Search<Name> {
  /** By their first four bytes. */
  readonly #wanted = new Map<number, { name: Name; text: Buffer }[]>()
  /** 1 for the first two bytes of any. */
  readonly #starts = new Uint8Array(65_536)

  /** Throws for a text of less than four bytes. */
  add(name: Name, text: Buffer): void {
    const start = text.readUInt32BE(0)
    this.#starts[start >>> 16] = 1
    const known = this.#wanted.get(start)
    if (known) known.push({ name, text })
    else this.#wanted.set(start, [{ name, text }])
  }

  /** The names of what is there, and as which text. */
  in(bytes: Buffer): { name: Name; text: Buffer }[] {
    const found = new Set<{ name: Name; text: Buffer }>()
    for (let at = 0; at + 4 <= bytes.length; at += 1) {
      if (this.#starts[(bytes[at]! << 8) | bytes[at + 1]!] === 0) continue
      for (const one of this.#wanted.get(bytes.readUInt32BE(at)) ?? []) {
        if (one.text.equals(bytes.subarray(at, at + one.text.length))) found.add(one)
      }
    }
    return [...found]
  }
}
