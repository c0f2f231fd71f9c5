import type { JSX } from 'preact'
import type { Domain } from '../../../domains/model.ts'
import { post } from '../api.ts'
import { DomainState } from '../domains/record-line.tsx'
import { eventsOf, useList } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import { DialogButton, FormDialog } from '../widgets/dialog.tsx'
import { Field } from '../widgets/form.tsx'
import { Rows } from '../widgets/listing.tsx'
import { Time } from '../widgets/format.tsx'
import type { ViewProps } from '../views.ts'
import { DomainView } from '../domains/domain.tsx'

/** All domains, or one. */
export function View({ params }: ViewProps): JSX.Element {
  return params['id'] === undefined ? <List /> : <DomainView params={params} />
}

function List(): JSX.Element {
  const list = useList<Domain>('/v1/domains', {}, eventsOf('domain.'), true)
  return (
    <>
      <div class="head">
        <h1>Domains</h1>
        <DialogButton class="primary" dialog={(close) => <NewDomainDialog onClose={close} />}>
          Add a domain
        </DialogButton>
      </div>
      <Rows list={list} empty="No domain yet. Once the DNS records of a domain are correct, identities can have addresses in it.">
        {(domain) => (
          <li>
            <span class="grow">
              <Link href={`/domains/${domain.id}`}>
                <strong>{domain.name}</strong>
              </Link>{' '}
              {domain.default && <span class="faint">domain of the box</span>}
            </span>
            <span class="faint">
              {domain.last_checked_at === null ? (
                'not checked yet'
              ) : (
                <>
                  checked <Time at={domain.last_checked_at} />
                </>
              )}
            </span>
            <DomainState domain={domain} />
          </li>
        )}
      </Rows>
    </>
  )
}

function NewDomainDialog({ onClose }: { onClose: () => void }): JSX.Element {
  const hint = 'Such as agents.example.com. The next page shows the DNS records to publish.'
  return (
    <FormDialog
      title="Add a domain"
      submit="Add"
      send={async ({ name }) => go(`/domains/${(await post<Domain>('/v1/domains', { name })).id}`)}
      onClose={onClose}
    >
      <Field name="name" label="Name" first autoComplete="off" hint={hint} />
    </FormDialog>
  )
}
