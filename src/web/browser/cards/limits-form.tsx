import type { JSX } from 'preact'
import type { Card, CardLimits, Period } from '../../../cards/model.ts'
import { patch } from '../api.ts'
import { useResource } from '../loaded.ts'
import { announce } from '../widgets/announcer.tsx'
import { Cancel, Dialog } from '../widgets/dialog.tsx'
import { Field, Form, Select, Tick } from '../widgets/form.tsx'
import { minorUnits, moment, money, typedAmount } from '../widgets/format.tsx'

interface Props {
  card: Card
  onChange: () => Promise<void>
  onClose: () => void
}

/** The budget of a card and its period. */
export function LimitsDialog({ card, onChange, onClose }: Props): JSX.Element {
  const { id, card_name, currency, period, budget_cents } = card
  const path = `/v1/cards/${id}/limits`
  const limits = useResource<CardLimits>(path)
  const left = limits.value
  return (
    <Dialog title={`The budget of ${card_name}`} onClose={onClose}>
      <Form
        submit="Change"
        label="Budget"
        also={<Cancel onClose={onClose} />}
        send={async (typed) => {
          const wanted = String(typed['currency']).trim()
          await patch(path, {
            budget_cents: minorUnits(String(typed['budget_cents']), /^[a-z]{3}$/i.test(wanted) ? wanted : currency),
            currency: wanted,
            period: typed['period'],
            ...(typed['reset_spent'] ? { reset_spent: true } : {}),
          })
          await onChange()
          announce(`The budget of ${card_name} was changed.`)
          onClose()
        }}
      >
        {left && (
          <p>
            {money(left.remaining_cents, left.currency)} left
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
      </Form>
    </Dialog>
  )
}

/** The periods in words. */
export const periodWords: Record<Period, string> = {
  one_time: 'in all',
  daily: 'a day',
  weekly: 'a week',
  monthly: 'a month',
  yearly: 'a year',
}
