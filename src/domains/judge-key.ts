import type { WantedRecord } from './records.ts'
import { invalid, type Judged, unquoted, valid } from './verdict.ts'

/** Checks the TXT records of a DKIM selector (RFC 6376 3.6.1, RFC 8463): the key that a verifier reads must be ours. */
export function judgeKey({ name, key }: WantedRecord, values: string[]): Judged {
  if (!key) throw new Error('A DKIM record is checked with its key.')
  if (values.length > 1) {
    return invalid(
      values,
      `There are ${values.length} TXT records at ${name}, and verifiers use any of them; leave only this one.`,
    )
  }
  const [text = ''] = values
  const reason = faultOf(text, key.public_text, key.algorithm === 'rsa-sha256' ? 'rsa' : 'ed25519')
  if (reason === null) return valid(values)
  const meant = unquoted(text)
  const readable = meant !== text && faultOf(meant, key.public_text, key.algorithm === 'rsa-sha256' ? 'rsa' : 'ed25519') === null
  return invalid(
    values,
    readable ? 'The key is correct, but quotes or backslashes became part of the record; enter it without them.' : reason,
  )
}

function faultOf(text: string, expected: string, algorithm: string): string | null {
  const tags = tagsOf(text)
  if (tags === null) return 'This is not a DKIM record: it should be a list of tags such as v=DKIM1; k=…; p=….'
  if ((tags.get('v') ?? 'DKIM1') !== 'DKIM1') return 'The version should be v=DKIM1.'
  const key = tags.get('p')?.replaceAll(/\s/g, '')
  if (key === undefined) return 'The record has no key (p=).'
  if (key === '') return 'An empty p= means that the key was revoked.'
  if ((tags.get('k') ?? 'rsa') !== algorithm) return `The key type should be k=${algorithm}.`
  if (key !== expected) {
    const cut = expected.startsWith(key) || expected.endsWith(key)
    return cut
      ? `Only ${key.length} of the ${expected.length} characters of the key are present; a text over 255 characters must be split into several strings.`
      : 'This is not the key that signs.'
  }
  if (!listed(tags.get('h') ?? 'sha256', 'sha256')) return 'The hashes of h= should include sha256.'
  if (!listed(tags.get('s') ?? '*', 'email') && !listed(tags.get('s') ?? '*', '*'))
    return 'The services of s= should include email.'
  if (listed(tags.get('t') ?? '', 'y')) return 't=y marks signatures as a test; leave it out.'
  return null
}

/** Null when the text is no tag list (RFC 6376 3.2). */
function tagsOf(text: string): Map<string, string> | null {
  const tags = new Map<string, string>()
  for (const part of text.replace(/;\s*$/, '').split(';')) {
    const [, name, value] = /^\s*([a-z]\w*)\s*=(.*)/is.exec(part) ?? []
    if (name === undefined || value === undefined || tags.has(name)) return null
    tags.set(name, value.trim())
  }
  return tags
}

function listed(value: string, word: string): boolean {
  return value.split(':').some((part) => part.trim() === word)
}
