import type { ComponentChildren, JSX } from 'preact'
import { useId } from 'preact/hooks'
import { Below, useRefusal } from './form.tsx'

interface Props {
  /** The field name; FormData.getAll() returns the checked values. */
  name: string
  legend: string
  choices: readonly { value: string; label: ComponentChildren; hint?: string }[]
  chosen: readonly string[]
}

/** A group of checkboxes, with the API's error. */
export function Choices({ name, legend, choices, chosen }: Props): JSX.Element {
  const id = useId()
  const refusal = useRefusal(name)
  return (
    <fieldset class="choices" aria-describedby={refusal ? `${id}-refusal` : undefined}>
      <legend>{legend}</legend>
      <div class="choices-all">
        {choices.map((choice, index) => (
          <div key={choice.value} class="choice">
            <input
              type="checkbox"
              id={`${id}-${index}`}
              name={name}
              value={choice.value}
              defaultChecked={chosen.includes(choice.value)}
              aria-invalid={refusal ? 'true' : undefined}
              aria-describedby={choice.hint === undefined ? undefined : `${id}-${index}-hint`}
            />
            <label for={`${id}-${index}`}>{choice.label}</label>
            <Below id={`${id}-${index}`} hint={choice.hint} refusal={undefined} />
          </div>
        ))}
      </div>
      <Below id={id} hint={undefined} refusal={refusal} />
    </fieldset>
  )
}
