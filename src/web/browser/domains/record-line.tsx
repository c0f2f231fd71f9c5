import type { JSX } from 'preact'
import type { DnsRecord, Domain } from '../../../domains/model.ts'
import { CopyButton } from '../widgets/copy-button.tsx'
import { Mark } from '../widgets/format.tsx'
import { Fact } from '../widgets/listing.tsx'

const purposes: Record<DnsRecord['purpose'], string> = {
  mx: 'the mail servers of the domain',
  spf: 'servers that may send for the domain',
  dkim: 'the public key of its signatures',
  dmarc: 'the policy for unauthenticated mail',
  mta_sts: 'senders must use TLS',
  tls_rpt: 'the address of TLS reports',
}

const states = {
  valid: { tone: 'good', word: 'valid' },
  invalid: { tone: 'bad', word: 'not correct' },
  missing: { tone: 'warn', word: 'missing' },
} as const

export function RecordLine({ record }: { record: DnsRecord }): JSX.Element {
  const { purpose, required, type, name, value, priority, ttl, status, found, reason } = record
  const { tone, word } = states[status]
  return (
    <li class="record">
      <div class="record-head">
        <h3>
          <span class="mono">{type}</span> <span class="faint">{purposes[purpose]}</span>
        </h3>
        <span>
          {!required && <span class="faint">optional </span>}
          <Mark tone={tone}>{word}</Mark>
        </span>
      </div>
      <dl class="facts">
        <Fact name="Name">
          <span class="mono">{name}</span> <CopyButton text={name} what={`the name of ${type} ${name}`} />
        </Fact>
        <Fact name="Value">
          <span class="mono">{value}</span> <CopyButton text={value} what={`the value of ${type} ${name}`} />
        </Fact>
        {priority !== undefined && <Fact name="Priority">{priority}</Fact>}
        <Fact name="TTL">{ttl} s</Fact>
        {status === 'invalid' && found.length > 0 && (
          <Fact name="Found" class="mono">
            {found.join('\n')}
          </Fact>
        )}
      </dl>
      {reason !== null && <p class={status === 'valid' ? 'hint' : 'refusal'}>{reason}</p>}
    </li>
  )
}

export function DomainState({ domain: { status, dns_records } }: { domain: Domain }): JSX.Element {
  const wrong = dns_records.filter((record) => record.status !== 'valid').length
  return (
    <span>
      {status === 'verified' ? <Mark tone="good">verified</Mark> : <Mark tone="warn">pending</Mark>}
      {wrong > 0 && (
        <span class="faint">
          {' '}
          {wrong} of {dns_records.length} records not correct
        </span>
      )}
    </span>
  )
}
