import type { Answer, Appliance, Call } from './appliance.ts'

export const person = { email: 'Ada@Example.com', password: 'a long and quiet evening' }

/** A browser that keeps the box's cookie, on a page of ours unless said. */
export interface Browser {
  cookie: string
  call: Call
}

/** Gives the box's account a password, as its operator does. */
export async function withPassword(box: Appliance, who = person): Promise<void> {
  await box.app.accounts.setPassword({ who: 'default', ...who, removeSecondFactor: false })
}

/** One attempt to sign in, from a page of ours. */
export function attempt(
  box: Appliance,
  input: Record<string, unknown>,
  headers: Record<string, string> = {},
): ReturnType<typeof box.call<never>> {
  return box.call('POST', '/v1/session', input, { key: null, headers: { Origin: box.url, ...headers } })
}

/** Signs in; throws when that fails. */
export async function signIn(box: Appliance, input: Record<string, unknown> = person, headers = {}): Promise<Browser> {
  const answer = await attempt(box, input, headers)
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return browser(box, cookieOf(answer))
}

/** What a browser would send back. */
export function cookieOf({ headers }: Pick<Answer, 'headers'>): string {
  return (headers.getSetCookie()[0] ?? '').split(';', 1)[0]!
}

export function browser(box: Pick<Appliance, 'url' | 'call'>, cookie: string): Browser {
  return {
    cookie,
    call: (method, path, body, options = {}) =>
      box.call(method, path, body, { key: null, headers: { Cookie: cookie, Origin: box.url, ...options.headers } }),
  }
}
