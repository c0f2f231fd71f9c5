import type { JSX } from 'preact'
import type { Agent } from '../../../agents/model.ts'
import { FormDialog } from '../widgets/dialog.tsx'
import { Field, TextArea } from '../widgets/form.tsx'
import { IdentityField } from '../widgets/identity-field.tsx'

interface Props {
  title: string
  /** The current agent; omitted for a new one. */
  agent?: Agent
  submit: string
  /** Announced after success. */
  done?: string
  send: (input: Record<string, unknown>) => Promise<unknown>
  onClose: () => void
}

export function AgentDialog({ agent, send, ...dialog }: Props): JSX.Element {
  return (
    <FormDialog
      {...dialog}
      send={({ identity_id, handle, display_name, description, avatar_url, capabilities, links }) =>
        send({
          ...(identity_id ? { identity_id } : {}),
          ...(handle ? { handle } : {}),
          ...(display_name ? { display_name } : {}),
          description: description || null,
          avatar_url: avatar_url || null,
          capabilities: linesOf(capabilities),
          links: linesOf(links).map(linkOf),
        })
      }
      wide
    >
      {!agent && <IdentityField label="Identity" hint="Its name and e-mail address are public from then on." />}
      <Field
        name="handle"
        label="Handle"
        first
        autoComplete="off"
        defaultValue={agent?.handle}
        hint="a-z, 0-9 and hyphen; unique on this box, never reused. Empty: derived from the name."
      />
      <Field name="display_name" label="Name" autoComplete="off" defaultValue={agent?.display_name} />
      <TextArea name="description" label="Purpose" rows={3} defaultValue={agent?.description ?? ''} />
      <Field
        name="avatar_url"
        label="Picture"
        type="url"
        autoComplete="off"
        defaultValue={agent?.avatar_url ?? ''}
        hint="An https address. This page does not fetch it."
      />
      <TextArea
        name="capabilities"
        label="Capabilities"
        rows={2}
        hint="One per line."
        defaultValue={agent?.capabilities.join('\n')}
      />
      <TextArea
        name="links"
        label="Links"
        rows={2}
        hint="One per line: a name and an https address."
        defaultValue={agent?.links.map(({ name, url }) => `${name} ${url}`).join('\n')}
      />
    </FormDialog>
  )
}

function linesOf(text: string | true | undefined): string[] {
  return String(text ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** The URL is the last word: names may have spaces. */
function linkOf(line: string): { name: string; url: string } {
  const [, name = '', url = line] = /^(.*)\s(\S+)$/.exec(line) ?? []
  return { name: name.trim(), url }
}
