import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { AuditRow } from '../../../audit/model.ts'
import { useList } from '../loaded.ts'
import { Link } from '../router.tsx'
import { Field, filledIn, Form, Select } from '../widgets/form.tsx'
import { moment } from '../widgets/format.tsx'
import { IdentityField } from '../widgets/identity-field.tsx'
import { Listing, Table } from '../widgets/listing.tsx'

const subjects: Record<string, string> = {
  'key.*': 'API keys',
  'session.*': 'sessions',
  'sign_in.*': 'failed sign-ins',
  'call.*': 'refused calls',
  'rules.*': 'policies and lists',
  'hold.*': 'decisions',
  'email.*': 'e-mail',
  'sms.*': 'text messages',
  'totp.*': 'one-time passwords',
  'card.*': 'cards',
  'login.*': 'logins',
  'export.*': 'exports',
  'identity.*': 'identities',
  'settings.*': 'settings',
}

export function View(): JSX.Element {
  const [query, setQuery] = useState<Record<string, string | boolean>>({})
  const list = useList<AuditRow>('/v1/audit', query, () => false, true)
  return (
    <>
      <div class="head">
        <h1>Audit log</h1>
        <Link href="/account">Account</Link>
      </div>
      <Form submit="Filter" label="Filter the audit log" send={async (typed) => setQuery(filledIn(typed))}>
        <Select name="action" label="What">
          <option value="">everything</option>
          {Object.entries(subjects).map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </Select>
        <IdentityField label="Identity" none="every identity" />
        <Field name="actor" label="By" hint="The id of a key or person, operator or anonymous." autoComplete="off" />
      </Form>
      <Listing list={list} empty="No results.">
        {(rows) => (
          <Table label="Rows of the audit log" headings={['When', 'Who', 'From', 'What', 'To what']}>
            {rows.map((row) => (
              <RowLine key={row.seq} row={row} />
            ))}
          </Table>
        )}
      </Listing>
    </>
  )
}

function RowLine({ row: { at, actor, client, address, action, target, count, detail } }: { row: AuditRow }): JSX.Element {
  const further = Object.keys(detail).length === 0 ? '' : JSON.stringify(detail)
  return (
    <tr>
      <td>{moment(at)}</td>
      <td class="mono">{actor}</td>
      <td class="mono">{[client, address].filter((one) => one !== null).join(' ')}</td>
      <td>
        {action}
        {count > 1 && ` ×${count}`}
      </td>
      <td class="mono">
        {target} <span class="faint">{further}</span>
      </td>
    </tr>
  )
}
