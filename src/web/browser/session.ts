import { signal } from '@preact/signals'
import type { Session } from '../../accounts/model.ts'
import { ApiError, get, post, remove, resume } from './api.ts'

/** Who is signed in: null for nobody, undefined while that is not known. */
export const session = signal<Session | null | undefined>(undefined)

/** Asks the box who is signed in. Throws ApiError when it cannot be asked. */
export async function findSession(): Promise<void> {
  try {
    session.value = await get<Session>('/v1/session', { quiet: true })
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error
    session.value = null
  }
}

/** Throws ApiError: `totp_required` and `invalid_totp` ask for a code. Whoever was signed in before goes on where they were. */
export async function signIn(input: Record<string, string>): Promise<void> {
  await take(await post<Session>('/v1/session', input, { quiet: true }))
  resume()
}

/** Asks whether the cookie is still of who is on the page: another tab may have let in somebody else. Throws ApiError. */
export async function confirmSession(): Promise<void> {
  await take(await get<Session>('/v1/session'))
}

/** What is on the page belongs to one account: for another it begins anew, and what waits is never asked in the other's name. */
async function take(now: Session): Promise<void> {
  const before = session.value
  if (before && before.account.id !== now.account.id) {
    location.assign('/')
    await new Promise(() => {})
  }
  session.value = now
}

export async function signOut(): Promise<void> {
  await remove('/v1/session')
  location.assign('/')
}
