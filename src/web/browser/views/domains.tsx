import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Domain } from '../../../domains/model.ts'
import { post } from '../api.ts'
import { DomainState } from '../domains/record-line.tsx'
import { useList } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import { FormDialog } from '../widgets/dialog.tsx'
import { Field } from '../widgets/form.tsx'
import { Rows } from '../widgets/listing.tsx'
import { Time } from '../widgets/format.tsx'

/** The domains that receive and send mail. */
export function View(): JSX.Element {
  const list = useList<Domain>('/v1/domains', {}, ({ type }) => type.startsWith('domain.'), true)
  const [adding, setAdding] = useState(false)
  const close = (): void => setAdding(false)
  return (
    <>
      <div class="head">
        <h1>Domains</h1>
        <button type="button" class="primary" onClick={() => setAdding(true)}>
          Add a domain
        </button>
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
      {adding && (
        <FormDialog
          title="Add a domain"
          submit="Add"
          send={async ({ name }) => go(`/domains/${(await post<Domain>('/v1/domains', { name })).id}`)}
          onClose={close}
        >
          <Field
            name="name"
            label="Name"
            first
            autoComplete="off"
            hint="Such as agents.example.com. The next page shows the DNS records to publish."
          />
        </FormDialog>
      )}
    </>
  )
}
