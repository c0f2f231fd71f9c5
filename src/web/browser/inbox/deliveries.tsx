import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Delivery, Email } from '../../../mail/model.ts'
import { useResource } from '../loaded.ts'
import { Mark, moment, type Tone } from '../widgets/format.tsx'
import { Table, WhenLoaded } from '../widgets/listing.tsx'

export function Deliveries({ path, deliveries }: { path: string; deliveries: Delivery[] }): JSX.Element {
  const [whole, setWhole] = useState(false)
  return (
    <div class="deliveries">
      <h4>Delivery</h4>
      <ul class="rows" aria-live="polite">
        {deliveries.map((delivery) => (
          <li key={delivery.recipient}>
            <span class="grow mono">{delivery.recipient}</span>
            <StatusMark status={delivery.status} />
            <span class="faint delivery-words">{wordsOf(delivery)}</span>
          </li>
        ))}
      </ul>
      <button type="button" class="plain" aria-expanded={whole} onClick={() => setWhole(!whole)}>
        {whole ? 'Hide the attempts' : 'Show the attempts'}
      </button>
      {whole && <Attempts path={path} />}
    </div>
  )
}

function wordsOf({ status, response, mx, tls, attempts, next_attempt_at, delivered_at }: Delivery): string {
  const where = mx === null ? '' : ` by ${mx}`
  const how = mx === null ? '' : tls === null ? ', without TLS' : `, over ${tls}`
  if (status === 'delivered' || status === 'sent')
    return `accepted${where}${delivered_at ? ` ${moment(delivered_at)}` : ''}${how}`
  if (status === 'deferred') {
    const next = next_attempt_at === null ? '' : `; next attempt ${moment(next_attempt_at)}`
    return `${attempts} attempts${next}. ${response ?? ''}`
  }
  return response ?? ''
}

function Attempts({ path }: { path: string }): JSX.Element {
  const email = useResource<Email>(path, ({ data: { id } }) => typeof id === 'string' && path.endsWith(`/${id}`))
  return (
    <WhenLoaded of={email}>
      {({ deliveries }) => (
        <Table label="Attempts" headings={['Recipient', 'When', 'Outcome', 'Answer']}>
          {deliveries.flatMap(({ recipient, history }) =>
            (history ?? []).map(({ number, started_at, outcome, response, mx }) => (
              <tr key={`${recipient} ${number}`}>
                <td class="mono">{recipient}</td>
                <td>{moment(started_at)}</td>
                <td>{outcome}</td>
                <td>
                  {mx !== null && <span class="mono">{mx}: </span>}
                  {response}
                </td>
              </tr>
            )),
          )}
        </Table>
      )}
    </WhenLoaded>
  )
}

const tones: Partial<Record<Email['status'], Tone>> = {
  delivered: 'good',
  sent: 'good',
  deferred: 'warn',
  bounced: 'bad',
  failed: 'bad',
  cancelled: 'warn',
}

export function StatusMark({ status }: { status: Email['status'] }): JSX.Element {
  return <Mark tone={tones[status]}>{status}</Mark>
}
