import type { Authentication } from '../../../mail/model.ts'

/** What SPF says, as a sentence. */
export function spfWords({ result, domain, reason }: Authentication['spf']): string {
  const who = domain ?? 'its sender'
  switch (result) {
    case 'pass':
      return `The server that sent it may send for ${who}.`
    case 'fail':
      return `The server that sent it may not send for ${who}.`
    case 'softfail':
      return `The server that sent it should not send for ${who}, which is not sure.`
    case 'none':
    case 'neutral':
      return `${domain ?? 'The sender'} does not say which servers may send for it.`
    default:
      return `It could not be found out${because(reason)}.`
  }
}

/** What one DKIM signature is worth. */
export function dkimWords({ result, domain, selector, aligned, reason }: Authentication['dkim'][number]): string {
  const by = `${domain} (key ${selector})`
  if (result === 'pass') {
    return `Signed by ${by}, and not changed since${aligned ? '.' : '; that is another domain than the sender it shows.'}`
  }
  if (result === 'policy') return `The signature of ${by} does not count${because(reason)}.`
  if (result === 'fail') return `The signature of ${by} is wrong${because(reason)}.`
  return `The signature of ${by} could not be checked${because(reason)}.`
}

const inputs = { none: 'nothing', quarantine: 'to treat such mail as spam', reject: 'to refuse such mail' }

/** Whether the sender that is shown is proved. */
export function dmarcWords({ result, domain, policy, aligned_by, reason }: Authentication['dmarc']): string {
  const who = domain ?? 'the sender'
  switch (result) {
    case 'pass':
      // an author that is proved, of a message that can be read in two ways
      if (reason?.startsWith('not verified')) return `${who} has sent it, but perhaps not as it is shown${because(reason)}.`
      return `It is really from ${who}, by ${aligned_by.map((one) => one.toUpperCase()).join(' and ')}.`
    case 'fail':
      return `Nothing proves that it is from ${who}, which asks ${policy === null ? 'nothing' : inputs[policy]}.`
    case 'none':
      return `${domain ?? 'The sender'} does not say how its mail is to be told from forgeries.`
    default:
      return `It could not be found out${because(reason)}.`
  }
}

/** How the last server handed it to us, from the first Received field, which is ours (RFC 5321 4.4). */
export function tlsWords(source: string): string {
  const field = /^Received:.*\r?\n(?:[ \t].*\r?\n)*/im.exec(source)?.[0]
  if (field === undefined) return 'It is not known how it came.'
  const [, version, cipher] = /\(using (\S+)\s+with cipher\s+([^\s)]+)\)/.exec(field) ?? []
  return version === undefined
    ? 'It came in the clear: anybody on the way could read it.'
    : `It came encrypted (${version}, ${cipher}).`
}

function because(reason: string | null): string {
  return reason === null || reason === '' ? '' : `: ${reason.replace(/\.$/, '')}`
}
