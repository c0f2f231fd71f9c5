import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { moneyText } from '../../../cards/money.ts'
import type { Card, CardLimits, CardTransaction, Period } from '../../../cards/model.ts'
import { patch, post } from '../api.ts'
import { Action } from '../widgets/action.tsx'
import { Bar } from '../widgets/bar.tsx'
import { ConfirmButton, DialogButton, FormDialog } from '../widgets/dialog.tsx'
import { Mark, minorUnits, moment, Time, typedAmount } from '../widgets/format.tsx'
import { eventsOf, useList, useResource } from '../loaded.ts'
import { Listing, Table } from '../widgets/listing.tsx'
import { Field, Select, Tick } from '../widgets/form.tsx'

const tones = { active: 'good', frozen: 'warn', cancelled: 'bad' } as const

interface Props {
  card: Card
  onChange: () => Promise<void>
}

export function CardSheet({ card, onChange }: Props): JSX.Element {
  const [open, setOpen] = useState(false)
  const { id, card_name, brand, last4, exp_month, exp_year, status, budget_cents, spent_cents, currency, period } = card
  const change = (verb: string, idempotent: boolean): Promise<void> =>
    post(`/v1/cards/${id}/${verb}`, {}, { idempotent }).then(onChange)
  return (
    <li class="sheet card">
      <div class="record-head">
        <h2>
          {card_name} <Mark tone={tones[status]}>{status}</Mark>
        </h2>
        <span class="mono">
          {brand} •••• {last4} · {String(exp_month).padStart(2, '0')}/{exp_year % 100}
        </span>
      </div>
      <Bar
        label={periodWords[period]}
        value={spent_cents}
        max={budget_cents}
        text={`${moneyText(spent_cents, currency)} of ${moneyText(budget_cents, currency)}`}
      />
      <div class="actions below">
        {status === 'active' && (
          <ConfirmButton
            label="Freeze"
            title={`Freeze ${card_name}?`}
            action="Freeze"
            done={`${card_name} is frozen.`}
            run={() => change('freeze', true)}
          >
            <p>The card cannot be revealed until it is unfrozen.</p>
          </ConfirmButton>
        )}
        {status === 'frozen' && (
          <Action run={() => change('unfreeze', true)} done={`${card_name} is active again.`}>
            Unfreeze
          </Action>
        )}
        {status !== 'cancelled' && (
          <>
            <DialogButton dialog={(close) => <LimitsDialog card={card} onChange={onChange} onClose={close} />}>
              Budget
            </DialogButton>
            <ConfirmButton
              label="Cancel the card"
              kind="danger"
              title={`Cancel ${card_name}?`}
              action={`Cancel •••• ${last4}`}
              done={`${card_name} is cancelled.`}
              run={() => change('cancel', false)}
            >
              <p>
                Cancelling is permanent: the encrypted data of {brand} •••• {last4} is destroyed. Its transactions stay. It is not
                cancelled at its bank.
              </p>
            </ConfirmButton>
          </>
        )}
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          Transactions
        </button>
      </div>
      {open && <TransactionList card={card} />}
    </li>
  )
}

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
  held: 'waits for a person',
  policy_refused: 'refused by a policy',
}

function TransactionList({ card: { id, card_name, currency } }: { card: Card }): JSX.Element {
  const list = useList<CardTransaction>(`/v1/cards/${id}/transactions`, {}, eventsOf('card.'), true)
  return (
    <Listing list={list} empty="Nothing yet.">
      {(rows) => (
        <Table label={`Transactions of ${card_name}`} headings={['When', 'What', 'Amount', 'For', 'By']}>
          {rows.map((row) => (
            <tr key={row.id}>
              <td>
                <Time at={row.created_at} />
              </td>
              <td>
                {words[row.type]} {!row.allowed && <Mark tone="bad">refused</Mark>}
                {row.reason !== null && <span class="faint"> {reasons[row.reason]}</span>}
              </td>
              <td>{row.amount_cents === null ? '–' : moneyText(row.amount_cents, currency)}</td>
              <td>{row.purpose ?? row.description}</td>
              <td class="faint">
                <span class="mono">{row.ip}</span> {row.key_id ?? 'a person'}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Listing>
  )
}

function LimitsDialog({ card, onChange, onClose }: Props & { onClose: () => void }): JSX.Element {
  const { id, card_name, currency, period, budget_cents } = card
  const path = `/v1/cards/${id}/limits`
  const limits = useResource<CardLimits>(path)
  const left = limits.value
  return (
    <FormDialog
      title={`The budget of ${card_name}`}
      submit="Change"
      label="Budget"
      done={`The budget of ${card_name} was changed.`}
      send={async (typed) => {
        const wanted = String(typed['currency']).trim()
        await patch(path, {
          budget_cents: minorUnits(String(typed['budget_cents']), /^[a-z]{3}$/i.test(wanted) ? wanted : currency),
          currency: wanted,
          period: typed['period'],
          ...(typed['reset_spent'] ? { reset_spent: true } : {}),
        })
        await onChange()
      }}
      onClose={onClose}
    >
      {left && (
        <p>
          {moneyText(left.remaining_cents, left.currency)} left
          {left.resets_at !== null && `; resets ${moment(left.resets_at)}`}.
        </p>
      )}
      <Field
        name="budget_cents"
        label="Budget"
        first
        inputMode="decimal"
        autoComplete="off"
        defaultValue={typedAmount(budget_cents, currency)}
      />
      <Field name="currency" label="Currency" autoComplete="off" maxLength={3} defaultValue={currency} />
      <Select name="period" label="For">
        {Object.entries(periodWords).map(([value, label]) => (
          <option key={value} value={value} selected={value === period}>
            {label}
          </option>
        ))}
      </Select>
      <Tick name="reset_spent" label="Reset the amount spent to 0" />
    </FormDialog>
  )
}

const periodWords: Record<Period, string> = {
  one_time: 'in all',
  daily: 'a day',
  weekly: 'a week',
  monthly: 'a month',
  yearly: 'a year',
}
