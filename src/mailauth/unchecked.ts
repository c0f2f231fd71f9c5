import { authenticationResults, oneLine } from './authentication-results.ts'
import type { Authentication, AuthResult, Envelope, Verdict } from '../mail/model.ts'

/** The verdict on a message that was not checked: the same result for every check, action `keep`. */
export function uncheckedVerdict(envelope: Envelope, hostname: string, why: string, result: AuthResult = 'temperror'): Verdict {
  const reason = oneLine(why)
  const authentication: Authentication = {
    spf: { result, domain: null, reason },
    dkim: [],
    dmarc: { result, domain: null, policy: null, aligned_by: [], reason },
    arc: { result, chain: 0, reason },
  }
  return verdictOf(envelope, hostname, authentication, null)
}

/** The verdict on a message between identities of this box: its From is verified, as the message never left the box. */
export function internalVerdict(envelope: Envelope, hostname: string, from: string): Verdict {
  const domain = from.slice(from.lastIndexOf('@') + 1)
  const reason = 'sent on this box'
  const authentication: Authentication = {
    spf: { result: 'none', domain: null, reason },
    dkim: [],
    dmarc: { result: 'pass', domain, policy: null, aligned_by: [], reason },
    arc: { result: 'none', chain: 0, reason },
  }
  return verdictOf(envelope, hostname, authentication, domain)
}

function verdictOf(
  envelope: Envelope,
  hostname: string,
  authentication: Authentication,
  verified_domain: string | null,
): Verdict {
  return {
    authentication,
    verified_domain,
    action: 'keep',
    reply: null,
    authentication_results: authenticationResults(hostname, authentication, envelope),
    published: null,
    forwarder: null,
  }
}
