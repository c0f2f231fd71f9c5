import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Domain } from '../../../domains/model.ts'
import type { Alias } from '../../../identities/model.ts'
import { patch, post, remove } from '../api.ts'
import { useList } from '../loaded.ts'
import { announce } from '../widgets/announcer.tsx'
import { ConfirmButton, FormDialog } from '../widgets/dialog.tsx'
import { Field } from '../widgets/form.tsx'
import { IdentityField, IdentityName } from '../widgets/identity-field.tsx'
import { Rows } from '../widgets/listing.tsx'

interface Props {
  domain: Domain
  path: string
  onChange: () => Promise<void>
}

/** The aliases of a domain, and its catch-all. */
export function AliasList({ domain, path, onChange }: Props): JSX.Element {
  const [asking, setAsking] = useState<'add' | 'catch-all'>()
  const close = (): void => setAsking(undefined)
  const list = useList<Alias>(`${path}/aliases`, {}, ({ type }) => type === 'identity.deleted')
  const { name, catch_all } = domain
  return (
    <section aria-labelledby="aliases">
      <h2 id="aliases">Aliases</h2>
      <div class="actions">
        <button type="button" onClick={() => setAsking('add')}>
          Add an alias
        </button>
        <button type="button" onClick={() => setAsking('catch-all')}>
          Catch-all
        </button>
      </div>
      <p class="faint">
        {catch_all === null ? (
          'Mail for unknown addresses is rejected.'
        ) : (
          <>
            Mail for unknown addresses goes to <IdentityName id={catch_all} />.
          </>
        )}
      </p>
      <Rows list={list} empty="No alias yet. An alias is an additional address whose mail goes to an identity.">
        {(alias) => (
          <li>
            <span class="grow breaks">
              <strong>{alias.address}</strong>
              <br />
              <span class="faint">
                goes to <IdentityName id={alias.identity_id} />
              </span>
            </span>
            <ConfirmButton
              label="Delete"
              name={`Delete ${alias.address}`}
              title={`Delete ${alias.address}?`}
              action="Delete the alias"
              run={async () => {
                await remove(`${path}/aliases/${alias.id}`)
                await list.reload()
                announce(`${alias.address} was deleted.`)
              }}
            >
              <p>Mail to it is rejected from then on. Received mail is kept.</p>
            </ConfirmButton>
          </li>
        )}
      </Rows>
      {asking === 'add' && (
        <FormDialog
          title="Add an alias"
          submit="Add"
          send={async (typed) => {
            const { address } = await post<Alias>(`${path}/aliases`, typed)
            await list.reload()
            announce(`${address} was added.`)
            close()
          }}
          onClose={close}
        >
          <Field name="local_part" label={`Address, before @${name}`} first autoComplete="off" autoCapitalize="none" />
          <IdentityField label="Delivers to" />
        </FormDialog>
      )}
      {asking === 'catch-all' && (
        <FormDialog
          title="Catch-all"
          submit="Save"
          send={async (typed) => {
            await patch(path, { catch_all: typed['catch_all'] === '' ? null : typed['catch_all'] })
            await onChange()
            announce('The catch-all was changed.')
            close()
          }}
          onClose={close}
        >
          <IdentityField
            name="catch_all"
            label="Mail for unknown addresses"
            none="is rejected"
            chosen={catch_all}
            hint="Spammers try many addresses: a catch-all receives mail to all of them."
          />
        </FormDialog>
      )}
    </section>
  )
}
