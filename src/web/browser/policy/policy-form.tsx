import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { StoredPolicy } from '../../../policy/model.ts'
import { ApiError, patch } from '../api.ts'
import { type Loaded, useResource } from '../loaded.ts'
import { Choices } from '../widgets/choices.tsx'
import { Field, Form, Select } from '../widgets/form.tsx'
import { moment } from '../widgets/format.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'

type Rule = StoredPolicy['rules'][number]

/** A rule in the form. The names of its fields begin with its key, which stays when rules are moved. */
interface Draft {
  key: string
  rule: Rule
}

let count = 0

function draftOf(rule: Rule): Draft {
  return { key: `r${count++}`, rule }
}

const numbers = {
  recipients_over: 'More recipients than',
  new_per_day_over: 'More new recipients in 24 hours than',
  amount_over: 'Amount over (cents)',
} as const

const presets = {
  open: 'open: everything is sent',
  known: 'known: new recipients and cards are held',
  all: 'all: everything is held',
}

/** The policy at a path, to be changed. */
export function PolicyForm({ path }: { path: string }): JSX.Element {
  const policy = useResource<StoredPolicy>(path)
  return (
    <WhenLoaded of={policy}>
      {(value) => <Editor key={value.updated_at} path={path} policy={value} reload={policy.reload} />}
    </WhenLoaded>
  )
}

interface Props extends Pick<Loaded<StoredPolicy>, 'reload'> {
  path: string
  policy: StoredPolicy
}

function Editor({ path, policy, reload }: Props): JSX.Element {
  const [drafts, setDrafts] = useState(() => policy.rules.map(draftOf))
  const send = async (_typed: object, data: FormData): Promise<void> => {
    const rules = drafts.map(({ key }) => ruleIn(data, key))
    try {
      await patch(path, { preset: data.get('preset'), rules })
    } catch (error) {
      throw error instanceof ApiError ? placed(error, drafts) : error
    }
    await reload()
  }
  const move = (index: number, by: number): void => {
    const next = drafts.toSpliced(index, 1)
    setDrafts(next.toSpliced(index + by, 0, drafts[index]!))
  }
  return (
    <Form submit="Save the policy" label="Policy" done="The policy was saved." send={send}>
      {drafts.map(({ key, rule }, index) => (
        <fieldset key={key} class="choices">
          <legend>Rule {index + 1}</legend>
          <RuleFields name={key} rule={rule} />
          <p class="actions">
            {index > 0 && (
              <button type="button" class="plain" aria-label={`Move up rule ${index + 1}`} onClick={() => move(index, -1)}>
                Move up
              </button>
            )}
            <button
              type="button"
              class="plain"
              aria-label={`Remove rule ${index + 1}`}
              onClick={() => setDrafts(drafts.toSpliced(index, 1))}
            >
              Remove
            </button>
          </p>
        </fieldset>
      ))}
      <p>
        <button type="button" onClick={() => setDrafts([...drafts, draftOf({ when: {}, action: 'hold' })])}>
          Add a rule
        </button>
      </p>
      <Select name="preset" label="Where no rule holds">
        {Object.entries(presets).map(([value, words]) => (
          <option key={value} value={value} selected={value === policy.preset}>
            {words}
          </option>
        ))}
      </Select>
      {policy.updated_at !== null && <p class="hint">Changed {moment(policy.updated_at)}</p>}
    </Form>
  )
}

function RuleFields({ name, rule: { action, when } }: { name: string; rule: Rule }): JSX.Element {
  return (
    <>
      <Select name={`${name}.action`} label="Action">
        {['send', 'hold', 'refuse'].map((one) => (
          <option key={one} selected={one === action}>
            {one}
          </option>
        ))}
      </Select>
      <Field
        name={`${name}.to`}
        label="To"
        hint="own, known, new, @example.net, ada@example.net or a number, with spaces between; empty: all"
        autoComplete="off"
        defaultValue={when.to?.join(' ') ?? ''}
      />
      <Choices
        name={`${name}.channel`}
        legend="Channel (none: all)"
        choices={named('email', 'sms', 'card', 'login')}
        chosen={when.channel ?? []}
      />
      <Choices
        name={`${name}.found`}
        legend="One of these is found"
        choices={named('secret', 'key', 'card', 'code', 'unread')}
        chosen={when.found ?? []}
      />
      {(['attachments', 'links'] as const).map((one) => (
        <Select key={one} name={`${name}.${one}`} label={one === 'links' ? 'Links' : 'Attachments'}>
          <option value="">with or without</option>
          <option value="true" selected={when[one] === true}>
            with
          </option>
          <option value="false" selected={when[one] === false}>
            without
          </option>
        </Select>
      ))}
      <Select name={`${name}.reply`} label="Reply">
        <option value="">or not</option>
        <option value="verified" selected={when.reply !== undefined}>
          to a verified message of the recipient
        </option>
      </Select>
      {(Object.keys(numbers) as (keyof typeof numbers)[]).map((one) => (
        <Field
          key={one}
          name={`${name}.${one}`}
          label={numbers[one]}
          inputMode="numeric"
          autoComplete="off"
          defaultValue={when[one]?.toString() ?? ''}
        />
      ))}
    </>
  )
}

function named(...values: string[]): { value: string; label: string }[] {
  return values.map((value) => ({ value, label: value }))
}

/** The rule as it was typed; the API checks it. */
function ruleIn(data: FormData, key: string): object {
  const of = (name: string): string => (data.get(`${key}.${name}`) as string).trim()
  const when: Record<string, unknown> = {}
  const to = of('to')
  if (to !== '') when['to'] = to.split(/[\s,]+/).filter((one) => one !== '')
  for (const name of ['channel', 'found']) {
    const chosen = data.getAll(`${key}.${name}`)
    if (chosen.length > 0) when[name] = chosen
  }
  for (const name of ['attachments', 'links']) if (of(name) !== '') when[name] = of(name) === 'true'
  if (of('reply') !== '') when['reply'] = of('reply')
  // what is no number is sent as it is, to be refused
  for (const name of Object.keys(numbers)) if (of(name) !== '') when[name] = /^\d+$/.test(of(name)) ? Number(of(name)) : of(name)
  return { when, action: of('action') }
}

/** An error of `rules.2.when.to.0` is one of the field `to` of the third rule; one of a whole rule stands at its action. Rules are counted from 1. */
function placed(error: ApiError, drafts: Draft[]): ApiError {
  const [, index, field = 'action'] = /^rules\.(\d+)(?:\.when\.(\w+))?/.exec(error.param ?? '') ?? []
  const draft = drafts[Number(index)]
  const message = error.message.replaceAll(/\brules\.(\d+)/g, (_, number: string) => `rule ${Number(number) + 1}`)
  return new ApiError(message, { status: error.status, code: error.code, param: draft ? `${draft.key}.${field}` : error.param })
}
