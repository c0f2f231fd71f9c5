import { createHash } from 'node:crypto'
import type { ReducedIdentity } from '../../identities/model.ts'
import type { Answer } from '../../http/route.ts'
import type { AuthorizationRequest } from './authorization.ts'
import { offered } from './model.ts'

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.3rem}fieldset{border:1px solid #bbb;border-radius:6px;margin:1rem 0}label{display:block;margin:.3rem 0}
select,input[type=text]{font:inherit;width:100%}button{font:inherit;padding:.5rem 1.2rem;margin-right:.5rem}.note{color:#555;font-size:.9rem}
@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}.note{color:#aaa}}`

/** The policy of the pages: nothing is loaded or run. A form may end where its answer redirects to, which some browsers compare too. */
function policy(target: string): string {
  const hash = createHash('sha256').update(style).digest('base64')
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; frame-ancestors 'none'; form-action 'self' ${target}`.trim()
}

function page(status: number, title: string, body: string, target = ''): Answer {
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title><style>${style}</style></head><body><main><h1>${escaped(title)}</h1>${body}</main></body></html>`
  const headers = {
    'Content-Security-Policy': policy(target),
    // without a referrer browsers would not name the origin of a form either, which proves that it was ours
    'Referrer-Policy': 'same-origin',
    'Cache-Control': 'no-store',
  }
  return { status, type: 'text/html; charset=utf-8', body: html, headers }
}

/** For a person who is not signed in; the same address again carries the cookie, which a link of another site does not. */
export function signInPage(again: string): Answer {
  return page(
    200,
    'Sign in first',
    `<p>A program asks for access to an identity of this box.</p><p><a href="/" target="_blank" rel="noopener">Sign in</a>, then come back to this page.</p><p><a href="${escaped(again)}">I am signed in: go on</a></p>`,
  )
}

/** For what the client did wrong and cannot be told. */
export function errorPage(message: string): Answer {
  return page(
    400,
    'This request cannot be answered',
    `<p>${escaped(message)}</p><p class="note">Tell whoever makes the program that sent you here.</p>`,
  )
}

/** Asks a person which identity a client may act as, and what it may do. */
export function consentPage(
  { client, redirect_uri, scopes, refused }: AuthorizationRequest,
  given: ReadonlyMap<string, string>,
  identities: ReducedIdentity[] | undefined,
  problem?: string,
): Answer {
  const { protocol, host, origin } = new URL(redirect_uri)
  const isWeb = protocol === 'https:' || protocol === 'http:'
  const where = isWeb ? host : `the program that opens ${redirect_uri.slice(0, 300)}`
  const proof = client.host === null ? 'Nobody vouches for this name.' : `${client.host} vouches for it.`
  const hidden = [...given]
    .filter(([name]) => !['scopes', 'identity', 'decision'].includes(name))
    .map(([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">`)
  const choices = scopes.map(
    (scope) =>
      `<label><input type="checkbox" name="scopes" value="${scope}" checked> ${escaped(offered[scope])} <span class="note">(${scope})</span></label>`,
  )
  const left =
    refused.length === 0
      ? ''
      : `<p class="note">It asked for more, which no program gets: ${escaped(refused.join(', ').slice(0, 300))}</p>`
  const options = identities?.map(
    ({ email, name }) => `<option value="${escaped(email)}">${escaped(`${name} <${email}>`)}</option>`,
  )
  const identity = options
    ? `<select name="identity" required><option value="">Choose one</option>${options.join('')}</select>`
    : '<input type="text" name="identity" required placeholder="its e-mail address" autocomplete="off">'
  const body = `${problem === undefined ? '' : `<p role="alert"><strong>${escaped(problem)}</strong></p>`}
<p>A program that calls itself <strong>“${escaped(client.name)}”</strong> asks to act as one of your identities. ${escaped(proof)} The answer goes to <strong>${escaped(where)}</strong>.</p>
<form method="post" action="/oauth/authorize">${hidden.join('')}
<fieldset><legend>As which identity?</legend>${identity}</fieldset>
<fieldset><legend>What may it do?</legend>${choices.join('')}</fieldset>${left}
<p><button name="decision" value="allow">Allow</button><button name="decision" value="deny" formnovalidate>Deny</button></p>
<p class="note">It is listed with the API keys, where you can end it.</p></form>`
  return page(problem === undefined ? 200 : 400, 'A program asks for access', body, isWeb ? origin : protocol)
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
