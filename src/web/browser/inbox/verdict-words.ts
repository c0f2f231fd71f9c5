import type { Authentication } from '../../../mail/model.ts'

/** The SPF result as a sentence. */
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
      return `${domain ?? 'The sender'} publishes no SPF record.`
    default:
      return `The check failed${because(reason)}.`
  }
}

/** The result of one DKIM signature as a sentence. */
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

/** The DMARC result as a sentence. */
export function dmarcWords({ result, domain, policy, aligned_by, reason }: Authentication['dmarc']): string {
  const who = domain ?? 'the sender'
  switch (result) {
    case 'pass':
      // an authenticated author, of a message that can be parsed in two ways
      if (reason?.startsWith('not verified'))
        return `It was sent by ${who}, but may display differently than was signed${because(reason)}.`
      return `Verified: it is from ${who}, by ${aligned_by.map((one) => one.toUpperCase()).join(' and ')}.`
    case 'fail':
      return `Not verified as from ${who}, whose policy is ${policy === null ? 'none' : policyWords[policy]}.`
    case 'none':
      return `${domain ?? 'The sender'} publishes no DMARC policy.`
    default:
      return `The check failed${because(reason)}.`
  }
}

/** The transport of the last hop, from the first Received field, which is ours (RFC 5321 4.4). */
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
