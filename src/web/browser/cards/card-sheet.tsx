import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Card } from '../../../cards/model.ts'
import { post } from '../api.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Bar } from '../widgets/bar.tsx'
import { Confirm } from '../widgets/dialog.tsx'
import { Mark } from '../widgets/mark.tsx'
import { money } from '../widgets/format.tsx'
import { LimitsDialog, periodWords } from './limits-form.tsx'
import { TransactionList } from './transaction-list.tsx'

const tones = { active: 'good', frozen: 'warn', cancelled: 'bad' } as const

interface Props {
  card: Card
  onChange: () => Promise<void>
}

/** One card, without its number. */
export function CardSheet({ card, onChange }: Props): JSX.Element {
  const [asking, setAsking] = useState<'cancel' | 'freeze' | 'limits'>()
  const [open, setOpen] = useState(false)
  const { id, card_name, brand, last4, exp_month, exp_year, status, budget_cents, spent_cents, currency, period } = card
  const close = (): void => setAsking(undefined)
  const change = async (verb: string, said: string): Promise<void> => {
    await post(`/v1/cards/${id}/${verb}`)
    await onChange()
    announce(said)
  }
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
        text={`${money(spent_cents, currency)} of ${money(budget_cents, currency)}`}
      />
      <div class="actions below">
        {status === 'active' && (
          <button type="button" onClick={() => setAsking('freeze')}>
            Freeze
          </button>
        )}
        {status === 'frozen' && <Action run={() => change('unfreeze', `${card_name} is active again.`)}>Unfreeze</Action>}
        {status !== 'cancelled' && (
          <>
            <button type="button" onClick={() => setAsking('limits')}>
              Budget
            </button>
            <button type="button" class="danger" onClick={() => setAsking('cancel')}>
              Cancel the card
            </button>
          </>
        )}
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          Transactions
        </button>
      </div>
      {open && <TransactionList card={card} />}
      {asking === 'limits' && <LimitsDialog card={card} onChange={onChange} onClose={close} />}
      {asking === 'freeze' && (
        <Confirm
          title={`Freeze ${card_name}?`}
          action="Freeze"
          run={() => change('freeze', `${card_name} is frozen.`)}
          onClose={close}
        >
          <p>The card cannot be revealed until it is unfrozen.</p>
        </Confirm>
      )}
      {asking === 'cancel' && (
        <Confirm
          title={`Cancel ${card_name}?`}
          action={`Cancel •••• ${last4}`}
          run={() => change('cancel', `${card_name} is cancelled.`)}
          onClose={close}
        >
          <p>
            Cancelling is permanent: the encrypted data of {brand} •••• {last4} is destroyed. Its transactions stay. At its bank
            the card is not cancelled by this.
          </p>
        </Confirm>
      )}
    </li>
  )
}
