import { signal } from '@preact/signals'
import type { Session } from '../../accounts/model.ts'
import { ApiError, get, post, remove, resume } from './api.ts'

/** The current session: null without one, undefined while unknown. */
export const session = signal<Session | null | undefined>(undefined)

export async function findSession(): Promise<void> {
  try {
    session.value = await get<Session>('/v1/session', { quiet: true })
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error
    session.value = null
  }
}

/** Throws ApiError: `totp_required` and `invalid_totp` request a code. The same person continues where they were. */
export async function signIn(input: Record<string, string>): Promise<void> {
  await take(await post<Session>('/v1/session', input, { quiet: true }))
  resume()
}

/** Checks that the cookie still belongs to the session of the page: another tab may have changed it. Throws ApiError. */
export async function confirmSession(): Promise<void> {
  await take(await get<Session>('/v1/session'))
}

/** The page is of one person: for another one it reloads, so that waiting calls are not made in their name. */
async function take(now: Session): Promise<void> {
  const before = session.value
  if (before && before.person.id !== now.person.id) {
    location.assign('/')
    await new Promise(() => {})
  }
  session.value = now
}

export async function signOut(): Promise<void> {
  await remove('/v1/session')
  location.assign('/')
}
