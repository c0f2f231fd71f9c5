import type { DomainRow } from './types.ts'

/** The settings that decide where mail from a domain can be sent. */
export interface SendingSettings {
  mode: 'direct' | 'relay' | 'none'
  relays: readonly { domains: readonly string[] }[]
  unverified_domains: 'refuse' | 'relay'
}

/** A domain of the box whose mail is to be sent. */
export type Sender = Pick<DomainRow, 'name' | 'status' | 'is_default'>

/** Where mail from a domain can be sent, and why: the same words in the API, the page, the doctor and on the command line. */
export interface SendingRights {
  /** True if it can be sent to any address. */
  outside: boolean
  explanation: string
  /** Whom a caller can ask for what; null if it can be sent anywhere. */
  request: string | null
  /** What the operator can do; null if it can be sent anywhere. */
  fix: string | null
}

/** True if mail from a domain that is not verified may go to a domain (lower-case A-labels), as it is a relay that sends it. */
export function mayRelay({ mode, relays, unverified_domains }: SendingSettings, to: string): boolean {
  return unverified_domains === 'relay' && (mode === 'relay' || relays.some(({ domains }) => domains.includes(to)))
}

export function sendingRights({ name, status, is_default }: Sender, settings: SendingSettings): SendingRights {
  const { mode, relays, unverified_domains } = settings
  const verified = status === 'verified'
  const some = relays.length > 0 && (verified || unverified_domains === 'relay')
  const only = `mail from it can be sent only to addresses on this box${some ? ' and at the domains of outbound.relays' : ''}`
  if (mode === 'none') {
    return {
      outside: false,
      explanation: `${name} is on a box whose outgoing mail is disabled (outbound.mode is none), so ${only}.`,
      request: 'Ask whoever runs this box to set outbound.mode.',
      fix: 'Set outbound.mode to direct or relay.',
    }
  }
  const through = mode === 'relay' ? ', through the relay of this box' : ''
  if (verified) return anywhere(`${name} is verified, so mail from it can be sent anywhere${through}.`)
  if (mode === 'relay' && unverified_domains === 'relay') {
    return anywhere(
      `${name} is not verified, but mail from it can be sent anywhere${through} (outbound.unverified_domains); ` +
        'receivers may refuse it, or take it for spam, until its DNS records are right.',
    )
  }
  const who = is_default === 1 ? 'whoever runs this box' : 'whoever manages this account'
  const [unless, or] =
    mode === 'relay'
      ? [
          ' The operator can also allow it without them: outbound.unverified_domains: relay.',
          '\nOr, if the relay accepts mail from it, set outbound.unverified_domains to relay.',
        ]
      : ['', '']
  return {
    outside: false,
    explanation: `${name} is not verified, so ${only}.`,
    request: `Ask ${who} to set the DNS records that GET /v1/domains shows, and then to call POST /v1/domains/{id}/verify.${unless}`,
    fix: `Publish the records shown by: pillarbox domain check ${name}${or}`,
  }
}

function anywhere(explanation: string): SendingRights {
  return { outside: true, explanation, request: null, fix: null }
}
