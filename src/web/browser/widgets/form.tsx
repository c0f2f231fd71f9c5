import {
  type ComponentChildren,
  createContext,
  type InputHTMLAttributes,
  type JSX,
  type PartialInputHTMLAttributes,
  type PartialSelectHTMLAttributes,
  type TextareaHTMLAttributes,
} from 'preact'
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks'
import { type ApiError, toApiError } from '../api.ts'
import { announce } from './announcer.tsx'

/** The values by field name; a checked checkbox is `true`. */
export type Typed = Record<string, string | true>

export interface FormProps {
  /** Submits the form, with the files in the second argument; an error is shown at its field. */
  send: (typed: Typed, files: FormData) => Promise<unknown>
  submit: string
  also?: ComponentChildren
  /** True if it is reset after success. */
  clears?: boolean
  /** Announced after success. */
  done?: string | undefined
  danger?: boolean
  label?: string
  children: ComponentChildren
}

const Refusal = createContext<ApiError | undefined>(undefined)

/** A form that shows API errors at their fields; an error of no field is shown above. */
export function Form({ send, submit, also, clears, done, danger, label, children }: FormProps): JSX.Element {
  const [refusal, setRefusal] = useState<ApiError>()
  const [busy, setBusy] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  const onSubmit = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (busy) return
    setBusy(true)
    setRefusal(undefined)
    try {
      await send(typedIn(form.current!), new FormData(form.current!))
      if (clears) form.current?.reset()
      if (done !== undefined) announce(done)
    } catch (error) {
      setRefusal(toApiError(error))
    } finally {
      setBusy(false)
    }
  }
  useEffect(() => {
    if (refusal) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [refusal])
  const placed = refusal?.param !== undefined && form.current && fieldOf(form.current, refusal.param)
  return (
    <form ref={form} class="form" aria-label={label} noValidate onSubmit={(event) => void onSubmit(event)}>
      <Refusal.Provider value={refusal}>
        <div role="alert">{refusal && !placed && <p class="refusal">{refusal.message}</p>}</div>
        {children}
      </Refusal.Provider>
      <div class="actions">
        <button type="submit" class={danger ? 'danger' : 'primary'} aria-disabled={busy} aria-busy={busy}>
          {submit}
        </button>
        {also}
      </div>
    </form>
  )
}

function typedIn(form: HTMLFormElement): Typed {
  const typed: Typed = {}
  for (const [name, value] of new FormData(form)) {
    const field = form.elements.namedItem(name)
    const ticked = field instanceof HTMLInputElement && field.type === 'checkbox'
    if (typeof value === 'string') typed[name] = ticked ? true : value
  }
  return typed
}

/** The fields that are not empty. */
export function filledIn(typed: Typed): Typed {
  return Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== ''))
}

/** An error may name a part of a field: `to.0` is the field `to`. */
function fieldOf(form: HTMLFormElement, param: string): Element | undefined {
  const name = param.split(/[.[]/, 1)[0]
  return [...form.elements].find((field) => 'name' in field && (field.name === param || field.name === name))
}

interface Described {
  name: string
  label: ComponentChildren
  hint?: ComponentChildren
  first?: boolean | undefined
}

interface InputProps extends Described, Omit<PartialInputHTMLAttributes<HTMLInputElement>, 'name' | 'label' | 'role' | 'type'> {
  type?: 'text' | 'email' | 'password' | 'number' | 'search' | 'url' | 'tel' | 'date' | 'datetime-local' | 'file'
}

/** A labelled input, with the API's error. */
export function Field({ name, label, hint, first, type = 'text', ...rest }: InputProps): JSX.Element {
  const { control, labelled } = useLabelled({ name, label, hint, first })
  // the types of Preact want one kind of input, not any of these
  const given = { ...rest, ...control, type } as InputHTMLAttributes
  return labelled(<input {...given} />)
}

type AreaProps = Described & Omit<TextareaHTMLAttributes, 'name' | 'label' | 'role'>

/** The same for many lines. */
export function TextArea({ name, label, hint, first, ...rest }: AreaProps): JSX.Element {
  const { control, labelled } = useLabelled({ name, label, hint, first })
  return labelled(<textarea rows={6} {...rest} {...control} />)
}

type SelectProps = Described &
  Omit<PartialSelectHTMLAttributes<HTMLSelectElement>, 'name' | 'label' | 'role'> & { children: ComponentChildren }

/** The same for a selection; its children are options. */
export function Select({ name, label, hint, first, ...rest }: SelectProps): JSX.Element {
  const { control, labelled } = useLabelled({ name, label, hint, first })
  return labelled(<select {...rest} {...control} />)
}

/** The same for a checkbox, which is before its label. */
export function Tick({ name, label, hint, first, ...rest }: InputProps): JSX.Element {
  const { control, labelled } = useLabelled({ name, label, hint, first })
  return labelled(<input {...rest} {...control} type="checkbox" />, true)
}

/** The hint of a field, and the API's error. */
export function Below({
  id,
  hint,
  refusal,
}: {
  id: string
  hint: ComponentChildren
  refusal: ApiError | undefined
}): JSX.Element {
  return (
    <>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {refusal && (
        <p class="refusal" id={`${id}-refusal`}>
          {refusal.message}
        </p>
      )}
    </>
  )
}

/** The API's error of this field, for custom fields. */
export function useRefusal(name: string): ApiError | undefined {
  const error = useContext(Refusal)
  const about = error?.param
  return about !== undefined && (about === name || about.split(/[.[]/, 1)[0] === name) ? error : undefined
}

/** The attributes of a control, and a function that adds its label, hint and error. */
function useLabelled({ name, label, hint, first = false }: Described) {
  const id = useId()
  useEffect(() => {
    if (first) document.querySelector<HTMLElement>(`#${id}`)?.focus()
  }, [first, id])
  const refusal = useRefusal(name)
  const ids = [hint === undefined ? '' : `${id}-hint`, refusal ? `${id}-refusal` : ''].filter((one) => one !== '')
  const control = {
    id,
    name,
    // a dialog looks for it when it opens
    autoFocus: first,
    'aria-invalid': refusal ? ('true' as const) : undefined,
    'aria-describedby': ids.length > 0 ? ids.join(' ') : undefined,
  }
  const labelled = (element: JSX.Element, tick = false): JSX.Element => (
    <div class={tick ? 'field tick' : 'field'}>
      {tick && element}
      <label for={id}>{label}</label>
      {!tick && element}
      <Below id={id} hint={hint} refusal={refusal} />
    </div>
  )
  return { control, labelled }
}
