import type { JSX } from 'preact'
import type { Identity } from '../../../identities/model.ts'
import { useThing } from '../loaded.ts'
import { Link } from '../router.tsx'

/** An identity by its name, once that is known, as a link to it. */
export function IdentityName({ id }: { id: string }): JSX.Element {
  const { value } = useThing<Identity>(`/v1/identities/${id}`)
  return <Link href={`/identities/${id}/inbox`}>{value?.name ?? id}</Link>
}
