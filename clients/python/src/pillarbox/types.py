# Printed by `npm run docs` from the declarations of the box. Not to be changed by hand.

from __future__ import annotations

import sys
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired, TypedDict
else:
    from typing_extensions import NotRequired, TypedDict

Row = TypeVar("Row")

Json: TypeAlias = Any
"""Any JSON."""


class Page(TypedDict, Generic[Row]):
    """The answer of every list."""

    data: list[Row]
    has_more: bool
    next_cursor: str | None


class Account(TypedDict):
    id: str
    name: str
    email: str | None
    """the address used to sign in"""
    password_set: bool
    totp_enabled: bool
    """whether signing in requires a second factor"""
    recovery_codes_left: int
    stopped_at: str | None
    """since when it is stopped"""
    created_at: str


class AccountWish(TypedDict):
    name: str
    """unique without regard to case"""
    email: str
    """the address used to sign in"""
    password: str
    """8 to 256 characters, none of the most common"""


class Address(TypedDict):
    address: str
    name: str


class AgentLinks(TypedDict):
    name: str
    url: str


class Agent(TypedDict):
    id: str
    identity_id: str
    handle: str
    """unique on this box, never reused"""
    display_name: str
    description: str | None
    avatar_url: str | None
    capabilities: list[str]
    links: list[AgentLinks]
    metadata: dict[str, Json]
    did: str
    """did:web, resolved at /v1/agents/{id}/did.json"""
    status: Literal["active", "suspended"]
    """the status of its identity"""
    created_at: str
    updated_at: str


class AgentChangeLinks(TypedDict):
    name: str
    url: str


class AgentChange(TypedDict):
    handle: NotRequired[str]
    """the previous handle remains reserved for the agent, which can return to it"""
    display_name: NotRequired[str]
    description: NotRequired[str | None]
    avatar_url: NotRequired[str | None]
    capabilities: NotRequired[list[str]]
    """replaces the list"""
    links: NotRequired[list[AgentChangeLinks]]
    """replaces the list"""
    metadata: NotRequired[dict[str, Json]]
    """merged; null removes a key (RFC 7396)"""


class Alias(TypedDict):
    id: str
    domain_id: str
    address: str
    """also receives with a tag: local_part+tag"""
    local_part: str
    identity_id: str
    """the identity that receives its mail and may send from it"""
    created_at: str


class AliasChange(TypedDict):
    identity_id: NotRequired[str]
    """the identity that receives its mail from now on"""


class ApiKey(TypedDict):
    id: str
    label: str
    scopes: list[Scope]
    key_prefix: str
    """the first characters, to tell keys apart"""
    identity_id: str | None
    """the one identity the key is bound to"""
    rate_limit: int
    """calls a minute, of this key and the keys it created together; 0 is no limit"""
    created_at: str
    created_by: str | None
    """the key or session that created it; null if it was created on the machine of the box, or before this was recorded"""
    rotated_by: str | None
    """the key or session that last gave it a new secret, if not the key itself"""
    last_used_at: str | None
    expires_at: str | None
    revoked_at: str | None


class ApiKeyWithSecret(TypedDict):
    id: str
    label: str
    scopes: list[Scope]
    key_prefix: str
    """the first characters, to tell keys apart"""
    identity_id: str | None
    """the one identity the key is bound to"""
    rate_limit: int
    """calls a minute, of this key and the keys it created together; 0 is no limit"""
    created_at: str
    created_by: str | None
    """the key or session that created it; null if it was created on the machine of the box, or before this was recorded"""
    rotated_by: str | None
    """the key or session that last gave it a new secret, if not the key itself"""
    last_used_at: str | None
    expires_at: str | None
    revoked_at: str | None
    key: str
    """returned only once"""


class Attachment(TypedDict):
    index: int
    filename: str
    content_type: str
    size: int
    """decoded size in bytes"""
    content_id: str | None
    disposition: Literal["attachment", "inline"]
    sha256: str


class AttachmentText(TypedDict):
    index: int
    filename: str
    format: Literal["pdf", "docx", "xlsx", "html", "csv", "text"]
    """by its content; the declared type and the name only tell texts apart"""
    text: str
    """of HTML as Markdown; of a sheet a line for each row, with tabs between its cells"""
    offset: int
    """where text begins, in characters"""
    next_offset: int | None
    """where the next piece begins; null after the last"""
    characters: int
    """of the whole text"""
    pages: int | None
    """of a PDF; null for other formats"""
    truncated: bool
    """true if the attachment has more text than can be read, beyond the last offset"""


class AttachmentWithUrl(TypedDict):
    index: int
    filename: str
    content_type: str
    size: int
    """decoded size in bytes"""
    content_id: str | None
    disposition: Literal["attachment", "inline"]
    sha256: str
    url: str
    """usable without a key until it expires"""
    expires_at: str


class AuditRow(TypedDict):
    seq: int
    """its place in the log of the whole box"""
    account_id: str
    at: str
    actor: str
    """the id of a key or person; operator for commands on the machine of the box, anonymous for callers without a key"""
    client: str | None
    """the id of the OAuth client, mcp for another client of /mcp, smtp for programs that submit mail, socket for commands; null for a plain call"""
    address: str | None
    """the network address of the caller"""
    action: str
    target: str | None
    """the id of what it was done to"""
    identity_id: str | None
    count: int
    """how many times, for reads and refusals that were repeated"""
    detail: dict[str, Json]
    hash: str
    """SHA-256 of the row before and this one, in hex"""


class AuthenticationSpf(TypedDict):
    result: AuthenticationResult
    domain: str | None
    reason: str | None


class AuthenticationDkim(TypedDict):
    result: AuthenticationResult
    domain: str
    selector: str
    algorithm: str | None
    aligned: bool
    reason: str | None
    signed_fields: list[str]
    """header fields of which the signature covers all instances, in lower case; at most 50"""


class AuthenticationDmarc(TypedDict):
    result: AuthenticationResult
    domain: str | None
    policy: Literal["none", "quarantine", "reject"] | None
    aligned_by: list[Literal["spf", "dkim"]]
    reason: str | None


class AuthenticationArc(TypedDict):
    result: AuthenticationResult
    chain: int
    reason: str | None


class Authentication(TypedDict):
    spf: AuthenticationSpf
    dkim: list[AuthenticationDkim]
    dmarc: AuthenticationDmarc
    arc: AuthenticationArc


AuthenticationResult: TypeAlias = "Literal[\"pass\", \"fail\", \"softfail\", \"neutral\", \"none\", \"temperror\", \"permerror\", \"policy\"]"


AutoSubmitted: TypeAlias = "Literal[\"no\", \"auto-generated\", \"auto-replied\"]"


class Backup(TypedDict):
    name: str
    """name of its file in backup.directory"""
    size: int
    """bytes"""
    box_id: str
    created_at: str
    """the time of its state"""
    program_version: str
    database_version: int
    keys: bool
    """whether it contains the keys, encrypted with a passphrase"""
    rows: dict[str, int]
    """number of rows of each table"""


class Budget(TypedDict):
    amount: int
    currency: str
    period: Period


BulkChangeSearch = TypedDict("BulkChangeSearch", {
    "unread": "NotRequired[bool]",
    "from": "NotRequired[str]",
    "to": "NotRequired[str]",
    "after": "NotRequired[str]",
    "before": "NotRequired[str]",
    "direction": "NotRequired[Literal[\"inbound\", \"outbound\", \"all\"]]",
    "query": "NotRequired[str]",
    "q": "NotRequired[str]",
})


class BulkChangeLabels(TypedDict):
    add: NotRequired[list[str]]
    remove: NotRequired[list[str]]


class BulkChange(TypedDict):
    ids: NotRequired[list[str]]
    """the e-mails to change; not together with search"""
    search: NotRequired[BulkChangeSearch]
    """changes what GET …/emails/search finds with these, newest first; needs a scope to read too"""
    limit: NotRequired[int]
    """the most e-mails that a search changes in this call"""
    cursor: NotRequired[str]
    """the next_cursor of the call before, with the same search"""
    read: NotRequired[bool]
    unread: NotRequired[bool]
    labels: NotRequired[BulkChangeLabels]
    delete: NotRequired[bool]
    """moves them to the trash"""
    purge: NotRequired[bool]
    """deletes them permanently; ids may be in the trash"""


class BulkResultFailed(TypedDict):
    id: str
    code: str
    message: str


class BulkResult(TypedDict):
    changed: list[str]
    """the e-mails that are now as asked for, also those that were so before"""
    not_found: list[str]
    """the ids that name no e-mail here"""
    failed: list[BulkResultFailed]
    """the e-mails that are as they were, with the reason: more labels than an e-mail can have"""
    has_more: bool
    """whether the search finds more: call again with next_cursor as cursor"""
    next_cursor: str | None


class Card(TypedDict):
    id: str
    identity_id: str
    last4: str
    brand: str
    exp_month: int
    exp_year: int
    budget_cents: int
    """in minor units of the currency"""
    spent_cents: int
    """in this period: reserved by reveals, or reported"""
    status: Literal["active", "frozen", "cancelled"]
    card_name: str
    label: str
    """the same as card_name"""
    budget: Budget
    """the same as budget_cents, currency and period"""
    currency: str
    period: Period
    created_at: str
    updated_at: str


class CardLimits(TypedDict):
    card_id: str
    budget_cents: int
    spent_cents: int
    remaining_cents: int
    """budget minus spent; below 0 if more was reported than budgeted"""
    status: Literal["active", "frozen", "cancelled"]
    period: Period
    currency: str
    resets_at: str | None
    """time at which spent_cents is reset to 0; null for one_time"""


class CardRevealed(TypedDict):
    id: str
    identity_id: str
    last4: str
    brand: str
    exp_month: int
    exp_year: int
    budget_cents: int
    """in minor units of the currency"""
    spent_cents: int
    """in this period: reserved by reveals, or reported"""
    status: Literal["active", "frozen", "cancelled"]
    card_name: str
    label: str
    """the same as card_name"""
    budget: Budget
    """the same as budget_cents, currency and period"""
    currency: str
    period: Period
    created_at: str
    updated_at: str
    transaction: CardTransaction


class CardTransaction(TypedDict):
    id: str
    card_id: str
    type: Literal["reveal", "report", "refund", "reset"]
    amount_cents: int | None
    """null for a reveal without an amount"""
    allowed: bool
    reason: Literal["card_frozen", "card_cancelled", "budget_exceeded", "policy_refused", "held", "repeated"] | None
    """why a reveal was rejected; held: a person must approve it first; repeated: returned again for the same Idempotency-Key, without a charge"""
    reveal_id: str | None
    """the reveal that this transaction reports, refunds or repeats"""
    spent_cents: int
    """of the card, after this transaction"""
    key_id: str | None
    ip: str
    user_agent: str
    purpose: str | None
    description: str | None
    created_at: str


class Certificate(TypedDict):
    uses: list[Literal["mail", "api"]]
    """the services that use it: mail is SMTP (STARTTLS and submission), api the REST API; empty while unused"""
    source: Literal["file", "acme", "self_signed"]
    """files named in the settings, obtained by ACME, or self-signed"""
    names: list[str]
    """the host names it contains, or should contain"""
    file: str
    """its path on the box"""
    issuer: str | None
    """null while there is none"""
    fingerprint: str | None
    """SHA-256, in hexadecimal"""
    not_before: str | None
    not_after: str | None
    renew_at: str | None
    """time from which ACME requests the next one"""
    tried_at: str | None
    """time of the last request to the CA"""
    next_try_at: str | None
    """after a failure"""
    problem: str | None
    """why there is none, or none newer: the fault of the files, or the error of the CA"""


class CertificateRenewal(TypedDict):
    name: NotRequired[str]
    """a host name: its certificate is renewed even if it is not due"""


class Credential(TypedDict):
    credential: str
    """a Verifiable Credential (VC 2.0) as a JWT, type vc+jwt"""
    expires_at: str


class Deleted(TypedDict):
    id: str
    deleted: Literal[True]


class Delivery(TypedDict):
    recipient: str
    status: EmailStatus
    smtp_code: int | None
    """SMTP code of the last reply (RFC 5321 4.2)"""
    enhanced_code: str | None
    """enhanced status code of the last reply (RFC 3463)"""
    response: str | None
    """the last reply, or the reason why there was none"""
    mx: str | None
    """the last server contacted"""
    tls: str | None
    """version and cipher, and whether the certificate was verified; null without TLS"""
    attempts: int
    next_attempt_at: str | None
    delivered_at: str | None


class DeliveryAttempt(TypedDict):
    number: int
    started_at: str
    ended_at: str | None
    outcome: Literal["delivered", "sent", "deferred", "bounced", "failed", "interrupted", "pending"]
    response: str | None
    mx: str | None
    tls: str | None


class DnsRecord(TypedDict):
    purpose: Literal["mx", "spf", "dkim", "dmarc", "mta_sts", "tls_rpt"]
    required: bool
    """whether verification requires this record"""
    type: Literal["MX", "TXT", "CNAME"]
    name: str
    """without a trailing dot"""
    value: str
    priority: NotRequired[int]
    """the preference of an MX record"""
    ttl: int
    """seconds"""
    status: Literal["missing", "invalid", "valid"]
    found: list[str]
    """the first ten values found in the DNS, shortened to 3 KB together; control characters as \\DDD"""
    reason: str | None
    """what is wrong, and the correct value"""
    unanswered: bool
    """whether the last lookup failed: the other fields are from an earlier one"""
    seen_at: str | None
    """time of the last DNS answer; null if there was none, or it was not recorded"""


class DoctorChange(TypedDict):
    name: str
    """the check: config, disk, mx, … (docs/troubleshooting.md)"""
    subject: str
    """the object checked: a path, a domain, an address"""
    status: Literal["pass", "warn", "fail"]
    message: str
    """the finding"""
    fix: str | None
    """the remedy, verbatim: a command, a setting, a DNS record"""
    box: NotRequired[str]
    """of several boxes on one database, the one whose machine was checked; absent for what all have"""
    before: Literal["pass", "warn", "fail"] | None
    """its status before; null for a new line"""
    since: str


class DoctorLine(TypedDict):
    name: str
    """the check: config, disk, mx, … (docs/troubleshooting.md)"""
    subject: str
    """the object checked: a path, a domain, an address"""
    status: Literal["pass", "warn", "fail"]
    message: str
    """the finding"""
    fix: str | None
    """the remedy, verbatim: a command, a setting, a DNS record"""
    box: NotRequired[str]
    """of several boxes on one database, the one whose machine was checked; absent for what all have"""
    since: str
    """time since which it has this status"""
    checked_at: str


DoctorReport = TypedDict("DoctorReport", {
    "status": "Literal[\"pass\", \"warn\", \"fail\"]",
    "pass": "int",
    "warn": "int",
    "fail": "int",
    "checked_at": "str | None",
    "lines": "list[DoctorLine]",
})


class Domain(TypedDict):
    id: str
    name: str
    """lower-case A-labels"""
    status: Literal["pending", "verified"]
    default: bool
    """whether this is mail.domain, the domain of new addresses"""
    catch_all: str | None
    """the identity that receives mail for unknown addresses of the domain"""
    dns_records: list[DnsRecord]
    created_at: str
    verified_at: str | None
    last_checked_at: str | None


class DomainChange(TypedDict):
    catch_all: NotRequired[str | None]
    """the identity that receives mail for unknown addresses of the domain; null rejects such mail"""


class DomainReport(TypedDict):
    kind: Literal["dmarc", "tls"]
    reporter: str
    report_id: str
    begins_at: str | None
    ends_at: str | None
    received_at: str
    data: dict[str, Json]
    """dmarc: {policy, rows[{source_ip, count, disposition, dkim, spf, header_from}], pass, fail}; tls: {policies[{type, domain, successful, failed, failures[]}]}"""


class EmailRecipients(TypedDict):
    to: list[Address]
    cc: list[Address]
    bcc: list[Address]


Email = TypedDict("Email", {
    "id": "str",
    "identity_id": "str",
    "thread_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "EmailStatus",
    "from": "str",
    "from_name": "str",
    "to": "str",
    "subject": "str",
    "snippet": "str",
    "read": "bool",
    "spam": "bool",
    "automated": "bool",
    "tag": "str | None",
    "labels": "list[str]",
    "size": "int",
    "has_attachments": "bool",
    "verified_domain": "str | None",
    "message_id": "str | None",
    "in_reply_to": "str | None",
    "codes": "list[str]",
    "received_at": "str",
    "sent_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "body_text": "str | None",
    "body_html": "str | None",
    "text": "str",
    "references": "list[str]",
    "reply_to": "str | None",
    "reply_to_verified": "bool | None",
    "cc": "list[Address]",
    "bcc": "list[Address]",
    "recipients": "EmailRecipients",
    "body_truncated": "NotRequired[bool]",
    "links": "list[Link]",
    "attachments": "list[Attachment]",
    "authentication": "Authentication | None",
    "screening": "Screening | None",
    "set_aside": "Literal[\"blocked_sender\", \"unlisted_sender\", \"unverified_sender\", \"suspicious\"] | None",
    "hold": "HoldState | None",
    "parse_error": "str | None",
    "send_at": "str | None",
    "created_by": "str | None",
    "deliveries": "list[EmailDelivery]",
    "duplicate_of": "str | None",
})


class EmailChangeLabels(TypedDict):
    add: NotRequired[list[str]]
    remove: NotRequired[list[str]]


class EmailChange(TypedDict):
    read: NotRequired[bool]
    unread: NotRequired[bool]
    labels: NotRequired[EmailChangeLabels]
    send_at: NotRequired[str]
    """a new time, while it is scheduled"""


class EmailDelivery(TypedDict):
    recipient: str
    status: EmailStatus
    smtp_code: int | None
    """SMTP code of the last reply (RFC 5321 4.2)"""
    enhanced_code: str | None
    """enhanced status code of the last reply (RFC 3463)"""
    response: str | None
    """the last reply, or the reason why there was none"""
    mx: str | None
    """the last server contacted"""
    tls: str | None
    """version and cipher, and whether the certificate was verified; null without TLS"""
    attempts: int
    next_attempt_at: str | None
    delivered_at: str | None
    history: NotRequired[list[DeliveryAttempt]]


class EmailMessageRecipients(TypedDict):
    to: list[Address]
    cc: list[Address]
    bcc: list[Address]


EmailMessage = TypedDict("EmailMessage", {
    "id": "str",
    "identity_id": "str",
    "thread_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "EmailStatus",
    "from": "str",
    "from_name": "str",
    "to": "str",
    "subject": "str",
    "snippet": "str",
    "read": "bool",
    "spam": "bool",
    "automated": "bool",
    "tag": "str | None",
    "labels": "list[str]",
    "size": "int",
    "has_attachments": "bool",
    "verified_domain": "str | None",
    "message_id": "str | None",
    "in_reply_to": "str | None",
    "codes": "list[str]",
    "received_at": "str",
    "sent_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "body_text": "str | None",
    "body_html": "str | None",
    "text": "str",
    "references": "list[str]",
    "reply_to": "str | None",
    "reply_to_verified": "bool | None",
    "cc": "list[Address]",
    "bcc": "list[Address]",
    "recipients": "EmailMessageRecipients",
    "body_truncated": "NotRequired[bool]",
    "links": "list[Link]",
    "attachments": "list[Attachment]",
    "authentication": "Authentication | None",
    "screening": "Screening | None",
    "set_aside": "Literal[\"blocked_sender\", \"unlisted_sender\", \"unverified_sender\", \"suspicious\"] | None",
    "hold": "HoldState | None",
    "parse_error": "str | None",
    "send_at": "str | None",
    "created_by": "str | None",
    "deliveries": "list[EmailDelivery]",
    "duplicate_of": "str | None",
    "type": "Literal[\"email\"]",
})


EmailRow = TypedDict("EmailRow", {
    "id": "str",
    "identity_id": "str",
    "thread_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "EmailStatus",
    "from": "str",
    "from_name": "str",
    "to": "str",
    "subject": "str",
    "snippet": "str",
    "read": "bool",
    "spam": "bool",
    "automated": "bool",
    "tag": "str | None",
    "labels": "list[str]",
    "size": "int",
    "has_attachments": "bool",
    "verified_domain": "str | None",
    "message_id": "str | None",
    "in_reply_to": "str | None",
    "codes": "list[str]",
    "received_at": "str",
    "sent_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "body_text": "NotRequired[str | None]",
    "body_html": "NotRequired[str | None]",
    "text": "NotRequired[str]",
})


EmailStatus: TypeAlias = "Literal[\"received\", \"held\", \"scheduled\", \"queued\", \"sending\", \"sent\", \"delivered\", \"deferred\", \"bounced\", \"failed\", \"cancelled\"]"


class Emptied(TypedDict):
    id: str
    purged: int
    """number of deleted e-mails and text messages"""


class EndedWithKey(TypedDict):
    """number of objects created by the key that ended; 0 with keep; holds are those of text messages and cards"""

    api_keys: int
    webhooks: int
    jobs: int
    scheduled_emails: int
    holds: int


class Erc8004Link(TypedDict):
    id: str
    chain_id: int
    registry: str
    """the address of the identity registry, with its checksum (EIP-55)"""
    token_id: str
    """decimal; up to 256 bits"""
    owner_address: NotRequired[str]
    tx_hash: NotRequired[str]
    status: Literal["unverified"]
    """the box does not query any chain: clients must check the registry themselves"""
    created_at: str


class ExportWish(TypedDict):
    format: NotRequired[Literal["mbox", "eml"]]
    """format of the messages: all in messages.mbox, or each in a separate file below eml/"""


HeaderFields: TypeAlias = "dict[str, str]"


class HeldCard(TypedDict):
    id: str
    identity_id: str
    last4: str
    brand: str
    exp_month: int
    exp_year: int
    budget_cents: int
    """in minor units of the currency"""
    spent_cents: int
    """in this period: reserved by reveals, or reported"""
    status: Literal["active", "frozen", "cancelled"]
    card_name: str
    label: str
    """the same as card_name"""
    budget: Budget
    """the same as budget_cents, currency and period"""
    currency: str
    period: Period
    created_at: str
    updated_at: str
    amount_cents: int | None
    """to be reserved; null for a reveal without an amount"""
    purpose: str | None
    used_at: str | None
    """when the approved reveal took place"""
    hold: HoldState


class HeldLogin(TypedDict):
    id: str
    identity_id: str
    label: str
    url: str | None
    has_password: bool
    has_api_key: bool
    has_notes: bool
    totp_id: str | None
    """the one-time password that goes with it"""
    created_at: str
    updated_at: str
    host: str | None
    """of the url"""
    purpose: str | None
    used_at: str | None
    """when the approved reveal took place"""
    hold: HoldState


class HoldReasons(TypedDict):
    level: Literal["box", "account", "identity"]
    """whose policy: of pillarbox.yaml, of the account, of the identity"""
    action: Literal["send", "hold", "refuse"]
    rule: int | None
    """its place among the rules, from 0; null for the preset"""
    recipient: str | None
    unscanned: NotRequired[Literal[True]]
    """it looks at what a scan finds, and the message could not be scanned"""


class HoldFound(TypedDict):
    kind: Literal["secret", "key", "card", "code", "unread"]
    place: str
    """subject, body_text, body_html, text, the name of an attachment, or body of a text message"""
    sample: str
    """its first characters"""


class Hold(TypedDict):
    id: str
    status: Literal["open", "approved", "rejected", "expired", "cancelled"]
    expires_at: str
    """rejected then"""
    decided_at: str | None
    reason: str | None
    """of the decision"""
    kind: Literal["email", "sms", "card", "login"]
    identity_id: str
    about: str
    """the id of the e-mail, of the text message, of the card, or of the login"""
    created_by: str | None
    """the key that sent it, or that wants to reveal the card or login"""
    created_at: str
    decided_by: str | None
    """the key or person that decided; null for the operator, and for none"""
    sha256: str
    """in hexadecimal: of the bytes of an e-mail; of a text message: to, a line end and body; of a card: its id, amount_cents and purpose, with line ends between; of a login: its id, label, url, place, updated_at and purpose"""
    reasons: list[HoldReasons]
    found: list[HoldFound]
    email: Email | None
    """as it would be sent; null once it was deleted"""
    sms: Sms | None
    """as it would be sent; null once it was deleted"""
    card: HeldCard | None
    """what would be revealed; null once it was deleted"""
    login: HeldLogin | None
    """what would be revealed; null once it was deleted"""


class HoldRowReasons(TypedDict):
    level: Literal["box", "account", "identity"]
    """whose policy: of pillarbox.yaml, of the account, of the identity"""
    action: Literal["send", "hold", "refuse"]
    rule: int | None
    """its place among the rules, from 0; null for the preset"""
    recipient: str | None
    unscanned: NotRequired[Literal[True]]
    """it looks at what a scan finds, and the message could not be scanned"""


class HoldRowFound(TypedDict):
    kind: Literal["secret", "key", "card", "code", "unread"]
    place: str
    """subject, body_text, body_html, text, the name of an attachment, or body of a text message"""
    sample: str
    """its first characters"""


class HoldRow(TypedDict):
    id: str
    status: Literal["open", "approved", "rejected", "expired", "cancelled"]
    expires_at: str
    """rejected then"""
    decided_at: str | None
    reason: str | None
    """of the decision"""
    kind: Literal["email", "sms", "card", "login"]
    identity_id: str
    about: str
    """the id of the e-mail, of the text message, of the card, or of the login"""
    created_by: str | None
    """the key that sent it, or that wants to reveal the card or login"""
    created_at: str
    decided_by: str | None
    """the key or person that decided; null for the operator, and for none"""
    sha256: str
    """in hexadecimal: of the bytes of an e-mail; of a text message: to, a line end and body; of a card: its id, amount_cents and purpose, with line ends between; of a login: its id, label, url, place, updated_at and purpose"""
    reasons: list[HoldRowReasons]
    found: list[HoldRowFound]


class HoldState(TypedDict):
    id: str
    status: Literal["open", "approved", "rejected", "expired", "cancelled"]
    expires_at: str
    """rejected then"""
    decided_at: str | None
    reason: str | None
    """of the decision"""


class Identity(TypedDict):
    id: str
    name: str
    email: str
    """permanent; renaming does not change it"""
    phone_number: NotRequired[str]
    date_of_birth: str
    status: Literal["active", "suspended"]
    metadata: dict[str, Json]
    storage: NotRequired[Storage]
    """omitted in events"""
    can_send_outside: NotRequired[bool]
    """whether mail can be sent to addresses that are not on this box; omitted in events"""
    cannot_send_outside_reason: NotRequired[str | None]
    """why not, and who can change that; null if it can; omitted in events"""
    expires_at: str | None
    """when it is deleted; null: when someone deletes it"""
    created_at: str
    updated_at: str


class IdentityChange(TypedDict):
    name: NotRequired[str]
    display_name: NotRequired[str]
    metadata: NotRequired[dict[str, Json]]
    """merged; null removes a key (RFC 7396)"""
    date_of_birth: NotRequired[str]
    status: NotRequired[Literal["active", "suspended"]]
    expires_at: NotRequired[str | None]


class IdentityToken(TypedDict):
    token: str
    """a JWT signed with EdDSA"""
    expires_at: str


class InjectedSmsMedia(TypedDict):
    content_type: str
    content: str


InjectedSms = TypedDict("InjectedSms", {
    "from": "str",
    "to": "str",
    "body": "str",
    "media": "NotRequired[list[InjectedSmsMedia]]",
})


class JobProgress(TypedDict):
    done: int
    total: int | None
    """null while unknown"""
    unit: str
    """the unit: messages, octets, …"""


class JobError(TypedDict):
    message: str
    code: str | None
    """a stable machine-readable code, such as import_too_large"""


class Job(TypedDict):
    id: str
    kind: str
    """export, import, …"""
    identity_id: str | None
    status: Literal["running", "done", "failed", "cancelled"]
    progress: JobProgress
    result: dict[str, Json] | None
    """the result, once it is done"""
    error: JobError | None
    created_at: str
    created_by: str | None
    """the key or session that created it; null if it was created on the machine of the box, or before this was recorded"""
    finished_at: str | None


class KeyRevoked(TypedDict):
    id: str
    deleted: Literal[True]
    ended: EndedWithKey


class KeyRotated(TypedDict):
    kid: str
    """the key that signs from now on"""
    replaced_all: bool


class KeyRotation(TypedDict):
    now: NotRequired[bool]
    """replaces all keys immediately because they may have leaked; everything they signed becomes invalid"""


class LimitsChangeBudget(TypedDict):
    """the same as budget_cents, currency and period"""

    amount: NotRequired[int]
    currency: NotRequired[str]
    """ISO 4217, stored in lower case"""
    period: NotRequired[Period]


class LimitsChange(TypedDict):
    budget_cents: NotRequired[int]
    currency: NotRequired[str]
    """can be changed only while nothing is spent"""
    period: NotRequired[Period]
    budget: NotRequired[LimitsChangeBudget]
    """the same as budget_cents, currency and period"""
    reset_spent: NotRequired[bool]
    """true resets spent_cents to 0"""
    reset_spend: NotRequired[bool]
    """the same as reset_spent"""


class Link(TypedDict):
    """A link of the message and its likely purpose"""

    url: str
    text: str
    kind: Literal["verify", "reset", "signin", "unsubscribe", "other"]


class LoginNoted(TypedDict):
    """a login without its user name"""

    id: str
    identity_id: str
    label: str
    url: str | None
    has_password: bool
    has_api_key: bool
    has_notes: bool
    totp_id: str | None
    """the one-time password that goes with it"""
    created_at: str
    updated_at: str


Message: TypeAlias = "EmailMessage | SmsMessage"


class NewAgentLinks(TypedDict):
    name: str
    url: str


class NewAgent(TypedDict):
    identity_id: str
    """the identity of the agent; an identity has at most one agent"""
    handle: NotRequired[str]
    """2 to 39 of a-z, 0-9 and hyphen, in either case; unique on this box, never reused. Derived from the identity’s name if omitted"""
    display_name: NotRequired[str]
    """the identity’s name if omitted"""
    description: NotRequired[str | None]
    """its purpose, at most 2000 characters; public"""
    avatar_url: NotRequired[str | None]
    capabilities: NotRequired[list[str]]
    """its capabilities, as free text"""
    links: NotRequired[list[NewAgentLinks]]
    """links to more information; https only"""
    metadata: NotRequired[dict[str, Json]]
    """free-form, at most 16 KiB; not public"""


class NewAlias(TypedDict):
    local_part: str
    """the part before the @"""
    identity_id: str
    """an identity of the account"""


class NewApiKey(TypedDict):
    label: NotRequired[str]
    scopes: NotRequired[list[Scope]]
    """all scopes of the caller but holds:decide if omitted"""
    identity_id: NotRequired[str]
    """binds the key to this identity: it sees and does nothing outside of it"""
    rate_limit: NotRequired[int]
    """calls a minute, of this key and the keys it creates; 0 is no limit"""
    expires_at: NotRequired[str]
    """never if omitted"""


class NewAttachment(TypedDict):
    filename: str
    content_type: NotRequired[str]
    """derived from the name if omitted"""
    content: NotRequired[str]
    """base64"""
    url: NotRequired[str]
    """fetched during the call, instead of content; https, public addresses only"""
    content_id: NotRequired[str]
    """for an inline image: <img src="cid:…">"""


class NewCardBudget(TypedDict):
    """the same as budget_cents, currency and period"""

    amount: int
    currency: NotRequired[str]
    """ISO 4217, stored in lower case"""
    period: NotRequired[Period]


class NewCard(TypedDict):
    encrypted_data: str
    """base64 (also for URLs, without padding, with line breaks) of nonce, ciphertext and tag of AES-256-GCM under the card key, which the box never receives"""
    last4: str
    brand: str
    """kept in lower case"""
    exp_month: int
    exp_year: int
    """four digits, not in the past"""
    card_name: NotRequired[str]
    """required, here or as label"""
    label: NotRequired[str]
    """the same as card_name"""
    budget_cents: NotRequired[int]
    """in minor units of the currency; required here or in budget"""
    currency: NotRequired[str]
    """ISO 4217, stored in lower case; default usd"""
    period: NotRequired[Period]
    """when spent_cents is reset to 0: default one_time (never); in UTC, weeks start on Monday"""
    budget: NotRequired[NewCardBudget]
    """the same as budget_cents, currency and period"""


class NewDomain(TypedDict):
    name: NotRequired[str]
    domain: NotRequired[str]
    """the same as name"""
    domain_name: NotRequired[str]
    """the same as name"""


NewEmail = TypedDict("NewEmail", {
    "to": "Recipients",
    "cc": "NotRequired[Recipients]",
    "bcc": "NotRequired[Recipients]",
    "subject": "NotRequired[str]",
    "in_reply_to": "NotRequired[str]",
    "from": "NotRequired[str]",
    "body_text": "NotRequired[str]",
    "body": "NotRequired[str]",
    "body_html": "NotRequired[str]",
    "reply_to": "NotRequired[Recipients]",
    "headers": "NotRequired[HeaderFields]",
    "attachments": "NotRequired[list[NewAttachment]]",
    "labels": "NotRequired[list[str]]",
    "send_at": "NotRequired[str]",
    "auto_submitted": "NotRequired[AutoSubmitted]",
    "require_tls": "NotRequired[bool]",
})


class NewErc8004Link(TypedDict):
    chain_id: int | str
    """of an EVM chain: 1, or "eip155:1" """
    registry: str
    """the identity registry; letters all of one case, or with the right checksum (EIP-55)"""
    token_id: str | int
    """the agentId of the registry, in decimal"""
    owner_address: NotRequired[str]
    tx_hash: NotRequired[str]
    """the transaction that registered it"""


NewForward = TypedDict("NewForward", {
    "to": "Recipients",
    "cc": "NotRequired[Recipients]",
    "bcc": "NotRequired[Recipients]",
    "subject": "NotRequired[str]",
    "as_attachment": "NotRequired[bool]",
    "from": "NotRequired[str]",
    "body_text": "NotRequired[str]",
    "body": "NotRequired[str]",
    "body_html": "NotRequired[str]",
    "reply_to": "NotRequired[Recipients]",
    "headers": "NotRequired[HeaderFields]",
    "attachments": "NotRequired[list[NewAttachment]]",
    "labels": "NotRequired[list[str]]",
    "send_at": "NotRequired[str]",
    "auto_submitted": "NotRequired[AutoSubmitted]",
    "require_tls": "NotRequired[bool]",
})


class NewIdentity(TypedDict):
    name: NotRequired[str]
    """unique in the account, case-insensitive; generated if omitted"""
    display_name: NotRequired[str]
    """the same as name"""
    provision_phone: NotRequired[bool]
    phone_country: NotRequired[str]
    metadata: NotRequired[dict[str, Json]]
    """free-form, at most 16 KiB"""
    date_of_birth: NotRequired[str]
    email_username: NotRequired[str]
    email_domain: NotRequired[str]
    expires_at: NotRequired[str | None]


NewReply = TypedDict("NewReply", {
    "reply_all": "NotRequired[bool]",
    "allow_unsigned": "NotRequired[bool]",
    "cc": "NotRequired[Recipients]",
    "bcc": "NotRequired[Recipients]",
    "subject": "NotRequired[str]",
    "quote": "NotRequired[bool]",
    "from": "NotRequired[str]",
    "body_text": "NotRequired[str]",
    "body": "NotRequired[str]",
    "body_html": "NotRequired[str]",
    "reply_to": "NotRequired[Recipients]",
    "headers": "NotRequired[HeaderFields]",
    "attachments": "NotRequired[list[NewAttachment]]",
    "labels": "NotRequired[list[str]]",
    "send_at": "NotRequired[str]",
    "auto_submitted": "NotRequired[AutoSubmitted]",
    "require_tls": "NotRequired[bool]",
})


class NewReport(TypedDict):
    type: str
    about: NotRequired[str]
    """the id, handle, DID or address of an agent, or the id of an identity; default: the reporter"""
    weight: NotRequired[int]
    note: NotRequired[str]
    """private: not shown to the subject"""
    data: NotRequired[dict[str, Json]]
    """private"""


class NewSms(TypedDict):
    to: str
    body: str


class NewSuppression(TypedDict):
    email: str
    reason: NotRequired[str]


class NewTotpEntry(TypedDict):
    secret: NotRequired[str]
    """base32, case-insensitive; spaces, dashes and padding are ignored. This or uri is required"""
    uri: NotRequired[str]
    """otpauth://totp/…, the content of the QR code; provides the fields omitted below"""
    service_name: NotRequired[str]
    """required unless the uri names one"""
    account_name: NotRequired[str]
    algorithm: NotRequired[Literal["SHA1", "SHA256", "SHA512"]]
    """default: the value in the uri, else SHA1"""
    digits: NotRequired[int]
    """default: the value in the uri, else 6"""
    period: NotRequired[int]
    """seconds; default: the value in the uri, else 30"""


class NewTransaction(TypedDict):
    type: Literal["report", "refund"]
    amount_cents: int
    reveal_id: NotRequired[str]
    """the reveal it belongs to; the first report for a reveal replaces the amount it reserved"""
    description: NotRequired[str]


class NewWebhook(TypedDict):
    url: str
    """https, without credentials, at a public address; the operator may allow more"""
    events: list[str]
    """names of events, such as email.received; * for all events that the creating key may read"""
    secret: NotRequired[str]
    """generated if omitted"""
    active: NotRequired[bool]
    identity_id: NotRequired[str | None]
    """only events of this identity"""
    description: NotRequired[str | None]
    headers: NotRequired[dict[str, str]]
    """sent with every delivery"""


Period: TypeAlias = "Literal[\"one_time\", \"daily\", \"weekly\", \"monthly\", \"yearly\"]"


class PhoneNumber(TypedDict):
    id: str
    identity_id: str | None
    phone_number: str
    country: str
    provider: str


class PhoneWish(TypedDict):
    country: NotRequired[str]


class PlanLimits(TypedDict):
    """null means no limit"""

    identities: int | None
    domains: int | None
    aliases: int | None
    webhooks: int | None
    api_keys: int | None
    phone_numbers: int | None
    cards: int | None
    totp_entries: int | None
    agents: int | None
    storage_bytes: int | None
    emails_sent: int | None
    sms_sent: int | None


class PlanUsage(TypedDict):
    identities: int
    domains: int
    aliases: int
    webhooks: int
    api_keys: int
    phone_numbers: int
    cards: int
    totp_entries: int
    agents: int
    storage_bytes: int
    emails_sent: int
    sms_sent: int


class QueueEntry(TypedDict):
    id: str
    kind: str
    """email, email-release (waits for its time), webhook, sms, sms-media, …"""
    destination: str
    """the destination that shares a concurrency limit: a domain, a webhook’s id, …"""
    about: dict[str, str]
    """ids and addresses, without content"""
    state: Literal["waiting", "running", "done", "failed"]
    attempts: int
    last_answer: str | None
    """the response to the last finished attempt"""
    smtp_code: int | None
    """of the reply of the mail server (RFC 5321 4.2)"""
    enhanced_code: str | None
    """RFC 3463"""
    response: str | None
    """the text of the reply, or the reason why there was none"""
    mx: str | None
    """the host name of the server"""
    ip: str | None
    """the address of the server"""
    tls: str | None
    """version, cipher, and whether the certificate was verified"""
    reason: str | None
    """why it ended early, if it did"""
    due_at: str | None
    """time of the next attempt"""
    created_at: str
    ended_at: str | None
    age: int
    """seconds from its creation to its end, or until now"""


class QueueEntryWithHistoryHistory(TypedDict):
    number: int
    started_at: str
    ended_at: str | None
    outcome: Literal["done", "failed", "deferred", "interrupted", "pending"]
    answer: str | None
    smtp_code: int | None
    """of the reply of the mail server (RFC 5321 4.2)"""
    enhanced_code: str | None
    """RFC 3463"""
    response: str | None
    """the text of the reply, or the reason why there was none"""
    mx: str | None
    """the host name of the server"""
    ip: str | None
    """the address of the server"""
    tls: str | None
    """version, cipher, and whether the certificate was verified"""


class QueueEntryWithHistory(TypedDict):
    id: str
    kind: str
    """email, email-release (waits for its time), webhook, sms, sms-media, …"""
    destination: str
    """the destination that shares a concurrency limit: a domain, a webhook’s id, …"""
    about: dict[str, str]
    """ids and addresses, without content"""
    state: Literal["waiting", "running", "done", "failed"]
    attempts: int
    last_answer: str | None
    """the response to the last finished attempt"""
    smtp_code: int | None
    """of the reply of the mail server (RFC 5321 4.2)"""
    enhanced_code: str | None
    """RFC 3463"""
    response: str | None
    """the text of the reply, or the reason why there was none"""
    mx: str | None
    """the host name of the server"""
    ip: str | None
    """the address of the server"""
    tls: str | None
    """version, cipher, and whether the certificate was verified"""
    reason: str | None
    """why it ended early, if it did"""
    due_at: str | None
    """time of the next attempt"""
    created_at: str
    ended_at: str | None
    age: int
    """seconds from its creation to its end, or until now"""
    history: list[QueueEntryWithHistoryHistory]


class QueueSummaryKinds(TypedDict):
    kind: str
    waiting: int
    running: int
    age: int
    """age of the oldest, in seconds"""
    due_at: str | None
    """time of the next attempt"""


class QueueSummaryDestinations(TypedDict):
    kind: str
    destination: str
    waiting: int
    running: int
    age: int
    """age of the oldest, in seconds"""
    due_at: str | None
    """time of the next attempt"""


class QueueSummary(TypedDict):
    kinds: list[QueueSummaryKinds]
    destinations: list[QueueSummaryDestinations]
    """the hundred destinations with the most waiting deliveries"""


class RealtimeTokenFramesSubscribe(TypedDict):
    type: Literal["subscribe"]
    channel: Literal["agent_events", "email_messages", "sms_messages"]
    identity_id: NotRequired[str]


class RealtimeTokenFramesResume(TypedDict):
    type: Literal["subscribe"]
    channel: Literal["agent_events", "email_messages", "sms_messages"]
    identity_id: NotRequired[str]
    since: str


class RealtimeTokenFramesUnsubscribe(TypedDict):
    type: Literal["unsubscribe"]
    channel: Literal["agent_events", "email_messages", "sms_messages"]
    identity_id: NotRequired[str]


class RealtimeTokenFramesRefresh(TypedDict):
    type: Literal["refresh"]
    token: str


class RealtimeTokenFramesPing(TypedDict):
    type: Literal["ping"]


class RealtimeTokenFrames(TypedDict):
    """examples of what to send to url, for this token, as JSON texts: subscribe is answered by {"type":"subscribed",…} and then {"type":"event","channel":…,"event":{…}} for each event; resume, after a reconnect, names the id of the last event that was handled; a wrong frame is answered by {"type":"error","code":…,"message":…}"""

    subscribe: RealtimeTokenFramesSubscribe
    resume: RealtimeTokenFramesResume
    unsubscribe: RealtimeTokenFramesUnsubscribe
    refresh: RealtimeTokenFramesRefresh
    ping: RealtimeTokenFramesPing


class RealtimeToken(TypedDict):
    token: str
    expires_at: str
    url: str
    """URL of the WebSocket"""
    frames: RealtimeTokenFrames
    """examples of what to send to url, for this token, as JSON texts: subscribe is answered by {"type":"subscribed",…} and then {"type":"event","channel":…,"event":{…}} for each event; resume, after a reconnect, names the id of the last event that was handled; a wrong frame is answered by {"type":"error","code":…,"message":…}"""
    supabase_url: str
    """the first argument of createClient"""


class RealtimeTokenWish(TypedDict):
    identity_id: NotRequired[str]
    """grants access only to this identity; default: the whole account"""
    channels: NotRequired[list[Literal["agent_events", "email_messages", "sms_messages"]]]
    """grants access only to these; default: every channel the key may read"""
    expires_in: NotRequired[int]
    """seconds for which it can connect and join"""


Recipients: TypeAlias = "str | list[str]"


class ReducedIdentity(TypedDict):
    id: str
    name: str
    email: str
    phone_number: str | None
    status: Literal["active", "suspended"]
    created_at: str


class Reloaded(TypedDict):
    reloaded: list[str]
    """changed settings that are in effect"""
    restart: list[str]
    """settings that differ from those at the start and require a restart"""


class Report(TypedDict):
    id: str
    direction: Literal["given", "received"]
    """whether this identity made the report or is its subject"""
    type: str
    about: str | None
    """as sent; null for the subject"""
    subject: str
    """a DID, the id of an identity of the account, or an address"""
    weight: int
    """as sent; 0 for reports within an account"""
    counted_weight: float
    """the effective weight"""
    note: str | None
    """null for the subject"""
    data: dict[str, Json]
    created_at: str


class ReputationComponents(TypedDict):
    name: str
    value: float
    """the number counted"""
    effect: float
    """its effect on the score, positive or negative"""
    explanation: str


class Reputation(TypedDict):
    subject: str
    """the DID of the agent, else the id of the identity"""
    score: float
    """from 0 to 1; a new identity has 0.5"""
    tier: Literal["bronze", "silver", "gold", "platinum"]
    components: list[ReputationComponents]
    counters: dict[str, float]
    updated_at: str


class Revealed(TypedDict):
    encrypted_data: str
    """base64, exactly as it was given"""
    card: Card
    transaction: CardTransaction


class RevealWish(TypedDict):
    amount_cents: NotRequired[int]
    """the amount to reserve of the budget; rejected if too little is left"""
    purpose: NotRequired[str]
    """the purpose; stored with the transaction"""


class RevokedApiKey(TypedDict):
    id: str
    label: str
    scopes: list[Scope]
    key_prefix: str
    """the first characters, to tell keys apart"""
    identity_id: str | None
    """the one identity the key is bound to"""
    rate_limit: int
    """calls a minute, of this key and the keys it created together; 0 is no limit"""
    created_at: str
    created_by: str | None
    """the key or session that created it; null if it was created on the machine of the box, or before this was recorded"""
    rotated_by: str | None
    """the key or session that last gave it a new secret, if not the key itself"""
    last_used_at: str | None
    expires_at: str | None
    revoked_at: str | None
    ended: EndedWithKey


class Rotation(TypedDict):
    grace_seconds: NotRequired[int]
    """time for which the old secret still works"""


Scope: TypeAlias = "Literal[\"identities:read\", \"identities:write\", \"messages:read\", \"messages:write\", \"emails:read\", \"emails:write\", \"sms:read\", \"sms:write\", \"cards:read\", \"cards:write\", \"account:read\", \"account:write\", \"holds:decide\", \"audit:read\"]"


class ScreeningReasons(TypedDict):
    kind: Literal["hidden_text", "instruction", "invisible_characters", "bidi", "alternative_differs"]
    where: Literal["subject", "sender", "text", "text_part", "comment", "attribute", "element", "hidden_attribute", "display", "visibility", "opacity", "size", "color", "position", "clip", "zero_box"]
    """subject, sender and text are seen; text_part is a text that the HTML does not show; others say what hides it"""
    excerpt: str
    """at most 80 characters, by a stranger: not to be followed"""


class Screening(TypedDict):
    score: int
    """0 to 100; from 50 a message is suspicious"""
    reasons: list[ScreeningReasons]
    hidden_text_omitted: int
    """letters of hidden text that text leaves out"""


class SecretRotation(TypedDict):
    secret: NotRequired[str]
    """generated if omitted"""


class SenderRules(TypedDict):
    """updated_at is null where none were set: everyone may write"""

    allow: list[str]
    """addresses (ada@example.net) and domains (@example.net) that may write; empty: everyone"""
    block: list[str]
    """those that may not"""
    require_dmarc: bool
    """only senders whose domain is verified (DMARC pass)"""
    replies: bool
    """accept a verified answer to a sent message from one who was written to, whatever allow says"""
    max_score: int | None
    """sets messages with a higher score of screening aside; null: none"""
    updated_at: str | None


class SenderRulesInput(TypedDict):
    allow: NotRequired[list[str]]
    """addresses (ada@example.net) and domains (@example.net) that may write; empty: everyone"""
    block: NotRequired[list[str]]
    """those that may not"""
    require_dmarc: NotRequired[bool]
    """only senders whose domain is verified (DMARC pass)"""
    replies: NotRequired[bool]
    """accept a verified answer to a sent message from one who was written to, whatever allow says"""
    max_score: NotRequired[int | None]
    """sets messages with a higher score of screening aside; null: none"""


class SessionEntry(TypedDict):
    id: str
    current: bool
    """whether it is the session of this call"""
    ip: str
    user_agent: str
    created_at: str
    last_used_at: str
    expires_at: str


class SessionsEnded(TypedDict):
    id: str
    deleted: Literal[True]
    count: int


Sms = TypedDict("Sms", {
    "id": "str",
    "identity_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "Literal[\"received\", \"held\", \"queued\", \"sent\", \"delivered\", \"failed\", \"unknown\"]",
    "from": "str",
    "to": "str",
    "body": "str",
    "read": "bool",
    "provider": "str",
    "provider_id": "str | None",
    "segments": "int",
    "error": "SmsError | None",
    "media": "list[SmsMedia]",
    "codes": "list[str]",
    "hold": "HoldState | None",
    "received_at": "str",
    "sent_at": "str | None",
    "delivered_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
})


class SmsChange(TypedDict):
    read: NotRequired[bool]
    unread: NotRequired[bool]


class SmsError(TypedDict):
    code: str
    message: str


class SmsMedia(TypedDict):
    index: int
    content_type: str
    status: Literal["pending", "kept", "failed"]
    """pending while it is fetched from the provider"""
    size: int | None
    sha256: str | None


class SmsMediaWithUrl(TypedDict):
    index: int
    content_type: str
    status: Literal["pending", "kept", "failed"]
    """pending while it is fetched from the provider"""
    size: int | None
    sha256: str | None
    url: str
    expires_at: str


SmsMessage = TypedDict("SmsMessage", {
    "id": "str",
    "identity_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "Literal[\"received\", \"held\", \"queued\", \"sent\", \"delivered\", \"failed\", \"unknown\"]",
    "from": "str",
    "to": "str",
    "body": "str",
    "read": "bool",
    "provider": "str",
    "provider_id": "str | None",
    "segments": "int",
    "error": "SmsError | None",
    "media": "list[SmsMedia]",
    "codes": "list[str]",
    "hold": "HoldState | None",
    "received_at": "str",
    "sent_at": "str | None",
    "delivered_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "type": "Literal[\"sms\"]",
})


class StatsSeries(TypedDict):
    at: str
    """start of the step"""
    mail_in: int | None
    """messages accepted by SMTP"""
    mail_refused: int | None
    """messages and recipients rejected by SMTP"""
    mail_delivered: int | None
    """copies of messages accepted by a server, a relay or this box"""
    mail_failed: int | None
    """copies of messages that failed permanently"""
    events: int | None
    """events in the log"""
    webhooks_done: int | None
    """successful webhook deliveries"""
    webhooks_failed: int | None
    """webhook deliveries that failed permanently"""
    api_calls: int | None
    """answered API calls, with any status"""
    queue_depth: int | None
    """waiting and running deliveries of all kinds; the maximum of an hour"""
    oldest_due: int | None
    """delay of the oldest due delivery in seconds; the maximum of an hour"""
    disk_free: int | None
    """free bytes on the disk; the minimum of an hour"""
    database: int | None
    """bytes of the database and its log; the maximum of an hour"""


Stats = TypedDict("Stats", {
    "from": "str",
    "to": "str",
    "step": "Literal[\"minute\", \"hour\"]",
    "series": "list[StatsSeries]",
})


class StatusSending(TypedDict):
    """where mail from the domain of the box can be sent"""

    domain: str
    """mail.domain, the domain of new addresses"""
    can_send_outside: bool
    """whether mail from it can be sent to any address"""
    explanation: str
    """where it can be sent, and why"""
    fix: str | None
    """what the operator can do; null if it can be sent anywhere"""


class StatusQueue(TypedDict):
    kind: str
    waiting: int
    running: int
    age: int
    """age of the oldest, in seconds"""
    due_at: str | None
    """time of the next attempt"""


class StatusLast24Hours(TypedDict):
    """as far back as the event log goes"""

    emails_received: int
    emails_delivered: int
    """copies accepted by a server or a relay"""
    emails_bounced: int
    emails_failed: int
    sms_received: int
    sms_sent: int
    sms_failed: int


class StatusDisk(TypedDict):
    free: int | None
    """bytes; null if it cannot be read"""
    database: int
    """bytes of the database and its log"""
    low: bool
    """whether new data is rejected"""
    min_free: int
    """free bytes below which new data is rejected"""


class Status(TypedDict):
    version: str
    started_at: str
    uptime: int
    """seconds"""
    failing: list[str]
    """failing modules: http, smtp, space, store"""
    sending: StatusSending
    """where mail from the domain of the box can be sent"""
    identities: int
    queue: list[StatusQueue]
    last_24_hours: StatusLast24Hours
    """as far back as the event log goes"""
    disk: StatusDisk


class Storage(TypedDict):
    used: int
    """bytes of e-mail, including the trash and the metadata of imported e-mail"""
    limit: int | None
    """the mail quota in bytes (mail.quota); null means no limit"""
    media: int
    """bytes of text messages and their media"""
    trash: int
    """bytes of the above that are in the trash, purged early when space is short"""


class Subscription(TypedDict):
    plan: Literal["self_hosted"]
    status: Literal["active"]
    limits: PlanLimits
    usage: PlanUsage
    current_period_start: str
    """the start of the month in UTC"""
    current_period_end: str
    """time at which emails_sent and sms_sent are reset to 0"""


class Suppression(TypedDict):
    id: str
    email: str
    reason: str
    source: Literal["manual", "bounce", "complaint"]
    email_id: str | None
    """the message that bounced or got a complaint"""
    created_at: str


class Thread(TypedDict):
    id: str
    identity_id: str
    subject: str
    participants: list[str]
    message_count: int
    unread_count: int
    last_message_at: str
    snippet: str


class ThreadWithMessages(TypedDict):
    id: str
    identity_id: str
    subject: str
    participants: list[str]
    message_count: int
    unread_count: int
    last_message_at: str
    snippet: str
    messages: list[Email]
    """oldest first, as many as fit into one response (about 1 MiB)"""
    has_more: bool
    """whether there are more messages"""
    next_cursor: str | None


class TokenQuestion(TypedDict):
    token: str
    audience: NotRequired[str]
    """the expected audience; default: the public URL of this box"""
    aud: NotRequired[str]
    """the same as audience"""


class TokensRevoked(TypedDict):
    identity_id: str
    revoked_at: str


class TokenWish(TypedDict):
    audience: NotRequired[str]
    """the recipient of the token, such as its origin; default: the public URL of this box"""
    aud: NotRequired[str]
    """the same as audience"""
    expires_in: NotRequired[int]
    """seconds"""


class TotpCode(TypedDict):
    code: str
    """digits; a string, because it may start with 0"""
    remaining_seconds: int
    """seconds until the next code, rounded up"""
    period: int
    expires_at: str


class TotpEntry(TypedDict):
    id: str
    identity_id: str
    service_name: str
    account_name: str | None
    """the account at the service, as named by the uri or the caller"""
    algorithm: Literal["SHA1", "SHA256", "SHA512"]
    digits: int
    period: int
    """seconds for which a code is valid"""
    created_at: str


class TrustEvaluationSubject(TypedDict):
    did: str | None
    handle: str | None
    identity_id: str | None
    """only of the caller's account"""
    email: str | None
    proven: bool
    """whether a token authenticates the subject"""


class TrustEvaluation(TypedDict):
    decision: Literal["allow", "review", "deny"]
    score: float
    tier: Literal["bronze", "silver", "gold", "platinum"]
    min_score: float
    subject: TrustEvaluationSubject
    reasons: list[str]


class TrustQuestion(TypedDict):
    token: NotRequired[str]
    """an identity token; exactly one of these five is required"""
    did: NotRequired[str]
    handle: NotRequired[str]
    """the handle of an agent of this box"""
    identity_id: NotRequired[str]
    """an identity of the caller's account"""
    email: NotRequired[str]
    audience: NotRequired[str]
    """the expected audience of the token; default: this box; only with token"""
    aud: NotRequired[str]
    """the same as audience"""
    action: NotRequired[Literal["read", "message", "delegate", "payment"]]
    """the action to allow; each has its own min_score"""
    min_score: NotRequired[float]
    """overrides the min_score of the action"""


class VerifiedTokenIdentity(TypedDict):
    id: str | None
    """only of the caller's account"""
    email: str


class VerifiedTokenAgent(TypedDict):
    did: str
    id: str | None
    """only of this box"""
    handle: str | None
    display_name: str | None


class VerifiedTokenReputation(TypedDict):
    score: float
    tier: str


class VerifiedToken(TypedDict):
    valid: bool
    reason: Literal["malformed", "unsupported_algorithm", "unsupported_header", "wrong_type", "expired", "not_yet_valid", "issued_in_the_future", "lifetime_too_long", "wrong_issuer", "wrong_subject", "wrong_audience", "unknown_key", "bad_signature", "revoked", "unknown_subject", "suspended", "issuer_unreachable", "issuer_invalid"] | None
    """why it is not valid"""
    message: str | None
    """the reason as a sentence"""
    temporary: bool
    """whether a retry may help: another box did not respond"""
    claims: dict[str, Json] | None
    """its claims; null unless its signature is valid"""
    identity: VerifiedTokenIdentity | None
    """null unless it belongs to this box"""
    agent: VerifiedTokenAgent | None
    reputation: VerifiedTokenReputation | None
    """the present value; null unless it belongs to this box: the value given by another box is in the claims"""


class WaitAnswer(TypedDict):
    timed_out: bool
    since: str | None
    """pass it as since in the next call to get every message exactly once"""
    item: Message | None
    codes: list[str]
    links: list[Link]


class Webhook(TypedDict):
    id: str
    url: str
    events: list[str]
    active: bool
    identity_id: str | None
    """only events of this identity"""
    description: str | None
    headers: dict[str, str]
    failing_since: str | None
    """time of the first failed attempt since the last success"""
    disabled_at: str | None
    disabled_reason: Literal["gone", "failing", "identity_deleted", "key_ended"] | None
    """why the box disabled it: it answered 410, failed for 5 days, its identity was deleted, or the key that created it ended"""
    created_at: str
    created_by: str | None
    """the key or session that created it; null if it was created on the machine of the box, or before this was recorded"""
    updated_at: str
    updated_by: str | None
    """the key or session that last changed its url, events or secret; null if unchanged since its creation"""
    expires_at: str | None
    """time at which it ends with the key that created it; null if it does not expire"""


class WebhookChange(TypedDict):
    url: NotRequired[str]
    """https, without credentials, at a public address; the operator may allow more"""
    events: NotRequired[list[str]]
    """names of events, such as email.received; * for all events that the creating key may read"""
    active: NotRequired[bool]
    identity_id: NotRequired[str | None]
    description: NotRequired[str | None]
    headers: NotRequired[dict[str, str]]
    """replaces all of them"""


class WebhookDeliveryAttempts(TypedDict):
    number: int
    status: Literal["pending", "delivered", "failed", "interrupted"]
    started_at: str
    ended_at: str | None
    response_status: int | None
    response_body: str | None
    error: str | None


class WebhookDelivery(TypedDict):
    id: str
    webhook_id: str
    event_id: str
    event: str
    status: Literal["pending", "delivered", "failed"]
    attempts: list[WebhookDeliveryAttempts]
    """oldest first; a redelivery keeps the last 50"""
    response_status: int | None
    """of the last finished attempt"""
    response_body: str | None
    """the first KiB of the response; less if it has many control characters; null if the type of the event requires a scope that the caller lacks"""
    next_attempt_at: str | None
    created_at: str


class WebhookDeliveryWithRequestAttempts(TypedDict):
    number: int
    status: Literal["pending", "delivered", "failed", "interrupted"]
    started_at: str
    ended_at: str | None
    response_status: int | None
    response_body: str | None
    error: str | None


class WebhookDeliveryWithRequestRequest(TypedDict):
    """the request of the next attempt; its headers and signature are created then"""

    url: str
    """the present url of the webhook"""
    body: str | None
    """the body of the request; null if the event is no longer in the log, or its type requires a scope that the caller lacks"""


class WebhookDeliveryWithRequest(TypedDict):
    id: str
    webhook_id: str
    event_id: str
    event: str
    status: Literal["pending", "delivered", "failed"]
    attempts: list[WebhookDeliveryWithRequestAttempts]
    """oldest first; a redelivery keeps the last 50"""
    response_status: int | None
    """of the last finished attempt"""
    response_body: str | None
    """the first KiB of the response; less if it has many control characters; null if the type of the event requires a scope that the caller lacks"""
    next_attempt_at: str | None
    created_at: str
    request: WebhookDeliveryWithRequestRequest
    """the request of the next attempt; its headers and signature are created then"""


class WebhookNoted(TypedDict):
    """a webhook without its headers"""

    id: str
    url: str
    events: list[str]
    active: bool
    identity_id: str | None
    """only events of this identity"""
    description: str | None
    failing_since: str | None
    """time of the first failed attempt since the last success"""
    disabled_at: str | None
    disabled_reason: Literal["gone", "failing", "identity_deleted", "key_ended"] | None
    """why the box disabled it: it answered 410, failed for 5 days, its identity was deleted, or the key that created it ended"""
    created_at: str
    created_by: str | None
    """the key or session that created it; null if it was created on the machine of the box, or before this was recorded"""
    updated_at: str
    updated_by: str | None
    """the key or session that last changed its url, events or secret; null if unchanged since its creation"""
    expires_at: str | None
    """time at which it ends with the key that created it; null if it does not expire"""


class WebhookWithSecret(TypedDict):
    id: str
    url: str
    events: list[str]
    active: bool
    identity_id: str | None
    """only events of this identity"""
    description: str | None
    headers: dict[str, str]
    failing_since: str | None
    """time of the first failed attempt since the last success"""
    disabled_at: str | None
    disabled_reason: Literal["gone", "failing", "identity_deleted", "key_ended"] | None
    """why the box disabled it: it answered 410, failed for 5 days, its identity was deleted, or the key that created it ended"""
    created_at: str
    created_by: str | None
    """the key or session that created it; null if it was created on the machine of the box, or before this was recorded"""
    updated_at: str
    updated_by: str | None
    """the key or session that last changed its url, events or secret; null if unchanged since its creation"""
    expires_at: str | None
    """time at which it ends with the key that created it; null if it does not expire"""
    secret: str
    """returned only once"""


class WhoAmI(TypedDict):
    account_id: str
    key_id: str | None
    """the API key; null for a session"""
    session_id: str | None
    """the session of a signed-in person; null for a key"""
    scopes: list[Literal["identities:read", "identities:write", "messages:read", "messages:write", "emails:read", "emails:write", "sms:read", "sms:write", "cards:read", "cards:write", "account:read", "account:write", "holds:decide", "audit:read"]]
    rate_limit: int
    """calls a minute; 0 means no limit"""
    expires_at: str | None
    """time at which the key, or the secret that was used, ends, also by the end of its identity"""
    can_send_outside: bool
    """whether mail can be sent to addresses that are not on this box: by the identity, else by a new one at the domain of the box"""
    cannot_send_outside_reason: str | None
    """why not, and who can change that; null if it can"""
    identity: Identity | None
    """the one identity that the key is bound to; null if it reaches every identity of its account"""


class AccountSessionsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class AccountEventsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    since: NotRequired[str]
    """an evt_ id or a time; from there, oldest first"""
    types: NotRequired[str]
    """event names, separated by commas; default: all that the key may read"""
    identity_id: NotRequired[str]
    """only events of this identity"""
    wait: NotRequired[int]
    """seconds to wait for an event where there is none yet; without since only what happens from now on"""


class AccountsListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class AgentsListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    handle: NotRequired[str]
    """the agent with this handle, present or former"""
    identity_id: NotRequired[str]


class AgentsErc8004Query(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class AliasesListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class ApiKeysListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    created_by: NotRequired[str]
    """only objects created by this key or session, which may have ended"""


class ApiKeysRevokeQuery(TypedDict):
    keep: NotRequired[bool]
    """keeps what the key created; otherwise that ends with the key"""


class AuditListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    actor: NotRequired[str]
    """the id of a key or person, operator or anonymous"""
    action: NotRequired[str]
    """an action, or all of one subject: key.*"""
    identity_id: NotRequired[str]
    after: NotRequired[str]
    """from this time on"""
    before: NotRequired[str]
    """before this time"""


class BackupsListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


BoxStatsQuery = TypedDict("BoxStatsQuery", {
    "from": "NotRequired[str]",
    "to": "NotRequired[str]",
    "step": "NotRequired[Literal[\"minute\", \"hour\"]]",
})


class CardsListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class CardsTransactionsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    type: NotRequired[Literal["reveal", "report", "refund", "reset"]]


class DomainsListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class DomainsReportsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    kind: NotRequired[Literal["dmarc", "tls"]]


EmailsListQuery = TypedDict("EmailsListQuery", {
    "limit": "NotRequired[int]",
    "cursor": "NotRequired[str]",
    "offset": "NotRequired[int]",
    "unread": "NotRequired[bool]",
    "from": "NotRequired[str]",
    "to": "NotRequired[str]",
    "after": "NotRequired[str]",
    "before": "NotRequired[str]",
    "include": "NotRequired[Literal[\"body\"]]",
    "direction": "NotRequired[Literal[\"inbound\", \"outbound\", \"all\"]]",
    "thread_id": "NotRequired[str]",
    "label": "NotRequired[str]",
    "subject": "NotRequired[str]",
    "has_attachments": "NotRequired[bool]",
    "spam": "NotRequired[bool]",
    "duplicates": "NotRequired[bool]",
    "trash": "NotRequired[bool]",
})


EmailsSearchQuery = TypedDict("EmailsSearchQuery", {
    "limit": "NotRequired[int]",
    "cursor": "NotRequired[str]",
    "offset": "NotRequired[int]",
    "unread": "NotRequired[bool]",
    "from": "NotRequired[str]",
    "to": "NotRequired[str]",
    "after": "NotRequired[str]",
    "before": "NotRequired[str]",
    "direction": "NotRequired[Literal[\"inbound\", \"outbound\", \"all\"]]",
    "query": "NotRequired[str]",
    "q": "NotRequired[str]",
    "include": "NotRequired[Literal[\"body\"]]",
})


class EmailsDeleteQuery(TypedDict):
    purge: NotRequired[bool]
    """deletes permanently and immediately, also from the trash"""


class EmailsHtmlQuery(TypedDict):
    remote: NotRequired[bool]
    """load external images, which tells their servers that it was viewed"""
    measure: NotRequired[bool]
    """a copy whose size the page of the box can read: it has the origin of the box; it loads no external images, and its links open no window"""


class EmailsAttachmentsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class EmailsAttachmentTextQuery(TypedDict):
    offset: NotRequired[int]
    """the next_offset of the piece before"""
    limit: NotRequired[int]
    """characters"""


class HoldsListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    status: NotRequired[Literal["open", "approved", "rejected", "expired", "cancelled", "all"]]
    identity_id: NotRequired[str]


class HoldsApproveBody(TypedDict):
    sha256: NotRequired[str]
    """of what was looked at; another one is a conflict, code hold_changed"""
    reason: NotRequired[str]
    """for the sender"""


class HoldsRejectBody(TypedDict):
    reason: NotRequired[str]
    """for the sender, who may write anew"""


class IdentitiesListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    name: NotRequired[str]
    """the identity with this name, case-insensitive"""
    email: NotRequired[str]
    """the identity with this address or alias"""
    query: NotRequired[str]
    """a part of the name, address or number, case-insensitive"""
    q: NotRequired[str]
    """the same as query"""


class IdentitiesEventsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    type: NotRequired[str]
    """an event name, such as email.received, or the type of a report, such as positive; an unknown name is rejected"""
    since: NotRequired[str]
    """an evt_ id or a time; from there, oldest first"""


class IdentitiesMessagesQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


IdentitiesWaitQuery = TypedDict("IdentitiesWaitQuery", {
    "channel": "NotRequired[Literal[\"email\", \"sms\", \"any\"]]",
    "since": "NotRequired[str]",
    "from": "NotRequired[str]",
    "subject_contains": "NotRequired[str]",
    "timeout": "NotRequired[int]",
    "spam": "NotRequired[bool]",
})


class JobsListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    kind: NotRequired[str]


class QueueListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    state: NotRequired[Literal["open", "waiting", "running", "done", "failed", "all"]]
    """open are those that are waiting or running"""
    kind: NotRequired[str]
    """email, webhook, sms, …"""
    destination: NotRequired[str]
    """a domain, a webhook’s id, …"""


SmsListQuery = TypedDict("SmsListQuery", {
    "limit": "NotRequired[int]",
    "cursor": "NotRequired[str]",
    "offset": "NotRequired[int]",
    "unread": "NotRequired[bool]",
    "direction": "NotRequired[Literal[\"inbound\", \"outbound\", \"all\"]]",
    "from": "NotRequired[str]",
    "to": "NotRequired[str]",
    "after": "NotRequired[str]",
    "before": "NotRequired[str]",
    "trash": "NotRequired[bool]",
})


class SmsDeleteQuery(TypedDict):
    purge: NotRequired[bool]
    """deletes permanently and immediately, also from the trash"""


class SuppressionsListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class ThreadsListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class ThreadsGetQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""


class TotpListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class TotpCodeQuery(TypedDict):
    min_remaining: NotRequired[int]
    """seconds for which the code must still be valid, below the period; with fewer left the response waits for the next code"""


class WebhooksListQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""
    created_by: NotRequired[str]
    """only objects created by this key or session, which may have ended"""


class WebhooksDeliveriesQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    """the next_cursor of the page before"""
    offset: NotRequired[int]
    """number of rows to skip; not together with cursor"""


class IdentityCreatedEvent(TypedDict):
    id: str
    type: Literal["identity.created"]
    event: Literal["identity.created"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Identity
    """Of a resource that was deleted since: `{id, deleted}`."""


class IdentityUpdatedEvent(TypedDict):
    id: str
    type: Literal["identity.updated"]
    event: Literal["identity.updated"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Identity
    """Of a resource that was deleted since: `{id, deleted}`."""


class IdentityDeletedEventData(TypedDict):
    id: str
    name: str
    email: str
    status: Literal["deleted"]


class IdentityDeletedEvent(TypedDict):
    id: str
    type: Literal["identity.deleted"]
    event: Literal["identity.deleted"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: IdentityDeletedEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class DomainVerifiedEvent(TypedDict):
    id: str
    type: Literal["domain.verified"]
    event: Literal["domain.verified"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Domain
    """Of a resource that was deleted since: `{id, deleted}`."""


class DomainFailedEvent(TypedDict):
    id: str
    type: Literal["domain.failed"]
    event: Literal["domain.failed"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Domain
    """Of a resource that was deleted since: `{id, deleted}`."""


class CertificateRenewedEvent(TypedDict):
    id: str
    type: Literal["certificate.renewed"]
    event: Literal["certificate.renewed"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Certificate
    """Of a resource that was deleted since: `{id, deleted}`."""


class CertificateFailedEvent(TypedDict):
    id: str
    type: Literal["certificate.failed"]
    event: Literal["certificate.failed"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Certificate
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailReceivedEvent(TypedDict):
    id: str
    type: Literal["email.received"]
    event: Literal["email.received"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Email
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailReleasedEvent(TypedDict):
    id: str
    type: Literal["email.released"]
    event: Literal["email.released"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Email
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailQueuedEvent(TypedDict):
    id: str
    type: Literal["email.queued"]
    event: Literal["email.queued"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Email
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailSentEventDataRecipients(TypedDict):
    to: list[Address]
    cc: list[Address]
    bcc: list[Address]


EmailSentEventData = TypedDict("EmailSentEventData", {
    "id": "str",
    "identity_id": "str",
    "thread_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "EmailStatus",
    "from": "str",
    "from_name": "str",
    "to": "str",
    "subject": "str",
    "snippet": "str",
    "read": "bool",
    "spam": "bool",
    "automated": "bool",
    "tag": "str | None",
    "labels": "list[str]",
    "size": "int",
    "has_attachments": "bool",
    "verified_domain": "str | None",
    "message_id": "str | None",
    "in_reply_to": "str | None",
    "codes": "list[str]",
    "received_at": "str",
    "sent_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "body_text": "str | None",
    "body_html": "str | None",
    "text": "str",
    "references": "list[str]",
    "reply_to": "str | None",
    "reply_to_verified": "bool | None",
    "cc": "list[Address]",
    "bcc": "list[Address]",
    "recipients": "EmailSentEventDataRecipients",
    "body_truncated": "NotRequired[bool]",
    "links": "list[Link]",
    "attachments": "list[Attachment]",
    "authentication": "Authentication | None",
    "screening": "Screening | None",
    "set_aside": "Literal[\"blocked_sender\", \"unlisted_sender\", \"unverified_sender\", \"suspicious\"] | None",
    "hold": "HoldState | None",
    "parse_error": "str | None",
    "send_at": "str | None",
    "created_by": "str | None",
    "deliveries": "list[EmailDelivery]",
    "duplicate_of": "str | None",
    "delivery": "Delivery",
})


class EmailSentEvent(TypedDict):
    id: str
    type: Literal["email.sent"]
    event: Literal["email.sent"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: EmailSentEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailDeliveredEventDataRecipients(TypedDict):
    to: list[Address]
    cc: list[Address]
    bcc: list[Address]


EmailDeliveredEventData = TypedDict("EmailDeliveredEventData", {
    "id": "str",
    "identity_id": "str",
    "thread_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "EmailStatus",
    "from": "str",
    "from_name": "str",
    "to": "str",
    "subject": "str",
    "snippet": "str",
    "read": "bool",
    "spam": "bool",
    "automated": "bool",
    "tag": "str | None",
    "labels": "list[str]",
    "size": "int",
    "has_attachments": "bool",
    "verified_domain": "str | None",
    "message_id": "str | None",
    "in_reply_to": "str | None",
    "codes": "list[str]",
    "received_at": "str",
    "sent_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "body_text": "str | None",
    "body_html": "str | None",
    "text": "str",
    "references": "list[str]",
    "reply_to": "str | None",
    "reply_to_verified": "bool | None",
    "cc": "list[Address]",
    "bcc": "list[Address]",
    "recipients": "EmailDeliveredEventDataRecipients",
    "body_truncated": "NotRequired[bool]",
    "links": "list[Link]",
    "attachments": "list[Attachment]",
    "authentication": "Authentication | None",
    "screening": "Screening | None",
    "set_aside": "Literal[\"blocked_sender\", \"unlisted_sender\", \"unverified_sender\", \"suspicious\"] | None",
    "hold": "HoldState | None",
    "parse_error": "str | None",
    "send_at": "str | None",
    "created_by": "str | None",
    "deliveries": "list[EmailDelivery]",
    "duplicate_of": "str | None",
    "delivery": "Delivery",
})


class EmailDeliveredEvent(TypedDict):
    id: str
    type: Literal["email.delivered"]
    event: Literal["email.delivered"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: EmailDeliveredEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailDeferredEventDataRecipients(TypedDict):
    to: list[Address]
    cc: list[Address]
    bcc: list[Address]


EmailDeferredEventData = TypedDict("EmailDeferredEventData", {
    "id": "str",
    "identity_id": "str",
    "thread_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "EmailStatus",
    "from": "str",
    "from_name": "str",
    "to": "str",
    "subject": "str",
    "snippet": "str",
    "read": "bool",
    "spam": "bool",
    "automated": "bool",
    "tag": "str | None",
    "labels": "list[str]",
    "size": "int",
    "has_attachments": "bool",
    "verified_domain": "str | None",
    "message_id": "str | None",
    "in_reply_to": "str | None",
    "codes": "list[str]",
    "received_at": "str",
    "sent_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "body_text": "str | None",
    "body_html": "str | None",
    "text": "str",
    "references": "list[str]",
    "reply_to": "str | None",
    "reply_to_verified": "bool | None",
    "cc": "list[Address]",
    "bcc": "list[Address]",
    "recipients": "EmailDeferredEventDataRecipients",
    "body_truncated": "NotRequired[bool]",
    "links": "list[Link]",
    "attachments": "list[Attachment]",
    "authentication": "Authentication | None",
    "screening": "Screening | None",
    "set_aside": "Literal[\"blocked_sender\", \"unlisted_sender\", \"unverified_sender\", \"suspicious\"] | None",
    "hold": "HoldState | None",
    "parse_error": "str | None",
    "send_at": "str | None",
    "created_by": "str | None",
    "deliveries": "list[EmailDelivery]",
    "duplicate_of": "str | None",
    "delivery": "Delivery",
})


class EmailDeferredEvent(TypedDict):
    id: str
    type: Literal["email.deferred"]
    event: Literal["email.deferred"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: EmailDeferredEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailBouncedEventDataRecipients(TypedDict):
    to: list[Address]
    cc: list[Address]
    bcc: list[Address]


EmailBouncedEventData = TypedDict("EmailBouncedEventData", {
    "id": "str",
    "identity_id": "str",
    "thread_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "EmailStatus",
    "from": "str",
    "from_name": "str",
    "to": "str",
    "subject": "str",
    "snippet": "str",
    "read": "bool",
    "spam": "bool",
    "automated": "bool",
    "tag": "str | None",
    "labels": "list[str]",
    "size": "int",
    "has_attachments": "bool",
    "verified_domain": "str | None",
    "message_id": "str | None",
    "in_reply_to": "str | None",
    "codes": "list[str]",
    "received_at": "str",
    "sent_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "body_text": "str | None",
    "body_html": "str | None",
    "text": "str",
    "references": "list[str]",
    "reply_to": "str | None",
    "reply_to_verified": "bool | None",
    "cc": "list[Address]",
    "bcc": "list[Address]",
    "recipients": "EmailBouncedEventDataRecipients",
    "body_truncated": "NotRequired[bool]",
    "links": "list[Link]",
    "attachments": "list[Attachment]",
    "authentication": "Authentication | None",
    "screening": "Screening | None",
    "set_aside": "Literal[\"blocked_sender\", \"unlisted_sender\", \"unverified_sender\", \"suspicious\"] | None",
    "hold": "HoldState | None",
    "parse_error": "str | None",
    "send_at": "str | None",
    "created_by": "str | None",
    "deliveries": "list[EmailDelivery]",
    "duplicate_of": "str | None",
    "delivery": "Delivery",
})


class EmailBouncedEvent(TypedDict):
    id: str
    type: Literal["email.bounced"]
    event: Literal["email.bounced"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: EmailBouncedEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailComplainedEventDataRecipients(TypedDict):
    to: list[Address]
    cc: list[Address]
    bcc: list[Address]


EmailComplainedEventData = TypedDict("EmailComplainedEventData", {
    "id": "str",
    "identity_id": "str",
    "thread_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "EmailStatus",
    "from": "str",
    "from_name": "str",
    "to": "str",
    "subject": "str",
    "snippet": "str",
    "read": "bool",
    "spam": "bool",
    "automated": "bool",
    "tag": "str | None",
    "labels": "list[str]",
    "size": "int",
    "has_attachments": "bool",
    "verified_domain": "str | None",
    "message_id": "str | None",
    "in_reply_to": "str | None",
    "codes": "list[str]",
    "received_at": "str",
    "sent_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "body_text": "str | None",
    "body_html": "str | None",
    "text": "str",
    "references": "list[str]",
    "reply_to": "str | None",
    "reply_to_verified": "bool | None",
    "cc": "list[Address]",
    "bcc": "list[Address]",
    "recipients": "EmailComplainedEventDataRecipients",
    "body_truncated": "NotRequired[bool]",
    "links": "list[Link]",
    "attachments": "list[Attachment]",
    "authentication": "Authentication | None",
    "screening": "Screening | None",
    "set_aside": "Literal[\"blocked_sender\", \"unlisted_sender\", \"unverified_sender\", \"suspicious\"] | None",
    "hold": "HoldState | None",
    "parse_error": "str | None",
    "send_at": "str | None",
    "created_by": "str | None",
    "deliveries": "list[EmailDelivery]",
    "duplicate_of": "str | None",
    "delivery": "Delivery",
})


class EmailComplainedEvent(TypedDict):
    id: str
    type: Literal["email.complained"]
    event: Literal["email.complained"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: EmailComplainedEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailFailedEventDataRecipients(TypedDict):
    to: list[Address]
    cc: list[Address]
    bcc: list[Address]


EmailFailedEventData = TypedDict("EmailFailedEventData", {
    "id": "str",
    "identity_id": "str",
    "thread_id": "str",
    "direction": "Literal[\"inbound\", \"outbound\"]",
    "status": "EmailStatus",
    "from": "str",
    "from_name": "str",
    "to": "str",
    "subject": "str",
    "snippet": "str",
    "read": "bool",
    "spam": "bool",
    "automated": "bool",
    "tag": "str | None",
    "labels": "list[str]",
    "size": "int",
    "has_attachments": "bool",
    "verified_domain": "str | None",
    "message_id": "str | None",
    "in_reply_to": "str | None",
    "codes": "list[str]",
    "received_at": "str",
    "sent_at": "str | None",
    "created_at": "str",
    "deleted_at": "NotRequired[str]",
    "body_text": "str | None",
    "body_html": "str | None",
    "text": "str",
    "references": "list[str]",
    "reply_to": "str | None",
    "reply_to_verified": "bool | None",
    "cc": "list[Address]",
    "bcc": "list[Address]",
    "recipients": "EmailFailedEventDataRecipients",
    "body_truncated": "NotRequired[bool]",
    "links": "list[Link]",
    "attachments": "list[Attachment]",
    "authentication": "Authentication | None",
    "screening": "Screening | None",
    "set_aside": "Literal[\"blocked_sender\", \"unlisted_sender\", \"unverified_sender\", \"suspicious\"] | None",
    "hold": "HoldState | None",
    "parse_error": "str | None",
    "send_at": "str | None",
    "created_by": "str | None",
    "deliveries": "list[EmailDelivery]",
    "duplicate_of": "str | None",
    "delivery": "Delivery",
})


class EmailFailedEvent(TypedDict):
    id: str
    type: Literal["email.failed"]
    event: Literal["email.failed"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: EmailFailedEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailCancelledEvent(TypedDict):
    id: str
    type: Literal["email.cancelled"]
    event: Literal["email.cancelled"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Email
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailHeldEvent(TypedDict):
    id: str
    type: Literal["email.held"]
    event: Literal["email.held"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Email
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailApprovedEvent(TypedDict):
    id: str
    type: Literal["email.approved"]
    event: Literal["email.approved"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Email
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailRejectedEvent(TypedDict):
    id: str
    type: Literal["email.rejected"]
    event: Literal["email.rejected"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Email
    """Of a resource that was deleted since: `{id, deleted}`."""


class EmailExpiredEvent(TypedDict):
    id: str
    type: Literal["email.expired"]
    event: Literal["email.expired"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Email
    """Of a resource that was deleted since: `{id, deleted}`."""


class SmsReceivedEvent(TypedDict):
    id: str
    type: Literal["sms.received"]
    event: Literal["sms.received"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Sms
    """Of a resource that was deleted since: `{id, deleted}`."""


class SmsSentEvent(TypedDict):
    id: str
    type: Literal["sms.sent"]
    event: Literal["sms.sent"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Sms
    """Of a resource that was deleted since: `{id, deleted}`."""


class SmsDeliveredEvent(TypedDict):
    id: str
    type: Literal["sms.delivered"]
    event: Literal["sms.delivered"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Sms
    """Of a resource that was deleted since: `{id, deleted}`."""


class SmsFailedEvent(TypedDict):
    id: str
    type: Literal["sms.failed"]
    event: Literal["sms.failed"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Sms
    """Of a resource that was deleted since: `{id, deleted}`."""


class SmsHeldEvent(TypedDict):
    id: str
    type: Literal["sms.held"]
    event: Literal["sms.held"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Sms
    """Of a resource that was deleted since: `{id, deleted}`."""


class SmsApprovedEvent(TypedDict):
    id: str
    type: Literal["sms.approved"]
    event: Literal["sms.approved"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Sms
    """Of a resource that was deleted since: `{id, deleted}`."""


class SmsRejectedEvent(TypedDict):
    id: str
    type: Literal["sms.rejected"]
    event: Literal["sms.rejected"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Sms
    """Of a resource that was deleted since: `{id, deleted}`."""


class SmsExpiredEvent(TypedDict):
    id: str
    type: Literal["sms.expired"]
    event: Literal["sms.expired"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Sms
    """Of a resource that was deleted since: `{id, deleted}`."""


class PhoneProvisionedEvent(TypedDict):
    id: str
    type: Literal["phone.provisioned"]
    event: Literal["phone.provisioned"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: PhoneNumber
    """Of a resource that was deleted since: `{id, deleted}`."""


class PhoneReleasedEvent(TypedDict):
    id: str
    type: Literal["phone.released"]
    event: Literal["phone.released"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: PhoneNumber
    """Of a resource that was deleted since: `{id, deleted}`."""


class TotpCreatedEvent(TypedDict):
    id: str
    type: Literal["totp.created"]
    event: Literal["totp.created"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: TotpEntry
    """Of a resource that was deleted since: `{id, deleted}`."""


class TotpDeletedEvent(TypedDict):
    id: str
    type: Literal["totp.deleted"]
    event: Literal["totp.deleted"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: TotpEntry
    """Of a resource that was deleted since: `{id, deleted}`."""


class TotpReadEventData(TypedDict):
    id: str
    identity_id: str
    service_name: str
    key_id: str | None
    ip: str
    user_agent: str


class TotpReadEvent(TypedDict):
    id: str
    type: Literal["totp.read"]
    event: Literal["totp.read"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: TotpReadEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardCreatedEvent(TypedDict):
    id: str
    type: Literal["card.created"]
    event: Literal["card.created"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Card
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardRevealedEvent(TypedDict):
    id: str
    type: Literal["card.revealed"]
    event: Literal["card.revealed"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: CardRevealed
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardFrozenEvent(TypedDict):
    id: str
    type: Literal["card.frozen"]
    event: Literal["card.frozen"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Card
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardUnfrozenEvent(TypedDict):
    id: str
    type: Literal["card.unfrozen"]
    event: Literal["card.unfrozen"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Card
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardCancelledEvent(TypedDict):
    id: str
    type: Literal["card.cancelled"]
    event: Literal["card.cancelled"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Card
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardLimitsUpdatedEvent(TypedDict):
    id: str
    type: Literal["card.limits_updated"]
    event: Literal["card.limits_updated"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Card
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardHeldEvent(TypedDict):
    id: str
    type: Literal["card.held"]
    event: Literal["card.held"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: HeldCard
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardApprovedEvent(TypedDict):
    id: str
    type: Literal["card.approved"]
    event: Literal["card.approved"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: HeldCard
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardRejectedEvent(TypedDict):
    id: str
    type: Literal["card.rejected"]
    event: Literal["card.rejected"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: HeldCard
    """Of a resource that was deleted since: `{id, deleted}`."""


class CardExpiredEvent(TypedDict):
    id: str
    type: Literal["card.expired"]
    event: Literal["card.expired"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: HeldCard
    """Of a resource that was deleted since: `{id, deleted}`."""


class LoginCreatedEvent(TypedDict):
    id: str
    type: Literal["login.created"]
    event: Literal["login.created"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: LoginNoted
    """Of a resource that was deleted since: `{id, deleted}`."""


class LoginUpdatedEvent(TypedDict):
    id: str
    type: Literal["login.updated"]
    event: Literal["login.updated"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: LoginNoted
    """Of a resource that was deleted since: `{id, deleted}`."""


class LoginDeletedEvent(TypedDict):
    id: str
    type: Literal["login.deleted"]
    event: Literal["login.deleted"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: LoginNoted
    """Of a resource that was deleted since: `{id, deleted}`."""


class LoginRevealedEventData(TypedDict):
    id: str
    identity_id: str
    label: str
    url: str | None
    purpose: str | None
    key_id: str | None
    ip: str
    user_agent: str


class LoginRevealedEvent(TypedDict):
    id: str
    type: Literal["login.revealed"]
    event: Literal["login.revealed"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: LoginRevealedEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class LoginHeldEvent(TypedDict):
    id: str
    type: Literal["login.held"]
    event: Literal["login.held"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: HeldLogin
    """Of a resource that was deleted since: `{id, deleted}`."""


class LoginApprovedEvent(TypedDict):
    id: str
    type: Literal["login.approved"]
    event: Literal["login.approved"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: HeldLogin
    """Of a resource that was deleted since: `{id, deleted}`."""


class LoginRejectedEvent(TypedDict):
    id: str
    type: Literal["login.rejected"]
    event: Literal["login.rejected"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: HeldLogin
    """Of a resource that was deleted since: `{id, deleted}`."""


class LoginExpiredEvent(TypedDict):
    id: str
    type: Literal["login.expired"]
    event: Literal["login.expired"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: HeldLogin
    """Of a resource that was deleted since: `{id, deleted}`."""


class AgentCreatedEvent(TypedDict):
    id: str
    type: Literal["agent.created"]
    event: Literal["agent.created"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Agent
    """Of a resource that was deleted since: `{id, deleted}`."""


class AgentUpdatedEvent(TypedDict):
    id: str
    type: Literal["agent.updated"]
    event: Literal["agent.updated"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Agent
    """Of a resource that was deleted since: `{id, deleted}`."""


class AgentDeletedEventData(TypedDict):
    id: str
    identity_id: str
    handle: str
    did: str
    status: Literal["deleted"]


class AgentDeletedEvent(TypedDict):
    id: str
    type: Literal["agent.deleted"]
    event: Literal["agent.deleted"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: AgentDeletedEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class TokenIssuedEventData(TypedDict):
    id: str
    identity_id: str
    audience: str
    expires_at: str
    created_by: str | None
    """the key or session that created it; null if it was created on the machine of the box, or before this was recorded"""


class TokenIssuedEvent(TypedDict):
    id: str
    type: Literal["token.issued"]
    event: Literal["token.issued"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: TokenIssuedEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class TokenRevokedEvent(TypedDict):
    id: str
    type: Literal["token.revoked"]
    event: Literal["token.revoked"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: TokensRevoked
    """Of a resource that was deleted since: `{id, deleted}`."""


class ReputationUpdatedEvent(TypedDict):
    id: str
    type: Literal["reputation.updated"]
    event: Literal["reputation.updated"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Reputation
    """Of a resource that was deleted since: `{id, deleted}`."""


class ReputationReportedEvent(TypedDict):
    id: str
    type: Literal["reputation.reported"]
    event: Literal["reputation.reported"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: Report
    """Of a resource that was deleted since: `{id, deleted}`."""


class WebhookCreatedEvent(TypedDict):
    id: str
    type: Literal["webhook.created"]
    event: Literal["webhook.created"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: WebhookNoted
    """Of a resource that was deleted since: `{id, deleted}`."""


class WebhookUpdatedEvent(TypedDict):
    id: str
    type: Literal["webhook.updated"]
    event: Literal["webhook.updated"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: WebhookNoted
    """Of a resource that was deleted since: `{id, deleted}`."""


class WebhookDeletedEvent(TypedDict):
    id: str
    type: Literal["webhook.deleted"]
    event: Literal["webhook.deleted"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: WebhookNoted
    """Of a resource that was deleted since: `{id, deleted}`."""


class WebhookDisabledEvent(TypedDict):
    id: str
    type: Literal["webhook.disabled"]
    event: Literal["webhook.disabled"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: WebhookNoted
    """Of a resource that was deleted since: `{id, deleted}`."""


class WebhookTestEventData(TypedDict):
    webhook_id: str


class WebhookTestEvent(TypedDict):
    id: str
    type: Literal["webhook.test"]
    event: Literal["webhook.test"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: WebhookTestEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class DoctorChangedEvent(TypedDict):
    id: str
    type: Literal["doctor.changed"]
    event: Literal["doctor.changed"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: DoctorChange
    """Of a resource that was deleted since: `{id, deleted}`."""


class AccountStoppedEventData(TypedDict):
    id: str
    by: str | None
    """the person or key; null for the operator"""
    stopped_at: str | None


class AccountStoppedEvent(TypedDict):
    id: str
    type: Literal["account.stopped"]
    event: Literal["account.stopped"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: AccountStoppedEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class AccountResumedEventData(TypedDict):
    id: str
    by: str | None
    """the person or key; null for the operator"""
    stopped_at: str | None


class AccountResumedEvent(TypedDict):
    id: str
    type: Literal["account.resumed"]
    event: Literal["account.resumed"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: AccountResumedEventData
    """Of a resource that was deleted since: `{id, deleted}`."""


class KeyCreatedEvent(TypedDict):
    id: str
    type: Literal["key.created"]
    event: Literal["key.created"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: ApiKey
    """Of a resource that was deleted since: `{id, deleted}`."""


class KeyRotatedEvent(TypedDict):
    id: str
    type: Literal["key.rotated"]
    event: Literal["key.rotated"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: ApiKey
    """Of a resource that was deleted since: `{id, deleted}`."""


class KeyRevokedEvent(TypedDict):
    id: str
    type: Literal["key.revoked"]
    event: Literal["key.revoked"]
    """The same as `type`."""
    identity_id: str | None
    created_at: str
    data: RevokedApiKey
    """Of a resource that was deleted since: `{id, deleted}`."""

EventType: TypeAlias = Literal[
    "identity.created",
    "identity.updated",
    "identity.deleted",
    "domain.verified",
    "domain.failed",
    "certificate.renewed",
    "certificate.failed",
    "email.received",
    "email.released",
    "email.queued",
    "email.sent",
    "email.delivered",
    "email.deferred",
    "email.bounced",
    "email.complained",
    "email.failed",
    "email.cancelled",
    "email.held",
    "email.approved",
    "email.rejected",
    "email.expired",
    "sms.received",
    "sms.sent",
    "sms.delivered",
    "sms.failed",
    "sms.held",
    "sms.approved",
    "sms.rejected",
    "sms.expired",
    "phone.provisioned",
    "phone.released",
    "totp.created",
    "totp.deleted",
    "totp.read",
    "card.created",
    "card.revealed",
    "card.frozen",
    "card.unfrozen",
    "card.cancelled",
    "card.limits_updated",
    "card.held",
    "card.approved",
    "card.rejected",
    "card.expired",
    "login.created",
    "login.updated",
    "login.deleted",
    "login.revealed",
    "login.held",
    "login.approved",
    "login.rejected",
    "login.expired",
    "agent.created",
    "agent.updated",
    "agent.deleted",
    "token.issued",
    "token.revoked",
    "reputation.updated",
    "reputation.reported",
    "webhook.created",
    "webhook.updated",
    "webhook.deleted",
    "webhook.disabled",
    "webhook.test",
    "doctor.changed",
    "account.stopped",
    "account.resumed",
    "key.created",
    "key.rotated",
    "key.revoked",
]

Event: TypeAlias = Union[
    "IdentityCreatedEvent",
    "IdentityUpdatedEvent",
    "IdentityDeletedEvent",
    "DomainVerifiedEvent",
    "DomainFailedEvent",
    "CertificateRenewedEvent",
    "CertificateFailedEvent",
    "EmailReceivedEvent",
    "EmailReleasedEvent",
    "EmailQueuedEvent",
    "EmailSentEvent",
    "EmailDeliveredEvent",
    "EmailDeferredEvent",
    "EmailBouncedEvent",
    "EmailComplainedEvent",
    "EmailFailedEvent",
    "EmailCancelledEvent",
    "EmailHeldEvent",
    "EmailApprovedEvent",
    "EmailRejectedEvent",
    "EmailExpiredEvent",
    "SmsReceivedEvent",
    "SmsSentEvent",
    "SmsDeliveredEvent",
    "SmsFailedEvent",
    "SmsHeldEvent",
    "SmsApprovedEvent",
    "SmsRejectedEvent",
    "SmsExpiredEvent",
    "PhoneProvisionedEvent",
    "PhoneReleasedEvent",
    "TotpCreatedEvent",
    "TotpDeletedEvent",
    "TotpReadEvent",
    "CardCreatedEvent",
    "CardRevealedEvent",
    "CardFrozenEvent",
    "CardUnfrozenEvent",
    "CardCancelledEvent",
    "CardLimitsUpdatedEvent",
    "CardHeldEvent",
    "CardApprovedEvent",
    "CardRejectedEvent",
    "CardExpiredEvent",
    "LoginCreatedEvent",
    "LoginUpdatedEvent",
    "LoginDeletedEvent",
    "LoginRevealedEvent",
    "LoginHeldEvent",
    "LoginApprovedEvent",
    "LoginRejectedEvent",
    "LoginExpiredEvent",
    "AgentCreatedEvent",
    "AgentUpdatedEvent",
    "AgentDeletedEvent",
    "TokenIssuedEvent",
    "TokenRevokedEvent",
    "ReputationUpdatedEvent",
    "ReputationReportedEvent",
    "WebhookCreatedEvent",
    "WebhookUpdatedEvent",
    "WebhookDeletedEvent",
    "WebhookDisabledEvent",
    "WebhookTestEvent",
    "DoctorChangedEvent",
    "AccountStoppedEvent",
    "AccountResumedEvent",
    "KeyCreatedEvent",
    "KeyRotatedEvent",
    "KeyRevokedEvent",
]
