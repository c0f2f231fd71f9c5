import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Authentication, Email } from '../../../mail/model.ts'
import { useText } from '../loaded.ts'
import { Mark } from '../widgets/format.tsx'
import { Fact } from '../widgets/listing.tsx'

export function VerdictMark({ email: { verified_domain, authentication } }: { email: Email }): JSX.Element | null {
  if (verified_domain !== null) return <Mark tone="good">verified: {verified_domain}</Mark>
  if (authentication === null) return null
  return authentication.dmarc.result === 'fail' ? (
    <Mark tone="bad">possibly forged</Mark>
  ) : (
    <Mark tone="warn">unverified sender</Mark>
  )
}

export function VerdictLines({ email }: { email: Email }): JSX.Element | null {
  const { authentication, identity_id, id } = email
  const [open, setOpen] = useState(false)
  if (authentication === null) return <p class="hint">Not checked: it was sent from within the box.</p>
  const { spf, dkim, dmarc } = authentication
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Authentication</summary>
      <dl class="facts">
        <Fact name="SPF">{spfWords(spf)}</Fact>
        <Fact name="DKIM">
          {dkim.length === 0
            ? 'It is not signed.'
            : dkim.map((signature, index) => <div key={index}>{dkimWords(signature)}</div>)}
        </Fact>
        <Fact name="DMARC">{dmarcWords(dmarc, email.verified_domain !== null)}</Fact>
        <Fact name="TLS">{open && <Transport path={`/v1/identities/${identity_id}/emails/${id}`} />}</Fact>
      </dl>
    </details>
  )
}

/** The transport is in the first lines of the source, which the box wrote itself. */
function Transport({ path }: { path: string }): JSX.Element {
  const { value, error } = useText(`${path}/raw`, { Range: 'bytes=0-4095' })
  return <>{error?.message ?? (value === undefined ? '…' : tlsWords(value))}</>
}

function spfWords({ result, domain, reason }: Authentication['spf']): string {
  const who = domain ?? 'its sender'
  switch (result) {
    case 'pass':
      return `The sending server is authorized by ${who}.`
    case 'fail':
      return `The sending server is not authorized by ${who}.`
    case 'softfail':
      return `The sending server is probably not authorized by ${who} (softfail).`
    case 'none':
      return `${domain ?? 'The sender'} publishes no SPF record.`
    case 'neutral':
      return `${domain ?? 'The sender'} does not say whether the sending server is authorized (neutral).`
    default:
      return `The check failed${because(reason)}.`
  }
}

function dkimWords({ result, domain, selector, aligned, reason }: Authentication['dkim'][number]): string {
  const by = `${domain} (key ${selector})`
  if (result === 'pass') {
    return `Valid signature of ${by}${aligned ? '.' : ', which is not the domain of the sender shown.'}`
  }
  if (result === 'policy') return `The signature of ${by} is ignored${because(reason)}.`
  if (result === 'fail') return `The signature of ${by} is invalid${because(reason)}.`
  return `The signature of ${by} could not be checked${because(reason)}.`
}

const policyWords = { none: 'none', quarantine: 'quarantine', reject: 'reject' }

/** The DMARC result as a sentence; `verified` is whether the e-mail has a verified domain. */
function dmarcWords({ result, domain, policy, aligned_by, reason }: Authentication['dmarc'], verified: boolean): string {
  const who = domain ?? 'the sender'
  switch (result) {
    case 'pass':
      // an authenticated author, of a message that can be parsed in two ways
      if (!verified) return `It was sent by ${who}, but may display differently than was signed${because(reason)}.`
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
function tlsWords(source: string): string {
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
