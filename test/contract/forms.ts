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
