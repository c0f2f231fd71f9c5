import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { keyHash } from '../../src/accounts/secret.ts'
import type { RoutePath } from '../../src/http/route.ts'
import { Asking } from './asking.ts'
import { inhabit } from './inhabited.ts'

/**
 * What the audit log says of each call, written by hand: method, path, action, and what it was done to: the last id of the path (`named`), what the call
 * made (`made`), or nothing that has an id (`none`). `-` is a call that it says nothing of.
 */
const table = `
GET    /v1/whoami                                                - -

POST   /v1/identities                                            identity.created made
GET    /v1/identities                                            - -
GET    /v1/identities/:id                                        - -
PATCH  /v1/identities/:id                                        identity.changed named
DELETE /v1/identities/:id                                        identity.deleted named
POST   /v1/identities/:id/phone                                  phone.added named
DELETE /v1/identities/:id/phone                                  phone.released named
GET    /v1/events                                                event.listed none
GET    /v1/identities/:id/events                                 event.listed named
POST   /v1/identities/:id/events                                 reputation.reported made
GET    /v1/identities/:id/messages                               message.listed named
GET    /v1/identities/:id/wait                                   message.awaited none
POST   /v1/identities/:id/token                                  token.issued named
POST   /v1/identities/:id/token/revoke                           token.revoked named
GET    /v1/identities/:id/threads                                thread.listed named
GET    /v1/identities/:id/threads/:thread_id                     thread.read named
GET    /v1/identities/:id/reputation                             - -
POST   /v1/identities/:id/reputation/credential                  credential.issued named
POST   /v1/identities/:id/export                                 export.started made
POST   /v1/identities/:id/import                                 import.started made
POST   /v1/identities/:id/trash/empty                            trash.emptied named
GET    /v1/exports/:job_id/:index                                export.downloaded named

POST   /v1/identities/:id/emails                                 email.sent made
POST   /v1/identities/:id/emails/send                            email.sent made
GET    /v1/identities/:id/emails                                 email.listed named
GET    /v1/identities/:id/emails/search                          email.searched named
POST   /v1/identities/:id/emails/bulk                            email.bulk_changed named
GET    /v1/identities/:id/emails/:email_id                       email.read named
PATCH  /v1/identities/:id/emails/:email_id                       - -
DELETE /v1/identities/:id/emails/:email_id                       email.deleted named
POST   /v1/identities/:id/emails/:email_id/reply                 email.sent made
POST   /v1/identities/:id/emails/:email_id/forward               email.sent made
POST   /v1/identities/:id/emails/:email_id/cancel                email.cancelled named
POST   /v1/identities/:id/emails/:email_id/restore               email.restored named
POST   /v1/identities/:id/emails/:email_id/release               email.released named
GET    /v1/identities/:id/emails/:email_id/raw                   email.source_read named
GET    /v1/identities/:id/emails/:email_id/html                  email.read named
GET    /v1/identities/:id/emails/:email_id/attachments           - -
GET    /v1/identities/:id/emails/:email_id/attachments/:index    attachment.read named
GET    /v1/identities/:id/emails/:email_id/attachments/:index/text attachment.read named
GET    /v1/attachments/:email_id/:index                          attachment.downloaded named

POST   /v1/identities/:id/sms                                    sms.sent made
POST   /v1/identities/:id/sms/send                               sms.sent made
GET    /v1/identities/:id/sms                                    sms.listed named
GET    /v1/identities/:id/sms/:sms_id                            sms.read named
PATCH  /v1/identities/:id/sms/:sms_id                            - -
DELETE /v1/identities/:id/sms/:sms_id                            sms.deleted named
POST   /v1/identities/:id/sms/:sms_id/restore                    sms.restored named
GET    /v1/identities/:id/sms/:sms_id/media/:index               media.read named
GET    /v1/media/:sms_id/:index                                  media.downloaded named
POST   /v1/sms/loopback/inject                                   - -

POST   /v1/identities/:id/totp                                   totp.created made
GET    /v1/identities/:id/totp                                   - -
GET    /v1/identities/:id/totp/:totp_id                          - -
GET    /v1/identities/:id/totp/:totp_id/code                     totp.generated named
DELETE /v1/identities/:id/totp/:totp_id                          totp.deleted named

POST   /v1/identities/:id/logins                                 login.created made
GET    /v1/identities/:id/logins                                 - -
GET    /v1/logins/:id                                            - -
PATCH  /v1/logins/:id                                            login.changed named
POST   /v1/logins/:id/reveal                                     login.revealed named
DELETE /v1/logins/:id                                            login.deleted named

POST   /v1/identities/:id/cards                                  card.created made
GET    /v1/identities/:id/cards                                  - -
GET    /v1/cards/:id                                             - -
POST   /v1/cards/:id/reveal                                      card.revealed named
GET    /v1/cards/:id/reveal                                      card.revealed named
POST   /v1/cards/:id/freeze                                      card.frozen named
POST   /v1/cards/:id/unfreeze                                    card.unfrozen named
POST   /v1/cards/:id/cancel                                      card.cancelled named
GET    /v1/cards/:id/limits                                      - -
PATCH  /v1/cards/:id/limits                                      card_limits.changed named
GET    /v1/cards/:id/transactions                                - -
POST   /v1/cards/:id/transactions                                card.reported made

POST   /v1/realtime/token                                        realtime_token.created none
GET    /v1/billing/subscription                                  - -

POST   /v1/api-keys                                              key.created made
GET    /v1/api-keys                                              - -
DELETE /v1/api-keys/:id                                          key.revoked named
POST   /v1/api-keys/:id/rotate                                   key.rotated named

POST   /v1/webhooks                                              webhook.created made
GET    /v1/webhooks                                              - -
GET    /v1/webhooks/:id                                          - -
PATCH  /v1/webhooks/:id                                          webhook.changed named
DELETE /v1/webhooks/:id                                          webhook.deleted named
GET    /v1/webhooks/:id/deliveries                               - -
GET    /v1/webhooks/:id/deliveries/:delivery_id                  - -
POST   /v1/webhooks/:id/deliveries/:delivery_id/redeliver        webhook.redelivered named
POST   /v1/webhooks/:id/test                                     webhook.tested named
POST   /v1/webhooks/:id/secret/rotate                            webhook_secret.rotated named

POST   /v1/domains                                               domain.created made
GET    /v1/domains                                               - -
GET    /v1/domains/:id                                           - -
PATCH  /v1/domains/:id                                           domain.changed named
DELETE /v1/domains/:id                                           domain.deleted named
POST   /v1/domains/:id/verify                                    domain.checked named
POST   /v1/domains/:id/dkim/rotate                               dkim.rotated named
GET    /v1/domains/:id/zone                                      - -
GET    /v1/domains/:id/reports                                   - -
POST   /v1/domains/:id/aliases                                   alias.created made
GET    /v1/domains/:id/aliases                                   - -
GET    /v1/domains/:id/aliases/:alias_id                         - -
PATCH  /v1/domains/:id/aliases/:alias_id                         alias.changed named
DELETE /v1/domains/:id/aliases/:alias_id                         alias.deleted named

GET    /v1/policy                                                - -
PATCH  /v1/policy                                                rules.changed none
GET    /v1/identities/:id/policy                                 - -
PATCH  /v1/identities/:id/policy                                 rules.changed named
GET    /v1/holds                                                 - -
GET    /v1/holds/:id                                             hold.read named
POST   /v1/holds/:id/approve                                     hold.approved named
POST   /v1/holds/:id/reject                                      hold.rejected named
POST   /v1/hold-links/read                                       hold.read made
POST   /v1/hold-links/decide                                     hold.rejected made
GET    /v1/senders                                               - -
PATCH  /v1/senders                                               rules.changed none
GET    /v1/identities/:id/senders                                - -
PATCH  /v1/identities/:id/senders                                rules.changed named
GET    /v1/suppressions                                          - -
POST   /v1/suppressions                                          suppression.created made
DELETE /v1/suppressions/:id                                      suppression.deleted named

POST   /v1/agents                                                agent.created made
GET    /v1/agents                                                - -
GET    /v1/agents/:id                                            - -
PATCH  /v1/agents/:id                                            agent.changed named
DELETE /v1/agents/:id                                            agent.deleted named
GET    /v1/agents/:id/reputation                                 - -
GET    /v1/agents/:id/did.json                                   - -
GET    /v1/agents/:id/registration.json                          - -
GET    /v1/agents/:id/agent-card.json                            - -
POST   /v1/agents/:id/erc8004                                    agent_link.created made
GET    /v1/agents/:id/erc8004                                    - -
DELETE /v1/agents/:id/erc8004/:link_id                           agent_link.deleted named
POST   /v1/verify/token                                          - -
POST   /v1/trust/evaluate                                        - -

GET    /v1/jobs                                                  - -
GET    /v1/jobs/:id                                              - -
POST   /v1/jobs/:id/cancel                                       job.cancelled named
DELETE /v1/jobs/:id                                              job.deleted named

POST   /v1/session                                               session.created made
GET    /v1/session                                               - -
DELETE /v1/session                                               session.ended none
GET    /v1/account                                               - -
GET    /v1/account/sessions                                      - -
DELETE /v1/account/sessions                                      session.ended none
POST   /v1/account/stop                                          account.stopped none
POST   /v1/account/resume                                        account.resumed none
POST   /v1/account/password                                      password.changed none
POST   /v1/account/totp                                          second_factor.started none
POST   /v1/account/totp/confirm                                  second_factor.added none
DELETE /v1/account/totp                                          second_factor.removed none
POST   /v1/setup                                                 password.set made
GET    /v1/people                                                - -
PATCH  /v1/people/:id                                            person.role_changed named
DELETE /v1/people/:id                                            person.removed named
POST   /v1/people/invitations                                    person.invited made
GET    /v1/people/invitations                                    - -
DELETE /v1/people/invitations/:id                                person.uninvited named
POST   /v1/people/invitations/accept                             person.joined made

GET    /v1/audit                                                 audit.listed none
GET    /v1/audit/box                                             audit.listed none
GET    /v1/accounts                                              - -
POST   /v1/accounts                                              account.created made
GET    /v1/backups                                               - -
POST   /v1/backups                                               backup.started made
GET    /v1/certificates                                          - -
POST   /v1/certificates/renew                                    certificate.renewed none
GET    /v1/doctor                                                - -
POST   /v1/doctor                                                - -
GET    /v1/queue                                                 - -
GET    /v1/queue/summary                                         - -
GET    /v1/queue/:id                                             - -
DELETE /v1/queue/:id                                             delivery.dropped named
POST   /v1/queue/:id/retry                                       delivery.retried named
POST   /v1/reload                                                settings.reloaded none
POST   /v1/signing-keys/rotate                                   signing_key.rotated none
GET    /v1/stats                                                 - -
GET    /v1/status                                                - -

GET    /llms.txt                                                 - -
GET    /.well-known/oauth-protected-resource                     - -
GET    /.well-known/oauth-protected-resource/mcp                 - -
GET    /.well-known/oauth-authorization-server                   - -
GET    /.well-known/did.json                                     - -
GET    /.well-known/agent-registration.json                      - -
GET    /.well-known/agent-card.json                              - -
GET    /.well-known/jwks.json                                    - -
GET    /.well-known/mta-sts.txt                                  - -
`

const rows = new Map(
  table
    .split('\n')
    .filter((line) => line !== '')
    .map((line): [string, { action: string; target: string }] => {
      const [method, path, action, target] = line.split(/\s+/) as [string, string, string, string]
      return [`${method} ${path}`, { action, target }]
    }),
)

const world = await inhabit({ PILLARBOX_SMS__PROVIDER: 'loopback' })
const asking = new Asking(world)
afterAll(() => world.close())

interface Found {
  seq: number
  account_id: string
  actor: string
  address: string | null
  target: string | null
  identity_id: string | null
}

/** The rows of an action after another row; of one key, or of whoever. */
const found = (after: number, action: string, actor: string | undefined): Found[] =>
  world.database
    .prepare('SELECT * FROM audit WHERE seq > ? AND action = ? AND actor = coalesce(?, actor) ORDER BY seq')
    .all(after, action, actor ?? null) as unknown as Found[]

const idOf = (key: string): string =>
  (world.database.prepare('SELECT id FROM api_keys WHERE hash = ?').get(keyHash(key)) as { id: string }).id

const last = (): number => (world.database.prepare('SELECT head_seq FROM audit_chain').get() as { head_seq: number }).head_seq

const named = asking.spellings.map((spelling): [string, RoutePath] => [`${spelling.method} ${spelling.path}`, spelling])

test('docs/audit.md has every action', () => {
  const page = readFileSync(new URL('../../docs/audit.md', import.meta.url), 'utf8')
  // those that are no call of the table
  const others =
    'sign_in.failed smtp_login.accepted smtp_login.refused call.refused call.failed oauth_grant.created oauth_grant.ended password.reset setup_link.created ' +
    'settings.changed box.started master_key.rotated several.done'
  const actions = [...rows.values()].map(({ action }) => action).filter((action) => action !== '-')
  expect([...actions, ...others.split(' ')].filter((action) => !page.includes(`\`${action}\``))).toEqual([])
})

test('the table has every call there is, and no other', () => {
  expect(named.map(([name]) => name).toSorted()).toEqual([...rows.keys()].toSorted())
})

test.each(named.filter(([name]) => rows.get(name)!.action !== '-'))('%s is in the audit log', async (name, spelling) => {
  const { action, target } = rows.get(name)!
  // another key for each, so that no read repeats one of another test
  const estate = await world.settle(`Audited ${name}`)
  const session = /\/(?:session|account\/totp|account\/resume|account\/password|people)/.test(spelling.path)
  const key = session || spelling.route.scope === 'public' ? undefined : await world.plantKey({ account: world.own.account })
  const { path, question } = await asking.good(spelling, estate)
  const before = last()
  const told = await asking.ask(spelling, path, key === undefined ? question : { ...question, key })
  expect([told.status, told.json?.error?.code]).toEqual([spelling.route.status ?? 200, undefined])
  const wanted = target === 'none' ? null : target === 'made' ? told.json.id : path.match(/[a-z]+_[0-9a-z]{26}/g)!.at(-1)
  const actor = key === undefined ? undefined : idOf(key)
  const at = (): Found[] => found(before, action, actor)
  // a change is there with its answer, a read soon
  if (spelling.method === 'GET' || /credential|realtime/.test(path))
    for (let tries = 0; tries < 100 && at().length === 0; tries += 1) await sleep(50)
  expect(at()).toMatchObject([{ target: wanted }])
  const [row] = at()
  expect(row!.account_id).toBe(/^\/v1\/(?:setup|accounts)$/.test(spelling.path) ? wanted : world.own.account)
  expect(row!.address).toBe('127.0.0.1')
  const identity = /identities\/(ident_\w+)/.exec(path)?.[1]
  if (identity !== undefined) expect(row!.identity_id).toBe(identity)
})
