import type { Box } from './box.ts'
import { Failure } from './refuse.ts'

interface Identity {
  id: string
  name: string
  email: string
}

/** The identity of an id, an address or a name. Throws Failure when there is none. */
export async function identityNamed(box: Box, words: string): Promise<Identity> {
  const wanted = words.toLowerCase()
  let cursor = ''
  do {
    const page = await box.call<{ data: Identity[]; next_cursor: string | null }>('GET', `/v1/identities?limit=200${cursor}`)
    const found = page.data.find(({ id, email, name }) => [id, email.toLowerCase(), name.toLowerCase()].includes(wanted))
    if (found) return found
    cursor = page.next_cursor === null ? '' : `&cursor=${encodeURIComponent(page.next_cursor)}`
  } while (cursor !== '')
  throw new Failure(`There is no identity ${words}: specify its id, address or name.`, 'not_found', 'identity')
}
