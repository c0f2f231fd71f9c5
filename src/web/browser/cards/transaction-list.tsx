import type { JSX } from 'preact'
import type { Card, CardTransaction } from '../../../cards/model.ts'
import { useList } from '../loaded.ts'
import { Listing } from '../widgets/listing.tsx'
import { Mark } from '../widgets/mark.tsx'
import { money, Time } from '../widgets/format.tsx'

const words: Record<CardTransaction['type'], string> = {
  reveal: 'revealed',
  report: 'spent',
  refund: 'refunded',
  reset: 'reset to 0',
}

const reasons: Record<NonNullable<CardTransaction['reason']>, string> = {
  card_frozen: 'the card was frozen',
  card_cancelled: 'the card was cancelled',
  budget_exceeded: 'over budget',
  repeated: 'repeated call',
}

/** The ledger of a card, newest first. */
export function TransactionList({ card: { id, card_name, currency } }: { card: Card }): JSX.Element {
  const list = useList<CardTransaction>(
    `/v1/cards/${id}/transactions`,
    {},
    ({ type, data }) => type.startsWith('card.') && data['id'] === id,
    true,
  )
  return (
    <Listing list={list} empty="Nothing yet.">
      {(rows) => (
        <div class="scrolls" role="region" tabIndex={0} aria-label={`Transactions of ${card_name}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">What</th>
                <th scope="col">Amount</th>
                <th scope="col">For</th>
                <th scope="col">By</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <td>
                    <Time at={row.created_at} />
                  </td>
                  <td>
                    {words[row.type]} {!row.allowed && <Mark tone="bad">refused</Mark>}
                    {row.reason !== null && <span class="faint"> {reasons[row.reason]}</span>}
                  </td>
                  <td>{row.amount_cents === null ? '–' : money(row.amount_cents, currency)}</td>
                  <td>{row.purpose ?? row.description}</td>
                  <td class="faint">
                    <span class="mono">{row.ip}</span> {row.key_id ?? 'a person'}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Listing>
  )
}
