import type { JSX } from 'preact'
import type { SenderRules } from '../../../mail/senders/model.ts'
import { patch } from '../api.ts'
import { useResource } from '../loaded.ts'
import { Field, Form, TextArea, Tick, type Typed } from '../widgets/form.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'

/** Who may write, by the lists at a path. */
export function SendersForm({ path }: { path: string }): JSX.Element {
  const senders = useResource<SenderRules>(path)
  const send = async (typed: Typed): Promise<void> => {
    const score = (typed['max_score'] as string).trim()
    await patch(path, {
      allow: entriesOf(typed['allow']),
      block: entriesOf(typed['block']),
      require_dmarc: typed['require_dmarc'] ?? false,
      replies: typed['replies'] ?? false,
      // what is no number is sent as it is, to be refused
      max_score: score === '' ? null : /^\d+$/.test(score) ? Number(score) : score,
    })
    await senders.reload()
  }
  return (
    <WhenLoaded of={senders}>
      {({ allow, block, require_dmarc, replies, max_score, updated_at }) => (
        <Form key={updated_at} submit="Save the lists" label="Who may write" done="The lists were saved." send={send}>
          <TextArea
            name="allow"
            label="Allowed"
            hint="Addresses and domains (@example.net), one a line; empty: everyone."
            defaultValue={allow.join('\n')}
          />
          <TextArea name="block" label="Blocked" defaultValue={block.join('\n')} />
          <Tick name="require_dmarc" label="Only senders that DMARC verifies" defaultChecked={require_dmarc} />
          <Tick name="replies" label="Verified answers always" defaultChecked={replies} />
          <Field
            name="max_score"
            label="Set aside above this score of screening"
            inputMode="numeric"
            autoComplete="off"
            defaultValue={max_score?.toString() ?? ''}
          />
        </Form>
      )}
    </WhenLoaded>
  )
}

function entriesOf(text: string | true | undefined): string[] {
  return String(text)
    .split(/[\s,]+/)
    .filter((one) => one !== '')
}
