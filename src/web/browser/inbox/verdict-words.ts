import type { Authentication } from '../../../mail/model.ts'

/** What SPF says, as a sentence. */
export function spfWords({ result, domain, reason }: Authentication['spf']): string {
  const who = domain ?? 'its sender'
  switch (result) {
    case 'pass':
      return `The sending server is authorized by ${who}.`
    case 'fail':
      return `The sending server is not authorized by ${who}.`
    case 'softfail':
      return `The sending server is probably not authorized by ${who} (softfail).`
    case 'none':
    case 'neutral':
      return `${domain ?? 'The sender'} publishes no list of servers that may send for it.`
    default:
      return `The check failed${because(reason)}.`
  }
}

/** What one DKIM signature is worth. */
export function dkimWords({ result, domain, selector, aligned, reason }: Authentication['dkim'][number]): string {
  const by = `${domain} (key ${selector})`
  if (result === 'pass') {
    return `Valid signature of ${by}${aligned ? '.' : ', which is not the domain of the sender shown.'}`
  }
  if (result === 'policy') return `The signature of ${by} is ignored${because(reason)}.`
  if (result === 'fail') return `The signature of ${by} is invalid${because(reason)}.`
  return `The signature of ${by} could not be checked${because(reason)}.`
}

const policyWords = { none: 'none', quarantine: 'quarantine', reject: 'reject' }

/** Whether the sender that is shown is proved. */
export function dmarcWords({ result, domain, policy, aligned_by, reason }: Authentication['dmarc']): string {
  const who = domain ?? 'the sender'
  switch (result) {
    case 'pass':
      // an author that is proved, of a message that can be read in two ways
      if (reason?.startsWith('not verified')) return `It was sent by ${who}, but may display differently than was signed${because(reason)}.`
      return `Verified: it is from ${who}, by ${aligned_by.map((one) => one.toUpperCase()).join(' and ')}.`
    case 'fail':
      return `Not verified as from ${who}, whose policy is ${policy === null ? 'none' : policyWords[policy]}.`
    case 'none':
      return `${domain ?? 'The sender'} publishes no DMARC policy.`
    default:
      return `The check failed${because(reason)}.`
  }
}

/** How the last server handed it to us, from the first Received field, which is ours (RFC 5321 4.4). */
export function tlsWords(source: string): string {
  const field = /^Received:.*\r?\n(?:[ \t].*\r?\n)*/im.exec(source)?.[0]
  if (field === undefined) return 'Its transport is unknown.'
  const [, version, cipher] = /\(using (\S+)\s+with cipher\s+([^\s)]+)\)/.exec(field) ?? []
  return version === undefined
    ? 'It was received without TLS: others on the network could read it.'
    : `It was received over TLS (${version}, ${cipher}).`
}

function because(reason: string | null): string {
  return reason === null || reason === '' ? '' : `: ${reason.replace(/\.$/, '')}`
}
