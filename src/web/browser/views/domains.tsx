import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Domain } from '../../../domains/model.ts'
import { post } from '../api.ts'
import { DomainState } from '../domains/domain-state.tsx'
import { useList } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import { Cancel, Dialog } from '../widgets/dialog.tsx'
import { Field, Form } from '../widgets/form.tsx'
import { Listing } from '../widgets/listing.tsx'
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
      <Listing list={list} empty="No domain yet. Once the DNS of one is right, identities can have addresses in it.">
        {(rows) => (
          <ul class="rows">
            {rows.map((domain) => (
              <li key={domain.id}>
                <span class="grow">
                  <Link href={`/domains/${domain.id}`}>
                    <strong>{domain.name}</strong>
                  </Link>{' '}
                  {domain.default && <span class="faint">the box’s own</span>}
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
            ))}
          </ul>
        )}
      </Listing>
      {adding && (
        <Dialog title="Add a domain" onClose={close}>
          <Form
            submit="Add"
            label="Add a domain"
            also={<Cancel onClose={close} />}
            send={async ({ name }) => go(`/domains/${(await post<Domain>('/v1/domains', { name })).id}`)}
          >
            <Field
              name="name"
              label="Name"
              first
              autoComplete="off"
              hint="Such as agents.example.com. The next page shows the DNS records to publish."
            />
          </Form>
        </Dialog>
      )}
    </>
  )
}
