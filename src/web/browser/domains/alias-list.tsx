import type { JSX } from 'preact'
import type { Domain } from '../../../domains/model.ts'
import type { Alias } from '../../../identities/model.ts'
import { patch, post, remove } from '../api.ts'
import { eventsOf, useList } from '../loaded.ts'
import { announce } from '../widgets/announcer.tsx'
import { ConfirmButton, DialogButton, FormDialog } from '../widgets/dialog.tsx'
import { Field } from '../widgets/form.tsx'
import { IdentityField, IdentityName } from '../widgets/identity-field.tsx'
import { Rows, Section } from '../widgets/listing.tsx'

interface Props {
  domain: Domain
  path: string
  onChange: () => Promise<void>
}

export function AliasList({ domain, path, onChange }: Props): JSX.Element {
  const list = useList<Alias>(`${path}/aliases`, {}, eventsOf('identity.deleted'))
  const { name, catch_all } = domain
  return (
    <Section id="aliases" title="Aliases">
      <div class="actions">
        <DialogButton
          dialog={(close) => (
            <FormDialog
              title="Add an alias"
              submit="Add"
              send={async (typed) => {
                const { address } = await post<Alias>(`${path}/aliases`, typed)
                await list.reload()
                announce(`${address} was added.`)
              }}
              onClose={close}
            >
              <Field name="local_part" label={`Address, before @${name}`} first autoComplete="off" autoCapitalize="none" />
              <IdentityField label="Delivers to" />
            </FormDialog>
          )}
        >
          Add an alias
        </DialogButton>
        <DialogButton
          dialog={(close) => (
            <FormDialog
              title="Catch-all"
              submit="Save"
              done="The catch-all was changed."
              send={(typed) => patch(path, { catch_all: typed['catch_all'] || null }).then(onChange)}
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
        >
          Catch-all
        </DialogButton>
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
              done={`${alias.address} was deleted.`}
              run={() => remove(`${path}/aliases/${alias.id}`).then(list.reload)}
            >
              <p>Mail to it is rejected from then on. Received mail is kept.</p>
            </ConfirmButton>
          </li>
        )}
      </Rows>
    </Section>
  )
}
