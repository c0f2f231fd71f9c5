import type { Scope } from '../../src/core/scopes.ts'

/**
 * Who may call what, written by hand from the API document (section 4) and what was decided beside it, never from the declarations of the
 * routes: method, path, the scopes of which any one admits (`public`: none is needed; `a + b`: both), and for writes what a key is shown
 * that may write but not read: `all` of the answer, or these fields. `operator`: of the operator's account only.
 */
const table = `
GET    /v1/whoami                                         identities:read|identities:write|messages:read|messages:write|emails:read|emails:write|sms:read|sms:write|cards:read|cards:write|account:read|account:write|holds:decide|audit:read

POST   /v1/identities                                     identities:write                  all
GET    /v1/identities                                     identities:read
GET    /v1/identities/:id                                 identities:read
PATCH  /v1/identities/:id                                 identities:write                  id status created_at updated_at
DELETE /v1/identities/:id                                 identities:write                  all
POST   /v1/identities/:id/phone                           identities:write                  id status created_at updated_at phone_number
DELETE /v1/identities/:id/phone                           identities:write                  all
GET    /v1/events                                         identities:read|messages:read|emails:read|sms:read|cards:read
GET    /v1/identities/:id/events                          identities:read|messages:read|emails:read|sms:read|cards:read
POST   /v1/identities/:id/events                          identities:write                  all
GET    /v1/identities/:id/messages                        messages:read
GET    /v1/identities/:id/wait                            messages:read|emails:read|sms:read
POST   /v1/identities/:id/token                           identities:write                  all
POST   /v1/identities/:id/token/revoke                    identities:write                  all
GET    /v1/identities/:id/threads                         messages:read
GET    /v1/identities/:id/threads/:thread_id              messages:read
GET    /v1/identities/:id/reputation                      identities:read
POST   /v1/identities/:id/reputation/credential           identities:read
POST   /v1/identities/:id/export                          messages:read|emails:read
POST   /v1/identities/:id/import                          messages:write|emails:write       unasked
POST   /v1/identities/:id/trash/empty                     messages:write                    all

GET    /v1/identities/:id/emails                          messages:read|emails:read
POST   /v1/identities/:id/emails                          messages:write|emails:write       all
POST   /v1/identities/:id/emails/send                     messages:write|emails:write       all
GET    /v1/identities/:id/emails/search                   messages:read|emails:read
POST   /v1/identities/:id/emails/bulk                     messages:write|emails:write       all
GET    /v1/identities/:id/emails/:email_id                messages:read|emails:read
PATCH  /v1/identities/:id/emails/:email_id                messages:write|emails:write       id identity_id status created_at read send_at
DELETE /v1/identities/:id/emails/:email_id                messages:write|emails:write       all
POST   /v1/identities/:id/emails/:email_id/restore        messages:write|emails:write       id identity_id status created_at
POST   /v1/identities/:id/emails/:email_id/cancel         messages:write|emails:write       id identity_id status created_at
POST   /v1/identities/:id/emails/:email_id/reply          messages:write|emails:write + messages:read|emails:read
POST   /v1/identities/:id/emails/:email_id/forward        messages:write|emails:write + messages:read|emails:read
GET    /v1/identities/:id/emails/:email_id/raw            messages:read|emails:read
GET    /v1/identities/:id/emails/:email_id/html           messages:read|emails:read
GET    /v1/identities/:id/emails/:email_id/attachments    messages:read|emails:read
GET    /v1/identities/:id/emails/:email_id/attachments/:index  messages:read|emails:read
GET    /v1/identities/:id/emails/:email_id/attachments/:index/text  messages:read|emails:read
GET    /v1/attachments/:email_id/:index                   public

GET    /v1/identities/:id/sms                             messages:read|sms:read
POST   /v1/identities/:id/sms                             messages:write|sms:write          all
POST   /v1/identities/:id/sms/send                        messages:write|sms:write          all
GET    /v1/identities/:id/sms/:sms_id                     messages:read|sms:read
PATCH  /v1/identities/:id/sms/:sms_id                     messages:write|sms:write          id identity_id status created_at read
DELETE /v1/identities/:id/sms/:sms_id                     messages:write|sms:write          all
POST   /v1/identities/:id/sms/:sms_id/restore             messages:write|sms:write          id identity_id status created_at
GET    /v1/identities/:id/sms/:sms_id/media/:index        messages:read|sms:read
GET    /v1/media/:sms_id/:index                           public
GET    /v1/exports/:job_id/:index                         public
POST   /v1/sms/loopback/inject                            account:write                     all

POST   /v1/identities/:id/cards                           cards:write                       all
GET    /v1/identities/:id/cards                           cards:read
GET    /v1/cards/:id                                      cards:read
POST   /v1/cards/:id/reveal                               cards:read
GET    /v1/cards/:id/reveal                               cards:read
POST   /v1/cards/:id/freeze                               cards:write                       id identity_id status created_at updated_at
POST   /v1/cards/:id/unfreeze                             cards:write                       id identity_id status created_at updated_at
POST   /v1/cards/:id/cancel                               cards:write                       id identity_id status created_at updated_at
GET    /v1/cards/:id/limits                               cards:read
PATCH  /v1/cards/:id/limits                               cards:write                       card_id status
GET    /v1/cards/:id/transactions                         cards:read
POST   /v1/cards/:id/transactions                         cards:write                       all

POST   /v1/identities/:id/totp                            identities:write                  all
GET    /v1/identities/:id/totp                            identities:read
GET    /v1/identities/:id/totp/:totp_id                   identities:read
GET    /v1/identities/:id/totp/:totp_id/code              identities:read
DELETE /v1/identities/:id/totp/:totp_id                   identities:write                  all

POST   /v1/identities/:id/logins                          identities:write                  all
GET    /v1/identities/:id/logins                          identities:read
GET    /v1/logins/:id                                     identities:read
PATCH  /v1/logins/:id                                     identities:write                  id identity_id created_at updated_at
POST   /v1/logins/:id/reveal                              identities:read
DELETE /v1/logins/:id                                     identities:write                  all

POST   /v1/realtime/token                                 messages:read|emails:read|sms:read

GET    /v1/billing/subscription                           account:read
POST   /v1/api-keys                                       account:write                     all
GET    /v1/api-keys                                       account:read
DELETE /v1/api-keys/:id                                   account:write                     all
POST   /v1/api-keys/:id/rotate                            account:write                     id identity_id created_at key key_prefix expires_at

POST   /v1/webhooks                                       account:write                     all
GET    /v1/webhooks                                       account:read
GET    /v1/webhooks/:id                                   account:read
PATCH  /v1/webhooks/:id                                   account:write                     id identity_id created_at updated_at
DELETE /v1/webhooks/:id                                   account:write                     all
GET    /v1/webhooks/:id/deliveries                        account:read
GET    /v1/webhooks/:id/deliveries/:delivery_id           account:read
POST   /v1/webhooks/:id/deliveries/:delivery_id/redeliver account:write                     id status created_at
POST   /v1/webhooks/:id/test                              account:write                     id status created_at
POST   /v1/webhooks/:id/secret/rotate                     account:write                     id identity_id created_at updated_at secret

POST   /v1/domains                                        account:write                     all
GET    /v1/domains                                        account:read
GET    /v1/domains/:id                                    account:read
PATCH  /v1/domains/:id                                    account:write                     id status created_at
DELETE /v1/domains/:id                                    account:write                     all
POST   /v1/domains/:id/verify                             account:write                     id status created_at
POST   /v1/domains/:id/dkim/rotate                        account:write                     id status created_at
GET    /v1/domains/:id/zone                               account:read
GET    /v1/domains/:id/reports                            account:read
POST   /v1/domains/:id/aliases                            account:write                     all
GET    /v1/domains/:id/aliases                            account:read
GET    /v1/domains/:id/aliases/:alias_id                  account:read
PATCH  /v1/domains/:id/aliases/:alias_id                  account:write                     id identity_id created_at
DELETE /v1/domains/:id/aliases/:alias_id                  account:write                     all

GET    /v1/senders                                        account:read
PATCH  /v1/senders                                        account:write + holds:decide
GET    /v1/identities/:id/senders                         account:read
PATCH  /v1/identities/:id/senders                         account:write + holds:decide
POST   /v1/identities/:id/emails/:email_id/release        holds:decide + messages:read|emails:read

GET    /v1/policy                                         holds:decide
PATCH  /v1/policy                                         holds:decide                      all
GET    /v1/identities/:id/policy                          holds:decide
PATCH  /v1/identities/:id/policy                          holds:decide                      all
GET    /v1/holds                                          holds:decide
GET    /v1/holds/:id                                      holds:decide
POST   /v1/holds/:id/approve                              holds:decide                      all
POST   /v1/holds/:id/reject                               holds:decide                      all
POST   /v1/hold-links/read                                public
POST   /v1/hold-links/decide                              public

GET    /v1/suppressions                                   account:read
POST   /v1/suppressions                                   account:write                     all
DELETE /v1/suppressions/:id                               account:write                     all

POST   /v1/agents                                         identities:write                  all
GET    /v1/agents                                         identities:read
GET    /v1/agents/:id                                     identities:read
PATCH  /v1/agents/:id                                     identities:write                  id identity_id status created_at updated_at
DELETE /v1/agents/:id                                     identities:write                  all
GET    /v1/agents/:id/reputation                          identities:read
GET    /v1/agents/:id/did.json                            public
GET    /v1/agents/:id/registration.json                   public
GET    /v1/agents/:id/agent-card.json                     public
POST   /v1/agents/:id/erc8004                             identities:write                  all
GET    /v1/agents/:id/erc8004                             identities:read
DELETE /v1/agents/:id/erc8004/:link_id                    identities:write                  all

POST   /v1/verify/token                                   identities:read
POST   /v1/trust/evaluate                                 identities:read

GET    /v1/jobs                       identities:read|messages:read|emails:read|account:read|identities:write|messages:write|emails:write|account:write
GET    /v1/jobs/:id                   identities:read|messages:read|emails:read|account:read|identities:write|messages:write|emails:write|account:write
POST   /v1/jobs/:id/cancel                                messages:write|emails:write|account:write   unasked
DELETE /v1/jobs/:id                                       messages:write|emails:write|account:write   unasked

POST   /v1/session                                        public
GET    /v1/session                                        account:read
DELETE /v1/session                                        account:write                     unasked
GET    /v1/account                                        account:read
GET    /v1/account/sessions                               account:read
DELETE /v1/account/sessions                               account:write                     all
POST   /v1/account/stop                                   holds:decide                      unasked
POST   /v1/account/resume                                 account:write                     unasked
POST   /v1/account/password                               account:write                     unasked
POST   /v1/account/totp                                   account:write                     unasked
POST   /v1/account/totp/confirm                           account:write                     unasked
DELETE /v1/account/totp                                   account:write                     unasked
POST   /v1/setup                                          public
GET    /v1/people                                         account:read
PATCH  /v1/people/:id                                     account:write                    unasked
DELETE /v1/people/:id                                     account:write                    unasked
POST   /v1/people/invitations                             account:write                    unasked
GET    /v1/people/invitations                             account:read
DELETE /v1/people/invitations/:id                         account:write                    unasked
POST   /v1/people/invitations/accept                      public

GET    /v1/audit                                          audit:read
GET    /v1/audit/box                                      audit:read                        operator
GET    /v1/accounts                                       account:read                      operator
POST   /v1/accounts                                       account:write + holds:decide      operator
GET    /v1/backups                                        account:read                      operator
POST   /v1/backups                                        account:write                     operator all
GET    /v1/certificates                                   account:read                      operator
POST   /v1/certificates/renew                             account:write + account:read      operator
GET    /v1/doctor                                         account:read                      operator
POST   /v1/doctor                                         account:write + account:read      operator
GET    /v1/queue                                          account:read                      operator
GET    /v1/queue/summary                                  account:read                      operator
GET    /v1/queue/:id                                      account:read                      operator
DELETE /v1/queue/:id                                      account:write                     operator all
POST   /v1/queue/:id/retry                                account:write                     operator id created_at
POST   /v1/reload                                         account:write                     operator all
POST   /v1/signing-keys/rotate                            account:write                     operator all
GET    /v1/stats                                          account:read                      operator
GET    /v1/status                                         account:read                      operator

GET    /llms.txt                                          public
GET    /.well-known/oauth-protected-resource              public
GET    /.well-known/oauth-protected-resource/mcp          public
GET    /.well-known/oauth-authorization-server            public
GET    /.well-known/did.json                              public
GET    /.well-known/agent-registration.json               public
GET    /.well-known/agent-card.json                       public
GET    /.well-known/jwks.json                             public
GET    /.well-known/mta-sts.txt                           public
`

/** A row of the table. */
export interface Right {
  /** Of each, any one is needed; empty for what is public. */
  needs: Scope[][]
  operator: boolean
  /** What a key without the reading scope is shown: undefined where there is none such, or it is not asked here. */
  shows: 'all' | string[] | undefined
}

/** The rows by method and path: `GET /v1/whoami`. */
export const rights: ReadonlyMap<string, Right> = new Map(
  table
    .split('\n')
    .filter((line) => line !== '')
    .map((line): [string, Right] => {
      const [method, path, ...rest] = line.replaceAll(' + ', '+').trim().split(/\s+/)
      const [needs, ...shown] = rest as [string, ...string[]]
      const operator = shown[0] === 'operator'
      const fields = operator ? shown.slice(1) : shown
      const shows = fields.length === 0 || fields[0] === 'unasked' ? undefined : fields[0] === 'all' ? 'all' : fields
      return [
        `${method} ${path}`,
        { needs: needs === 'public' ? [] : needs.split('+').map((any) => any.split('|') as Scope[]), operator, shows },
      ]
    }),
)
