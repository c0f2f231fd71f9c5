// Printed by `npm run docs` from the declarations of the box. Not to be changed by hand.

import type {
  RequestOptions,
} from './request.ts'
import type {
  Account,
  AccountEventsQuery,
  AccountSessionsQuery,
  AccountWish,
  AccountsListQuery,
  Agent,
  AgentChange,
  AgentsErc8004Query,
  AgentsListQuery,
  Alias,
  AliasChange,
  AliasesListQuery,
  ApiKey,
  ApiKeyWithSecret,
  ApiKeysListQuery,
  ApiKeysRevokeQuery,
  Attachment,
  AttachmentText,
  AttachmentWithUrl,
  AuditListQuery,
  AuditRow,
  Backup,
  BackupsListQuery,
  BoxStatsQuery,
  BulkChange,
  BulkResult,
  Card,
  CardLimits,
  CardTransaction,
  CardsListQuery,
  CardsTransactionsQuery,
  Certificate,
  CertificateRenewal,
  Credential,
  Deleted,
  DoctorReport,
  Domain,
  DomainChange,
  DomainReport,
  DomainsListQuery,
  DomainsReportsQuery,
  Email,
  EmailChange,
  EmailRow,
  EmailsAttachmentTextQuery,
  EmailsAttachmentsQuery,
  EmailsDeleteQuery,
  EmailsHtmlQuery,
  EmailsListQuery,
  EmailsSearchQuery,
  Emptied,
  Erc8004Link,
  Event,
  ExportWish,
  Hold,
  HoldRow,
  HoldsApproveBody,
  HoldsListQuery,
  HoldsRejectBody,
  IdentitiesEventsQuery,
  IdentitiesListQuery,
  IdentitiesMessagesQuery,
  IdentitiesWaitQuery,
  Identity,
  IdentityChange,
  IdentityToken,
  InjectedSms,
  Job,
  JobsListQuery,
  KeyRevoked,
  KeyRotated,
  KeyRotation,
  LimitsChange,
  Message,
  NewAgent,
  NewAlias,
  NewApiKey,
  NewCard,
  NewDomain,
  NewEmail,
  NewErc8004Link,
  NewForward,
  NewIdentity,
  NewReply,
  NewReport,
  NewSms,
  NewSuppression,
  NewTotpEntry,
  NewTransaction,
  NewWebhook,
  Page,
  PhoneWish,
  QueueEntry,
  QueueEntryWithHistory,
  QueueListQuery,
  QueueSummary,
  RealtimeToken,
  RealtimeTokenWish,
  ReducedIdentity,
  Reloaded,
  Report,
  Reputation,
  RevealWish,
  Revealed,
  Rotation,
  SecretRotation,
  SenderRules,
  SenderRulesInput,
  SessionEntry,
  SessionsEnded,
  Sms,
  SmsChange,
  SmsDeleteQuery,
  SmsListQuery,
  SmsMediaWithUrl,
  Stats,
  Status,
  Subscription,
  Suppression,
  SuppressionsListQuery,
  Thread,
  ThreadWithMessages,
  ThreadsGetQuery,
  ThreadsListQuery,
  TokenQuestion,
  TokenWish,
  TokensRevoked,
  TotpCode,
  TotpCodeQuery,
  TotpEntry,
  TotpListQuery,
  TrustEvaluation,
  TrustQuestion,
  VerifiedToken,
  WaitAnswer,
  Webhook,
  WebhookChange,
  WebhookDelivery,
  WebhookDeliveryWithRequest,
  WebhookWithSecret,
  WebhooksDeliveriesQuery,
  WebhooksListQuery,
  WhoAmI,
} from './types.ts'

/**
 * The calls by group. A line with a path is the beginning of those that follow: each is a method with its HTTP method (GET is left out), the rest of its
 * path, and what else there is. `query`, `body` or `octets` is sent; `page` (which takes a query), `text` or `bytes` comes back instead of an object. A POST
 * takes an Idempotency-Key, unless it sends octets.
 */
export const methods = {
  account: `
sessions /account/sessions page
endSessions DELETE /account/sessions
get /account
whoami /whoami
events /events page`,
  accounts: `/accounts
list page
create POST body`,
  agents: `/agents
create POST body
list page
/agents/{agent}
get
update PATCH body
delete DELETE
addErc8004 POST /erc8004 body
erc8004 /erc8004 page
removeErc8004 DELETE /erc8004/{link}
reputation /reputation`,
  aliases: `/domains/{domain}/aliases
create POST body
list page
/domains/{domain}/aliases/{alias}
get
update PATCH body
delete DELETE`,
  apiKeys: `/api-keys
create POST body
list page
rotate POST /{api_key}/rotate body
revoke DELETE /{api_key} query`,
  audit: `/audit
list page`,
  backups: `/backups
create POST
list page`,
  billing: `/billing/subscription
subscription`,
  box: `
stats /stats query
status /status
reload POST /reload`,
  cards: `
create POST /identities/{identity}/cards body
list /identities/{identity}/cards page
/cards/{card}
get
reveal POST /reveal body
freeze POST /freeze
unfreeze POST /unfreeze
cancel POST /cancel
limits /limits
updateLimits PATCH /limits body
transactions /transactions page
report POST /transactions body`,
  certificates: `/certificates
list
renew POST /renew body`,
  doctor: `/doctor
get
run POST`,
  domains: `/domains/{domain}
update PATCH body
get
delete DELETE
verify POST /verify
rotateKeys POST /dkim/rotate
zone /zone text
reports /reports page
/domains
create POST body
list page`,
  emails: `/identities/{identity}/emails
list page
search /search page
updateMany POST /bulk body
send POST body
/identities/{identity}/emails/{email}
get
update PATCH body
delete DELETE query
restore POST /restore
raw /raw bytes
html /html query text
attachments /attachments page
attachment /attachments/{index}
attachmentText /attachments/{index}/text query
release POST /release
reply POST /reply body
forward POST /forward body
cancel POST /cancel`,
  holds: `/holds
list page
/holds/{hold}
get
approve POST /approve body
reject POST /reject body`,
  identities: `/identities
create POST body
list page
/identities/{identity}
get
update PATCH body
delete DELETE
provisionPhone POST /phone body
releasePhone DELETE /phone
issueToken POST /token body
revokeTokens POST /token/revoke
reputation /reputation
report POST /events body
credential POST /reputation/credential
events /events page
messages /messages page
wait /wait query
export POST /export body
importMessages POST /import octets
emptyTrash POST /trash/empty`,
  jobs: `/jobs
list page
/jobs/{job}
get
cancel POST /cancel
delete DELETE`,
  queue: `/queue
list page
summary /summary
/queue/{queue}
get
retry POST /retry
delete DELETE`,
  realtime: `/realtime/token
token POST body`,
  senders: `
get /senders
update PATCH /senders body
getOfIdentity /identities/{identity}/senders
updateOfIdentity PATCH /identities/{identity}/senders body`,
  signingKeys: `/signing-keys/rotate
rotate POST body`,
  sms: `/identities/{identity}
send POST /sms body
list /sms page
/identities/{identity}/sms/{sms}
get
update PATCH body
delete DELETE query
restore POST /restore
media /media/{index}

inject POST /sms/loopback/inject body`,
  suppressions: `/suppressions
list page
create POST body
delete DELETE /{suppression}`,
  threads: `/identities/{identity}/threads
list page
get /{thread} query`,
  tokens: `/verify/token
verify POST body`,
  totp: `/identities/{identity}/totp
create POST body
list page
/identities/{identity}/totp/{totp}
get
code /code query
delete DELETE`,
  trust: `/trust/evaluate
evaluate POST body`,
  webhooks: `/webhooks
create POST body
list page
/webhooks/{webhook}
get
update PATCH body
delete DELETE
deliveries /deliveries page
delivery /deliveries/{delivery}
redeliver POST /deliveries/{delivery}/redeliver
test POST /test
rotateSecret POST /secret/rotate body`,
} as const

/** The methods, by group. What is called `iterate…` yields the rows of all pages. */
export interface Methods {
  account: {
    /** List sessions. */
    sessions(query?: AccountSessionsQuery, options?: RequestOptions): Promise<Page<SessionEntry>>
    iterateSessions(query?: AccountSessionsQuery, options?: RequestOptions): AsyncGenerator<SessionEntry, void>
    /** Sign out everywhere. */
    endSessions(options?: RequestOptions): Promise<SessionsEnded>
    /** Get the account. */
    get(options?: RequestOptions): Promise<Account>
    /** Get the caller. */
    whoami(options?: RequestOptions): Promise<WhoAmI>
    /** List events of the account. */
    events(query?: AccountEventsQuery, options?: RequestOptions): Promise<Page<Event>>
    iterateEvents(query?: AccountEventsQuery, options?: RequestOptions): AsyncGenerator<Event, void>
  }
  accounts: {
    /** List the accounts of the box. */
    list(query?: AccountsListQuery, options?: RequestOptions): Promise<Page<Account>>
    iterate(query?: AccountsListQuery, options?: RequestOptions): AsyncGenerator<Account, void>
    /** Add an account. */
    create(body: AccountWish, options?: RequestOptions): Promise<Account>
  }
  agents: {
    /** Create an agent. */
    create(body: NewAgent, options?: RequestOptions): Promise<Agent>
    /** List agents. */
    list(query?: AgentsListQuery, options?: RequestOptions): Promise<Page<Agent>>
    iterate(query?: AgentsListQuery, options?: RequestOptions): AsyncGenerator<Agent, void>
    /** Get an agent. */
    get(agentId: string, options?: RequestOptions): Promise<Agent>
    /** Change an agent. */
    update(agentId: string, body?: AgentChange, options?: RequestOptions): Promise<Agent>
    /** Delete an agent. */
    delete(agentId: string, options?: RequestOptions): Promise<Deleted>
    /** Link an agent to ERC-8004. */
    addErc8004(agentId: string, body: NewErc8004Link, options?: RequestOptions): Promise<Erc8004Link>
    /** List ERC-8004 links. */
    erc8004(agentId: string, query?: AgentsErc8004Query, options?: RequestOptions): Promise<Page<Erc8004Link>>
    iterateErc8004(agentId: string, query?: AgentsErc8004Query, options?: RequestOptions): AsyncGenerator<Erc8004Link, void>
    /** Remove an ERC-8004 link. */
    removeErc8004(agentId: string, linkId: string, options?: RequestOptions): Promise<Deleted>
    /** Get the reputation of an agent. */
    reputation(agentId: string, options?: RequestOptions): Promise<Reputation>
  }
  aliases: {
    /** Add an alias. */
    create(domainId: string, body: NewAlias, options?: RequestOptions): Promise<Alias>
    /** List aliases. */
    list(domainId: string, query?: AliasesListQuery, options?: RequestOptions): Promise<Page<Alias>>
    iterate(domainId: string, query?: AliasesListQuery, options?: RequestOptions): AsyncGenerator<Alias, void>
    /** Get an alias. */
    get(domainId: string, aliasId: string, options?: RequestOptions): Promise<Alias>
    /** Change an alias. */
    update(domainId: string, aliasId: string, body?: AliasChange, options?: RequestOptions): Promise<Alias>
    /** Delete an alias. */
    delete(domainId: string, aliasId: string, options?: RequestOptions): Promise<Deleted>
  }
  apiKeys: {
    /** Create an API key. */
    create(body?: NewApiKey, options?: RequestOptions): Promise<ApiKeyWithSecret>
    /** List API keys. */
    list(query?: ApiKeysListQuery, options?: RequestOptions): Promise<Page<ApiKey>>
    iterate(query?: ApiKeysListQuery, options?: RequestOptions): AsyncGenerator<ApiKey, void>
    /** Rotate the secret of a key. */
    rotate(apiKeyId: string, body?: Rotation, options?: RequestOptions): Promise<ApiKeyWithSecret>
    /** Revoke an API key. */
    revoke(apiKeyId: string, query?: ApiKeysRevokeQuery, options?: RequestOptions): Promise<KeyRevoked>
  }
  audit: {
    /** List the audit log. */
    list(query?: AuditListQuery, options?: RequestOptions): Promise<Page<AuditRow>>
    iterate(query?: AuditListQuery, options?: RequestOptions): AsyncGenerator<AuditRow, void>
  }
  backups: {
    /** Create a backup. */
    create(options?: RequestOptions): Promise<Job>
    /** List backups. */
    list(query?: BackupsListQuery, options?: RequestOptions): Promise<Page<Backup>>
    iterate(query?: BackupsListQuery, options?: RequestOptions): AsyncGenerator<Backup, void>
  }
  billing: {
    /** Get the subscription. */
    subscription(options?: RequestOptions): Promise<Subscription>
  }
  box: {
    /** Get the activity of the box. */
    stats(query?: BoxStatsQuery, options?: RequestOptions): Promise<Stats>
    /** Get the status of the box. */
    status(options?: RequestOptions): Promise<Status>
    /** Reload the settings. */
    reload(options?: RequestOptions): Promise<Reloaded>
  }
  cards: {
    /** Store a card. */
    create(identityId: string, body: NewCard, options?: RequestOptions): Promise<Card>
    /** List cards. */
    list(identityId: string, query?: CardsListQuery, options?: RequestOptions): Promise<Page<Card>>
    iterate(identityId: string, query?: CardsListQuery, options?: RequestOptions): AsyncGenerator<Card, void>
    /** Get a card. */
    get(cardId: string, options?: RequestOptions): Promise<Card>
    /** Reveal a card. */
    reveal(cardId: string, body?: RevealWish, options?: RequestOptions): Promise<Revealed>
    /** Freeze a card. */
    freeze(cardId: string, options?: RequestOptions): Promise<Card>
    /** Unfreeze a card. */
    unfreeze(cardId: string, options?: RequestOptions): Promise<Card>
    /** Cancel a card. */
    cancel(cardId: string, options?: RequestOptions): Promise<Card>
    /** Get a card's limits. */
    limits(cardId: string, options?: RequestOptions): Promise<CardLimits>
    /** Change a card's limits. */
    updateLimits(cardId: string, body?: LimitsChange, options?: RequestOptions): Promise<CardLimits>
    /** List a card's transactions. */
    transactions(cardId: string, query?: CardsTransactionsQuery, options?: RequestOptions): Promise<Page<CardTransaction>>
    iterateTransactions(cardId: string, query?: CardsTransactionsQuery, options?: RequestOptions): AsyncGenerator<CardTransaction, void>
    /** Record spending. */
    report(cardId: string, body: NewTransaction, options?: RequestOptions): Promise<CardTransaction>
  }
  certificates: {
    /** List certificates. */
    list(options?: RequestOptions): Promise<{
      data: Certificate[]
      has_more: boolean
      next_cursor: string | null
    }>
    /** Renew certificates. */
    renew(body?: CertificateRenewal, options?: RequestOptions): Promise<{
      data: Certificate[]
      has_more: boolean
      next_cursor: string | null
    }>
  }
  doctor: {
    /** Get the last results of the doctor. */
    get(options?: RequestOptions): Promise<DoctorReport>
    /** Run all checks of the doctor. */
    run(options?: RequestOptions): Promise<DoctorReport>
  }
  domains: {
    /** Change a domain. */
    update(domainId: string, body?: DomainChange, options?: RequestOptions): Promise<Domain>
    /** Add a domain. */
    create(body?: NewDomain, options?: RequestOptions): Promise<Domain>
    /** List domains. */
    list(query?: DomainsListQuery, options?: RequestOptions): Promise<Page<Domain>>
    iterate(query?: DomainsListQuery, options?: RequestOptions): AsyncGenerator<Domain, void>
    /** Get a domain. */
    get(domainId: string, options?: RequestOptions): Promise<Domain>
    /** Delete a domain. */
    delete(domainId: string, options?: RequestOptions): Promise<Deleted>
    /** Verify a domain. */
    verify(domainId: string, options?: RequestOptions): Promise<Domain>
    /** Rotate the DKIM keys. */
    rotateKeys(domainId: string, options?: RequestOptions): Promise<Domain>
    /** Get a domain's records as a zone file. */
    zone(domainId: string, options?: RequestOptions): Promise<string>
    /** List reports about a domain. */
    reports(domainId: string, query?: DomainsReportsQuery, options?: RequestOptions): Promise<Page<DomainReport>>
    iterateReports(domainId: string, query?: DomainsReportsQuery, options?: RequestOptions): AsyncGenerator<DomainReport, void>
  }
  emails: {
    /** List e-mails. */
    list(identityId: string, query?: EmailsListQuery, options?: RequestOptions): Promise<Page<EmailRow>>
    iterate(identityId: string, query?: EmailsListQuery, options?: RequestOptions): AsyncGenerator<EmailRow, void>
    /** Search e-mails. */
    search(identityId: string, query?: EmailsSearchQuery, options?: RequestOptions): Promise<Page<EmailRow>>
    iterateSearch(identityId: string, query?: EmailsSearchQuery, options?: RequestOptions): AsyncGenerator<EmailRow, void>
    /** Change many e-mails. */
    updateMany(identityId: string, body?: BulkChange, options?: RequestOptions): Promise<BulkResult>
    /** Get an e-mail. */
    get(identityId: string, emailId: string, options?: RequestOptions): Promise<Email>
    /** Change an e-mail. */
    update(identityId: string, emailId: string, body?: EmailChange, options?: RequestOptions): Promise<Email>
    /** Delete an e-mail. */
    delete(identityId: string, emailId: string, query?: EmailsDeleteQuery, options?: RequestOptions): Promise<Deleted>
    /** Restore an e-mail. */
    restore(identityId: string, emailId: string, options?: RequestOptions): Promise<Email>
    /** Get the source of an e-mail. */
    raw(identityId: string, emailId: string, options?: RequestOptions): Promise<Uint8Array>
    /** Get an e-mail as an HTML page. */
    html(identityId: string, emailId: string, query?: EmailsHtmlQuery, options?: RequestOptions): Promise<string>
    /** List attachments. */
    attachments(identityId: string, emailId: string, query?: EmailsAttachmentsQuery, options?: RequestOptions): Promise<Page<Attachment>>
    iterateAttachments(identityId: string, emailId: string, query?: EmailsAttachmentsQuery, options?: RequestOptions): AsyncGenerator<Attachment, void>
    /** Get an attachment’s URL. */
    attachment(identityId: string, emailId: string, index: number, options?: RequestOptions): Promise<AttachmentWithUrl>
    /** Get the text of an attachment. */
    attachmentText(identityId: string, emailId: string, index: number, query?: EmailsAttachmentTextQuery, options?: RequestOptions): Promise<AttachmentText>
    /** Release an e-mail that was set aside. */
    release(identityId: string, emailId: string, options?: RequestOptions): Promise<Email>
    /** Send an e-mail. */
    send(identityId: string, body: NewEmail, options?: RequestOptions): Promise<Email>
    /** Reply to an e-mail. */
    reply(identityId: string, emailId: string, body?: NewReply, options?: RequestOptions): Promise<Email>
    /** Forward an e-mail. */
    forward(identityId: string, emailId: string, body: NewForward, options?: RequestOptions): Promise<Email>
    /** Cancel an e-mail. */
    cancel(identityId: string, emailId: string, options?: RequestOptions): Promise<Email>
  }
  holds: {
    /** List holds. */
    list(query?: HoldsListQuery, options?: RequestOptions): Promise<Page<HoldRow>>
    iterate(query?: HoldsListQuery, options?: RequestOptions): AsyncGenerator<HoldRow, void>
    /** Get a hold. */
    get(holdId: string, options?: RequestOptions): Promise<Hold>
    /** Approve what is held. */
    approve(holdId: string, body?: HoldsApproveBody, options?: RequestOptions): Promise<HoldRow>
    /** Reject what is held. */
    reject(holdId: string, body?: HoldsRejectBody, options?: RequestOptions): Promise<HoldRow>
  }
  identities: {
    /** Create an identity. */
    create(body?: NewIdentity, options?: RequestOptions): Promise<Identity>
    /** List identities. */
    list(query?: IdentitiesListQuery, options?: RequestOptions): Promise<Page<ReducedIdentity>>
    iterate(query?: IdentitiesListQuery, options?: RequestOptions): AsyncGenerator<ReducedIdentity, void>
    /** Get an identity. */
    get(identityId: string, options?: RequestOptions): Promise<Identity>
    /** Change an identity. */
    update(identityId: string, body?: IdentityChange, options?: RequestOptions): Promise<Identity>
    /** Delete an identity. */
    delete(identityId: string, options?: RequestOptions): Promise<Deleted>
    /** Provision a phone number for an identity. */
    provisionPhone(identityId: string, body?: PhoneWish, options?: RequestOptions): Promise<Identity>
    /** Release the phone number of an identity. */
    releasePhone(identityId: string, options?: RequestOptions): Promise<Deleted>
    /** Issue an identity token. */
    issueToken(identityId: string, body?: TokenWish, options?: RequestOptions): Promise<IdentityToken>
    /** Revoke identity tokens. */
    revokeTokens(identityId: string, options?: RequestOptions): Promise<TokensRevoked>
    /** Get the reputation of an identity. */
    reputation(identityId: string, options?: RequestOptions): Promise<Reputation>
    /** Report on a subject. */
    report(identityId: string, body: NewReport, options?: RequestOptions): Promise<Report>
    /** Issue a reputation credential. */
    credential(identityId: string, options?: RequestOptions): Promise<Credential>
    /** List events. */
    events(identityId: string, query?: IdentitiesEventsQuery, options?: RequestOptions): Promise<Page<Event>>
    iterateEvents(identityId: string, query?: IdentitiesEventsQuery, options?: RequestOptions): AsyncGenerator<Event, void>
    /** List all messages. */
    messages(identityId: string, query?: IdentitiesMessagesQuery, options?: RequestOptions): Promise<Page<Message>>
    iterateMessages(identityId: string, query?: IdentitiesMessagesQuery, options?: RequestOptions): AsyncGenerator<Message, void>
    /** Wait for a message. */
    wait(identityId: string, query?: IdentitiesWaitQuery, options?: RequestOptions): Promise<WaitAnswer>
    /** Export an identity. */
    export(identityId: string, body?: ExportWish, options?: RequestOptions): Promise<Job>
    /** Import messages. */
    importMessages(identityId: string, octets: Uint8Array | Blob, options?: RequestOptions): Promise<Job>
    /** Empty the trash of an identity. */
    emptyTrash(identityId: string, options?: RequestOptions): Promise<Emptied>
  }
  jobs: {
    /** List jobs. */
    list(query?: JobsListQuery, options?: RequestOptions): Promise<Page<Job>>
    iterate(query?: JobsListQuery, options?: RequestOptions): AsyncGenerator<Job, void>
    /** Get a job. */
    get(jobId: string, options?: RequestOptions): Promise<Job>
    /** Cancel a job. */
    cancel(jobId: string, options?: RequestOptions): Promise<Job>
    /** Delete a job. */
    delete(jobId: string, options?: RequestOptions): Promise<Deleted>
  }
  queue: {
    /** List the queue. */
    list(query?: QueueListQuery, options?: RequestOptions): Promise<Page<QueueEntry>>
    iterate(query?: QueueListQuery, options?: RequestOptions): AsyncGenerator<QueueEntry, void>
    /** Summarize the queue. */
    summary(options?: RequestOptions): Promise<QueueSummary>
    /** Get a delivery of the queue. */
    get(queueId: string, options?: RequestOptions): Promise<QueueEntryWithHistory>
    /** Retry a delivery of the queue now. */
    retry(queueId: string, options?: RequestOptions): Promise<QueueEntryWithHistory>
    /** Drop a delivery of the queue. */
    delete(queueId: string, options?: RequestOptions): Promise<Deleted>
  }
  realtime: {
    /** Get a token for a WebSocket. */
    token(body?: RealtimeTokenWish, options?: RequestOptions): Promise<RealtimeToken>
  }
  senders: {
    /** Get who may write to the account. */
    get(options?: RequestOptions): Promise<SenderRules>
    /** Change who may write to the account. */
    update(body?: SenderRulesInput, options?: RequestOptions): Promise<SenderRules>
    /** Get who may write to an identity. */
    getOfIdentity(identityId: string, options?: RequestOptions): Promise<SenderRules>
    /** Change who may write to an identity. */
    updateOfIdentity(identityId: string, body?: SenderRulesInput, options?: RequestOptions): Promise<SenderRules>
  }
  signingKeys: {
    /** Rotate the signing keys. */
    rotate(body?: KeyRotation, options?: RequestOptions): Promise<KeyRotated>
  }
  sms: {
    /** Send an SMS. */
    send(identityId: string, body: NewSms, options?: RequestOptions): Promise<Sms>
    /** List SMS. */
    list(identityId: string, query?: SmsListQuery, options?: RequestOptions): Promise<Page<Sms>>
    iterate(identityId: string, query?: SmsListQuery, options?: RequestOptions): AsyncGenerator<Sms, void>
    /** Get an SMS. */
    get(identityId: string, smsId: string, options?: RequestOptions): Promise<Sms>
    /** Mark an SMS as read or unread. */
    update(identityId: string, smsId: string, body?: SmsChange, options?: RequestOptions): Promise<Sms>
    /** Delete an SMS. */
    delete(identityId: string, smsId: string, query?: SmsDeleteQuery, options?: RequestOptions): Promise<Deleted>
    /** Restore an SMS. */
    restore(identityId: string, smsId: string, options?: RequestOptions): Promise<Sms>
    /** Get the URL of a picture. */
    media(identityId: string, smsId: string, index: number, options?: RequestOptions): Promise<SmsMediaWithUrl>
    /** Send a message to the loopback provider. */
    inject(body: InjectedSms, options?: RequestOptions): Promise<Sms>
  }
  suppressions: {
    /** List suppressions. */
    list(query?: SuppressionsListQuery, options?: RequestOptions): Promise<Page<Suppression>>
    iterate(query?: SuppressionsListQuery, options?: RequestOptions): AsyncGenerator<Suppression, void>
    /** Suppress an address. */
    create(body: NewSuppression, options?: RequestOptions): Promise<Suppression>
    /** Lift a suppression. */
    delete(suppressionId: string, options?: RequestOptions): Promise<Deleted>
  }
  threads: {
    /** List threads. */
    list(identityId: string, query?: ThreadsListQuery, options?: RequestOptions): Promise<Page<Thread>>
    iterate(identityId: string, query?: ThreadsListQuery, options?: RequestOptions): AsyncGenerator<Thread, void>
    /** Get a thread. */
    get(identityId: string, threadId: string, query?: ThreadsGetQuery, options?: RequestOptions): Promise<ThreadWithMessages>
  }
  tokens: {
    /** Verify an identity token. */
    verify(body: TokenQuestion, options?: RequestOptions): Promise<VerifiedToken>
  }
  totp: {
    /** Create a one-time password. */
    create(identityId: string, body?: NewTotpEntry, options?: RequestOptions): Promise<TotpEntry>
    /** List one-time passwords. */
    list(identityId: string, query?: TotpListQuery, options?: RequestOptions): Promise<Page<TotpEntry>>
    iterate(identityId: string, query?: TotpListQuery, options?: RequestOptions): AsyncGenerator<TotpEntry, void>
    /** Get a one-time password. */
    get(identityId: string, totpId: string, options?: RequestOptions): Promise<TotpEntry>
    /** Read the code. */
    code(identityId: string, totpId: string, query?: TotpCodeQuery, options?: RequestOptions): Promise<TotpCode>
    /** Delete a one-time password. */
    delete(identityId: string, totpId: string, options?: RequestOptions): Promise<Deleted>
  }
  trust: {
    /** Evaluate trust. */
    evaluate(body?: TrustQuestion, options?: RequestOptions): Promise<TrustEvaluation>
  }
  webhooks: {
    /** Create a webhook. */
    create(body: NewWebhook, options?: RequestOptions): Promise<WebhookWithSecret>
    /** List webhooks. */
    list(query?: WebhooksListQuery, options?: RequestOptions): Promise<Page<Webhook>>
    iterate(query?: WebhooksListQuery, options?: RequestOptions): AsyncGenerator<Webhook, void>
    /** Get a webhook. */
    get(webhookId: string, options?: RequestOptions): Promise<Webhook>
    /** Change a webhook. */
    update(webhookId: string, body?: WebhookChange, options?: RequestOptions): Promise<Webhook>
    /** Delete a webhook. */
    delete(webhookId: string, options?: RequestOptions): Promise<Deleted>
    /** List deliveries of a webhook. */
    deliveries(webhookId: string, query?: WebhooksDeliveriesQuery, options?: RequestOptions): Promise<Page<WebhookDelivery>>
    iterateDeliveries(webhookId: string, query?: WebhooksDeliveriesQuery, options?: RequestOptions): AsyncGenerator<WebhookDelivery, void>
    /** Get a delivery of a webhook. */
    delivery(webhookId: string, deliveryId: string, options?: RequestOptions): Promise<WebhookDeliveryWithRequest>
    /** Redeliver an event. */
    redeliver(webhookId: string, deliveryId: string, options?: RequestOptions): Promise<WebhookDelivery>
    /** Send a test event. */
    test(webhookId: string, options?: RequestOptions): Promise<WebhookDelivery>
    /** Rotate the secret of a webhook. */
    rotateSecret(webhookId: string, body?: SecretRotation, options?: RequestOptions): Promise<WebhookWithSecret>
  }
}
