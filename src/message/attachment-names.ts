import { basename } from 'node:path'

/** The name an attachment is served under: a basename without controls and direction marks, at most 200 characters. */
export function servedName(name: string | undefined, index: number): string {
  const clean = (name ?? '')
    .slice(0, 10_000)
    // Controls go before the path is removed: dropping one between two dots must not create a path.
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, '')
    .replaceAll('\\', '/')
  const base = basename(clean)
    .replace(/[:*?"<>|]/g, '_')
    .trim()
  return /^[.\s_]*$/.test(base) ? `attachment-${index}` : shortened(base)
}

/** A media type in lower case without its parameters; application/octet-stream when it is invalid (RFC 2045 5.1). */
export function mediaType(type: unknown): string {
  const clean = typeof type === 'string' ? type.trim().toLowerCase() : ''
  return clean.length < 128 && /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+$/.test(clean) ? clean : 'application/octet-stream'
}

// The extension is kept: it indicates the type of the file.
function shortened(name: string): string {
  const characters = Array.from(name)
  if (name.length <= 200) return name
  const extension = /\.[\p{L}\p{N}]{1,10}$/u.exec(name)?.[0] ?? ''
  let start = ''
  for (const character of characters) {
    if (start.length + character.length > 200 - extension.length) break
    start += character
  }
  return start + extension
}
