# Printed by `npm run docs` from the declarations of the box. Not to be changed by hand.

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from . import types as t
from .calls import AsyncCaller, Caller, Options, Unpack


class Account:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def sessions(self, query: t.AccountSessionsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.SessionEntry]:
        """List sessions."""
        return cast("t.Page[t.SessionEntry]", self._caller.call("GET", "/account/sessions", {}, "query", query, "page", options))

    def iterate_sessions(self, query: t.AccountSessionsQuery | None = None, **options: Unpack[Options]) -> Iterator[t.SessionEntry]:
        """List sessions: the rows of all pages."""
        return self._caller.rows("GET", "/account/sessions", {}, "query", query, "page", options)

    def end_sessions(self, **options: Unpack[Options]) -> t.SessionsEnded:
        """Sign out everywhere."""
        return cast("t.SessionsEnded", self._caller.call("DELETE", "/account/sessions", {}, "", None, "json", options))

    def get(self, **options: Unpack[Options]) -> t.Account:
        """Get the account."""
        return cast("t.Account", self._caller.call("GET", "/account", {}, "", None, "json", options))

    def whoami(self, **options: Unpack[Options]) -> t.WhoAmI:
        """Get the caller."""
        return cast("t.WhoAmI", self._caller.call("GET", "/whoami", {}, "", None, "json", options))

    def events(self, query: t.AccountEventsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Event]:
        """List events of the account."""
        return cast("t.Page[t.Event]", self._caller.call("GET", "/events", {}, "query", query, "page", options))

    def iterate_events(self, query: t.AccountEventsQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Event]:
        """List events of the account: the rows of all pages."""
        return self._caller.rows("GET", "/events", {}, "query", query, "page", options)


class Accounts:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(self, query: t.AccountsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Account]:
        """List the accounts of the box."""
        return cast("t.Page[t.Account]", self._caller.call("GET", "/accounts", {}, "query", query, "page", options))

    def iterate(self, query: t.AccountsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Account]:
        """List the accounts of the box: the rows of all pages."""
        return self._caller.rows("GET", "/accounts", {}, "query", query, "page", options)

    def create(self, body: t.AccountWish, **options: Unpack[Options]) -> t.Account:
        """Add an account."""
        return cast("t.Account", self._caller.call("POST", "/accounts", {}, "body", body, "json", options))


class Agents:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, body: t.NewAgent, **options: Unpack[Options]) -> t.Agent:
        """Create an agent."""
        return cast("t.Agent", self._caller.call("POST", "/agents", {}, "body", body, "json", options))

    def list(self, query: t.AgentsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Agent]:
        """List agents."""
        return cast("t.Page[t.Agent]", self._caller.call("GET", "/agents", {}, "query", query, "page", options))

    def iterate(self, query: t.AgentsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Agent]:
        """List agents: the rows of all pages."""
        return self._caller.rows("GET", "/agents", {}, "query", query, "page", options)

    def get(self, agent_id: str, **options: Unpack[Options]) -> t.Agent:
        """Get an agent."""
        return cast("t.Agent", self._caller.call("GET", "/agents/{agent_id}", {"agent_id": agent_id}, "", None, "json", options))

    def update(self, agent_id: str, body: t.AgentChange | None = None, **options: Unpack[Options]) -> t.Agent:
        """Change an agent."""
        return cast("t.Agent", self._caller.call("PATCH", "/agents/{agent_id}", {"agent_id": agent_id}, "body", body, "json", options))

    def delete(self, agent_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete an agent."""
        return cast("t.Deleted", self._caller.call("DELETE", "/agents/{agent_id}", {"agent_id": agent_id}, "", None, "json", options))

    def add_erc8004(self, agent_id: str, body: t.NewErc8004Link, **options: Unpack[Options]) -> t.Erc8004Link:
        """Link an agent to ERC-8004."""
        return cast("t.Erc8004Link", self._caller.call("POST", "/agents/{agent_id}/erc8004", {"agent_id": agent_id}, "body", body, "json", options))

    def erc8004(self, agent_id: str, query: t.AgentsErc8004Query | None = None, **options: Unpack[Options]) -> t.Page[t.Erc8004Link]:
        """List ERC-8004 links."""
        return cast("t.Page[t.Erc8004Link]", self._caller.call("GET", "/agents/{agent_id}/erc8004", {"agent_id": agent_id}, "query", query, "page", options))

    def iterate_erc8004(self, agent_id: str, query: t.AgentsErc8004Query | None = None, **options: Unpack[Options]) -> Iterator[t.Erc8004Link]:
        """List ERC-8004 links: the rows of all pages."""
        return self._caller.rows("GET", "/agents/{agent_id}/erc8004", {"agent_id": agent_id}, "query", query, "page", options)

    def remove_erc8004(self, agent_id: str, link_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Remove an ERC-8004 link."""
        return cast("t.Deleted", self._caller.call("DELETE", "/agents/{agent_id}/erc8004/{link_id}", {"agent_id": agent_id, "link_id": link_id}, "", None, "json", options))

    def reputation(self, agent_id: str, **options: Unpack[Options]) -> t.Reputation:
        """Get the reputation of an agent."""
        return cast("t.Reputation", self._caller.call("GET", "/agents/{agent_id}/reputation", {"agent_id": agent_id}, "", None, "json", options))


class Aliases:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, domain_id: str, body: t.NewAlias, **options: Unpack[Options]) -> t.Alias:
        """Add an alias."""
        return cast("t.Alias", self._caller.call("POST", "/domains/{domain_id}/aliases", {"domain_id": domain_id}, "body", body, "json", options))

    def list(self, domain_id: str, query: t.AliasesListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Alias]:
        """List aliases."""
        return cast("t.Page[t.Alias]", self._caller.call("GET", "/domains/{domain_id}/aliases", {"domain_id": domain_id}, "query", query, "page", options))

    def iterate(self, domain_id: str, query: t.AliasesListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Alias]:
        """List aliases: the rows of all pages."""
        return self._caller.rows("GET", "/domains/{domain_id}/aliases", {"domain_id": domain_id}, "query", query, "page", options)

    def get(self, domain_id: str, alias_id: str, **options: Unpack[Options]) -> t.Alias:
        """Get an alias."""
        return cast("t.Alias", self._caller.call("GET", "/domains/{domain_id}/aliases/{alias_id}", {"domain_id": domain_id, "alias_id": alias_id}, "", None, "json", options))

    def update(self, domain_id: str, alias_id: str, body: t.AliasChange | None = None, **options: Unpack[Options]) -> t.Alias:
        """Change an alias."""
        return cast("t.Alias", self._caller.call("PATCH", "/domains/{domain_id}/aliases/{alias_id}", {"domain_id": domain_id, "alias_id": alias_id}, "body", body, "json", options))

    def delete(self, domain_id: str, alias_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete an alias."""
        return cast("t.Deleted", self._caller.call("DELETE", "/domains/{domain_id}/aliases/{alias_id}", {"domain_id": domain_id, "alias_id": alias_id}, "", None, "json", options))


class ApiKeys:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, body: t.NewApiKey | None = None, **options: Unpack[Options]) -> t.ApiKeyWithSecret:
        """Create an API key."""
        return cast("t.ApiKeyWithSecret", self._caller.call("POST", "/api-keys", {}, "body", body, "json", options))

    def list(self, query: t.ApiKeysListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.ApiKey]:
        """List API keys."""
        return cast("t.Page[t.ApiKey]", self._caller.call("GET", "/api-keys", {}, "query", query, "page", options))

    def iterate(self, query: t.ApiKeysListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.ApiKey]:
        """List API keys: the rows of all pages."""
        return self._caller.rows("GET", "/api-keys", {}, "query", query, "page", options)

    def rotate(self, api_key_id: str, body: t.Rotation | None = None, **options: Unpack[Options]) -> t.ApiKeyWithSecret:
        """Rotate the secret of a key."""
        return cast("t.ApiKeyWithSecret", self._caller.call("POST", "/api-keys/{api_key_id}/rotate", {"api_key_id": api_key_id}, "body", body, "json", options))

    def revoke(self, api_key_id: str, query: t.ApiKeysRevokeQuery | None = None, **options: Unpack[Options]) -> t.KeyRevoked:
        """Revoke an API key."""
        return cast("t.KeyRevoked", self._caller.call("DELETE", "/api-keys/{api_key_id}", {"api_key_id": api_key_id}, "query", query, "json", options))


class Backups:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, **options: Unpack[Options]) -> t.Job:
        """Create a backup."""
        return cast("t.Job", self._caller.call("POST", "/backups", {}, "", None, "json", options))

    def list(self, query: t.BackupsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Backup]:
        """List backups."""
        return cast("t.Page[t.Backup]", self._caller.call("GET", "/backups", {}, "query", query, "page", options))

    def iterate(self, query: t.BackupsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Backup]:
        """List backups: the rows of all pages."""
        return self._caller.rows("GET", "/backups", {}, "query", query, "page", options)


class Billing:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def subscription(self, **options: Unpack[Options]) -> t.Subscription:
        """Get the subscription."""
        return cast("t.Subscription", self._caller.call("GET", "/billing/subscription", {}, "", None, "json", options))


class Box:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def stats(self, query: t.BoxStatsQuery | None = None, **options: Unpack[Options]) -> t.Stats:
        """Get the activity of the box."""
        return cast("t.Stats", self._caller.call("GET", "/stats", {}, "query", query, "json", options))

    def status(self, **options: Unpack[Options]) -> t.Status:
        """Get the status of the box."""
        return cast("t.Status", self._caller.call("GET", "/status", {}, "", None, "json", options))

    def reload(self, **options: Unpack[Options]) -> t.Reloaded:
        """Reload the settings."""
        return cast("t.Reloaded", self._caller.call("POST", "/reload", {}, "", None, "json", options))


class Cards:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, identity_id: str, body: t.NewCard | dict[str, Any], **options: Unpack[Options]) -> t.Card:
        """Store a card."""
        return cast("t.Card", self._caller.call("POST", "/identities/{identity_id}/cards", {"identity_id": identity_id}, "body", body, "json", options))

    def list(self, identity_id: str, query: t.CardsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Card]:
        """List cards."""
        return cast("t.Page[t.Card]", self._caller.call("GET", "/identities/{identity_id}/cards", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.CardsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Card]:
        """List cards: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/cards", {"identity_id": identity_id}, "query", query, "page", options)

    def get(self, card_id: str, **options: Unpack[Options]) -> t.Card:
        """Get a card."""
        return cast("t.Card", self._caller.call("GET", "/cards/{card_id}", {"card_id": card_id}, "", None, "json", options))

    def reveal(self, card_id: str, body: t.RevealWish | None = None, **options: Unpack[Options]) -> t.Revealed:
        """Reveal a card."""
        return cast("t.Revealed", self._caller.call("POST", "/cards/{card_id}/reveal", {"card_id": card_id}, "body", body, "json", options))

    def freeze(self, card_id: str, **options: Unpack[Options]) -> t.Card:
        """Freeze a card."""
        return cast("t.Card", self._caller.call("POST", "/cards/{card_id}/freeze", {"card_id": card_id}, "", None, "json", options))

    def unfreeze(self, card_id: str, **options: Unpack[Options]) -> t.Card:
        """Unfreeze a card."""
        return cast("t.Card", self._caller.call("POST", "/cards/{card_id}/unfreeze", {"card_id": card_id}, "", None, "json", options))

    def cancel(self, card_id: str, **options: Unpack[Options]) -> t.Card:
        """Cancel a card."""
        return cast("t.Card", self._caller.call("POST", "/cards/{card_id}/cancel", {"card_id": card_id}, "", None, "json", options))

    def limits(self, card_id: str, **options: Unpack[Options]) -> t.CardLimits:
        """Get a card's limits."""
        return cast("t.CardLimits", self._caller.call("GET", "/cards/{card_id}/limits", {"card_id": card_id}, "", None, "json", options))

    def update_limits(self, card_id: str, body: t.LimitsChange | None = None, **options: Unpack[Options]) -> t.CardLimits:
        """Change a card's limits."""
        return cast("t.CardLimits", self._caller.call("PATCH", "/cards/{card_id}/limits", {"card_id": card_id}, "body", body, "json", options))

    def transactions(self, card_id: str, query: t.CardsTransactionsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.CardTransaction]:
        """List a card's transactions."""
        return cast("t.Page[t.CardTransaction]", self._caller.call("GET", "/cards/{card_id}/transactions", {"card_id": card_id}, "query", query, "page", options))

    def iterate_transactions(self, card_id: str, query: t.CardsTransactionsQuery | None = None, **options: Unpack[Options]) -> Iterator[t.CardTransaction]:
        """List a card's transactions: the rows of all pages."""
        return self._caller.rows("GET", "/cards/{card_id}/transactions", {"card_id": card_id}, "query", query, "page", options)

    def report(self, card_id: str, body: t.NewTransaction, **options: Unpack[Options]) -> t.CardTransaction:
        """Record spending."""
        return cast("t.CardTransaction", self._caller.call("POST", "/cards/{card_id}/transactions", {"card_id": card_id}, "body", body, "json", options))


class Certificates:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(self, **options: Unpack[Options]) -> dict[str, Any]:
        """List certificates."""
        return cast("dict[str, Any]", self._caller.call("GET", "/certificates", {}, "", None, "json", options))

    def renew(self, body: t.CertificateRenewal | None = None, **options: Unpack[Options]) -> dict[str, Any]:
        """Renew certificates."""
        return cast("dict[str, Any]", self._caller.call("POST", "/certificates/renew", {}, "body", body, "json", options))


class Doctor:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, **options: Unpack[Options]) -> t.DoctorReport:
        """Get the last results of the doctor."""
        return cast("t.DoctorReport", self._caller.call("GET", "/doctor", {}, "", None, "json", options))

    def run(self, **options: Unpack[Options]) -> t.DoctorReport:
        """Run all checks of the doctor."""
        return cast("t.DoctorReport", self._caller.call("POST", "/doctor", {}, "", None, "json", options))


class Domains:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def update(self, domain_id: str, body: t.DomainChange | None = None, **options: Unpack[Options]) -> t.Domain:
        """Change a domain."""
        return cast("t.Domain", self._caller.call("PATCH", "/domains/{domain_id}", {"domain_id": domain_id}, "body", body, "json", options))

    def create(self, body: t.NewDomain | None = None, **options: Unpack[Options]) -> t.Domain:
        """Add a domain."""
        return cast("t.Domain", self._caller.call("POST", "/domains", {}, "body", body, "json", options))

    def list(self, query: t.DomainsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Domain]:
        """List domains."""
        return cast("t.Page[t.Domain]", self._caller.call("GET", "/domains", {}, "query", query, "page", options))

    def iterate(self, query: t.DomainsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Domain]:
        """List domains: the rows of all pages."""
        return self._caller.rows("GET", "/domains", {}, "query", query, "page", options)

    def get(self, domain_id: str, **options: Unpack[Options]) -> t.Domain:
        """Get a domain."""
        return cast("t.Domain", self._caller.call("GET", "/domains/{domain_id}", {"domain_id": domain_id}, "", None, "json", options))

    def delete(self, domain_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete a domain."""
        return cast("t.Deleted", self._caller.call("DELETE", "/domains/{domain_id}", {"domain_id": domain_id}, "", None, "json", options))

    def verify(self, domain_id: str, **options: Unpack[Options]) -> t.Domain:
        """Verify a domain."""
        return cast("t.Domain", self._caller.call("POST", "/domains/{domain_id}/verify", {"domain_id": domain_id}, "", None, "json", options))

    def rotate_keys(self, domain_id: str, **options: Unpack[Options]) -> t.Domain:
        """Rotate the DKIM keys."""
        return cast("t.Domain", self._caller.call("POST", "/domains/{domain_id}/dkim/rotate", {"domain_id": domain_id}, "", None, "json", options))

    def zone(self, domain_id: str, **options: Unpack[Options]) -> str:
        """Get a domain's records as a zone file."""
        return cast("str", self._caller.call("GET", "/domains/{domain_id}/zone", {"domain_id": domain_id}, "", None, "text", options))

    def reports(self, domain_id: str, query: t.DomainsReportsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.DomainReport]:
        """List reports about a domain."""
        return cast("t.Page[t.DomainReport]", self._caller.call("GET", "/domains/{domain_id}/reports", {"domain_id": domain_id}, "query", query, "page", options))

    def iterate_reports(self, domain_id: str, query: t.DomainsReportsQuery | None = None, **options: Unpack[Options]) -> Iterator[t.DomainReport]:
        """List reports about a domain: the rows of all pages."""
        return self._caller.rows("GET", "/domains/{domain_id}/reports", {"domain_id": domain_id}, "query", query, "page", options)


class Emails:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(self, identity_id: str, query: t.EmailsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.EmailRow]:
        """List e-mails."""
        return cast("t.Page[t.EmailRow]", self._caller.call("GET", "/identities/{identity_id}/emails", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.EmailsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.EmailRow]:
        """List e-mails: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/emails", {"identity_id": identity_id}, "query", query, "page", options)

    def search(self, identity_id: str, query: t.EmailsSearchQuery | None = None, **options: Unpack[Options]) -> t.Page[t.EmailRow]:
        """Search e-mails."""
        return cast("t.Page[t.EmailRow]", self._caller.call("GET", "/identities/{identity_id}/emails/search", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate_search(self, identity_id: str, query: t.EmailsSearchQuery | None = None, **options: Unpack[Options]) -> Iterator[t.EmailRow]:
        """Search e-mails: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/emails/search", {"identity_id": identity_id}, "query", query, "page", options)

    def update_many(self, identity_id: str, body: t.BulkChange | None = None, **options: Unpack[Options]) -> t.BulkResult:
        """Change many e-mails."""
        return cast("t.BulkResult", self._caller.call("POST", "/identities/{identity_id}/emails/bulk", {"identity_id": identity_id}, "body", body, "json", options))

    def get(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> t.Email:
        """Get an e-mail."""
        return cast("t.Email", self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}", {"identity_id": identity_id, "email_id": email_id}, "", None, "json", options))

    def update(self, identity_id: str, email_id: str, body: t.EmailChange | None = None, **options: Unpack[Options]) -> t.Email:
        """Change an e-mail."""
        return cast("t.Email", self._caller.call("PATCH", "/identities/{identity_id}/emails/{email_id}", {"identity_id": identity_id, "email_id": email_id}, "body", body, "json", options))

    def delete(self, identity_id: str, email_id: str, query: t.EmailsDeleteQuery | None = None, **options: Unpack[Options]) -> t.Deleted:
        """Delete an e-mail."""
        return cast("t.Deleted", self._caller.call("DELETE", "/identities/{identity_id}/emails/{email_id}", {"identity_id": identity_id, "email_id": email_id}, "query", query, "json", options))

    def restore(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> t.Email:
        """Restore an e-mail."""
        return cast("t.Email", self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/restore", {"identity_id": identity_id, "email_id": email_id}, "", None, "json", options))

    def raw(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> bytes:
        """Get the source of an e-mail."""
        return cast("bytes", self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/raw", {"identity_id": identity_id, "email_id": email_id}, "", None, "octets", options))

    def html(self, identity_id: str, email_id: str, query: t.EmailsHtmlQuery | None = None, **options: Unpack[Options]) -> str:
        """Get an e-mail as an HTML page."""
        return cast("str", self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/html", {"identity_id": identity_id, "email_id": email_id}, "query", query, "text", options))

    def attachments(self, identity_id: str, email_id: str, query: t.EmailsAttachmentsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Attachment]:
        """List attachments."""
        return cast("t.Page[t.Attachment]", self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/attachments", {"identity_id": identity_id, "email_id": email_id}, "query", query, "page", options))

    def iterate_attachments(self, identity_id: str, email_id: str, query: t.EmailsAttachmentsQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Attachment]:
        """List attachments: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/emails/{email_id}/attachments", {"identity_id": identity_id, "email_id": email_id}, "query", query, "page", options)

    def attachment(self, identity_id: str, email_id: str, index: int, **options: Unpack[Options]) -> t.AttachmentWithUrl:
        """Get an attachment’s URL."""
        return cast("t.AttachmentWithUrl", self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/attachments/{index}", {"identity_id": identity_id, "email_id": email_id, "index": index}, "", None, "json", options))

    def attachment_text(self, identity_id: str, email_id: str, index: int, query: t.EmailsAttachmentTextQuery | None = None, **options: Unpack[Options]) -> t.AttachmentText:
        """Get the text of an attachment."""
        return cast("t.AttachmentText", self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/attachments/{index}/text", {"identity_id": identity_id, "email_id": email_id, "index": index}, "query", query, "json", options))

    def release(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> t.Email:
        """Release an e-mail that was set aside."""
        return cast("t.Email", self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/release", {"identity_id": identity_id, "email_id": email_id}, "", None, "json", options))

    def send(self, identity_id: str, body: t.NewEmail, **options: Unpack[Options]) -> t.Email:
        """Send an e-mail."""
        return cast("t.Email", self._caller.call("POST", "/identities/{identity_id}/emails", {"identity_id": identity_id}, "body", body, "json", options))

    def reply(self, identity_id: str, email_id: str, body: t.NewReply | None = None, **options: Unpack[Options]) -> t.Email:
        """Reply to an e-mail."""
        return cast("t.Email", self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/reply", {"identity_id": identity_id, "email_id": email_id}, "body", body, "json", options))

    def forward(self, identity_id: str, email_id: str, body: t.NewForward, **options: Unpack[Options]) -> t.Email:
        """Forward an e-mail."""
        return cast("t.Email", self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/forward", {"identity_id": identity_id, "email_id": email_id}, "body", body, "json", options))

    def cancel(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> t.Email:
        """Cancel an e-mail."""
        return cast("t.Email", self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/cancel", {"identity_id": identity_id, "email_id": email_id}, "", None, "json", options))


class Holds:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(self, query: t.HoldsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.HoldRow]:
        """List holds."""
        return cast("t.Page[t.HoldRow]", self._caller.call("GET", "/holds", {}, "query", query, "page", options))

    def iterate(self, query: t.HoldsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.HoldRow]:
        """List holds: the rows of all pages."""
        return self._caller.rows("GET", "/holds", {}, "query", query, "page", options)

    def get(self, hold_id: str, **options: Unpack[Options]) -> t.Hold:
        """Get a hold."""
        return cast("t.Hold", self._caller.call("GET", "/holds/{hold_id}", {"hold_id": hold_id}, "", None, "json", options))

    def approve(self, hold_id: str, body: t.HoldsApproveBody | None = None, **options: Unpack[Options]) -> t.Hold:
        """Approve what is held."""
        return cast("t.Hold", self._caller.call("POST", "/holds/{hold_id}/approve", {"hold_id": hold_id}, "body", body, "json", options))

    def reject(self, hold_id: str, body: t.HoldsRejectBody | None = None, **options: Unpack[Options]) -> t.Hold:
        """Reject what is held."""
        return cast("t.Hold", self._caller.call("POST", "/holds/{hold_id}/reject", {"hold_id": hold_id}, "body", body, "json", options))


class Identities:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, body: t.NewIdentity | None = None, **options: Unpack[Options]) -> t.Identity:
        """Create an identity."""
        return cast("t.Identity", self._caller.call("POST", "/identities", {}, "body", body, "json", options))

    def list(self, query: t.IdentitiesListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.ReducedIdentity]:
        """List identities."""
        return cast("t.Page[t.ReducedIdentity]", self._caller.call("GET", "/identities", {}, "query", query, "page", options))

    def iterate(self, query: t.IdentitiesListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.ReducedIdentity]:
        """List identities: the rows of all pages."""
        return self._caller.rows("GET", "/identities", {}, "query", query, "page", options)

    def get(self, identity_id: str, **options: Unpack[Options]) -> t.Identity:
        """Get an identity."""
        return cast("t.Identity", self._caller.call("GET", "/identities/{identity_id}", {"identity_id": identity_id}, "", None, "json", options))

    def update(self, identity_id: str, body: t.IdentityChange | None = None, **options: Unpack[Options]) -> t.Identity:
        """Change an identity."""
        return cast("t.Identity", self._caller.call("PATCH", "/identities/{identity_id}", {"identity_id": identity_id}, "body", body, "json", options))

    def delete(self, identity_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete an identity."""
        return cast("t.Deleted", self._caller.call("DELETE", "/identities/{identity_id}", {"identity_id": identity_id}, "", None, "json", options))

    def provision_phone(self, identity_id: str, body: t.PhoneWish | None = None, **options: Unpack[Options]) -> t.Identity:
        """Provision a phone number for an identity."""
        return cast("t.Identity", self._caller.call("POST", "/identities/{identity_id}/phone", {"identity_id": identity_id}, "body", body, "json", options))

    def release_phone(self, identity_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Release the phone number of an identity."""
        return cast("t.Deleted", self._caller.call("DELETE", "/identities/{identity_id}/phone", {"identity_id": identity_id}, "", None, "json", options))

    def issue_token(self, identity_id: str, body: t.TokenWish | None = None, **options: Unpack[Options]) -> t.IdentityToken:
        """Issue an identity token."""
        return cast("t.IdentityToken", self._caller.call("POST", "/identities/{identity_id}/token", {"identity_id": identity_id}, "body", body, "json", options))

    def revoke_tokens(self, identity_id: str, **options: Unpack[Options]) -> t.TokensRevoked:
        """Revoke identity tokens."""
        return cast("t.TokensRevoked", self._caller.call("POST", "/identities/{identity_id}/token/revoke", {"identity_id": identity_id}, "", None, "json", options))

    def reputation(self, identity_id: str, **options: Unpack[Options]) -> t.Reputation:
        """Get the reputation of an identity."""
        return cast("t.Reputation", self._caller.call("GET", "/identities/{identity_id}/reputation", {"identity_id": identity_id}, "", None, "json", options))

    def report(self, identity_id: str, body: t.NewReport, **options: Unpack[Options]) -> t.Report:
        """Report on a subject."""
        return cast("t.Report", self._caller.call("POST", "/identities/{identity_id}/events", {"identity_id": identity_id}, "body", body, "json", options))

    def credential(self, identity_id: str, **options: Unpack[Options]) -> t.Credential:
        """Issue a reputation credential."""
        return cast("t.Credential", self._caller.call("POST", "/identities/{identity_id}/reputation/credential", {"identity_id": identity_id}, "", None, "json", options))

    def events(self, identity_id: str, query: t.IdentitiesEventsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Event]:
        """List events."""
        return cast("t.Page[t.Event]", self._caller.call("GET", "/identities/{identity_id}/events", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate_events(self, identity_id: str, query: t.IdentitiesEventsQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Event]:
        """List events: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/events", {"identity_id": identity_id}, "query", query, "page", options)

    def messages(self, identity_id: str, query: t.IdentitiesMessagesQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Message]:
        """List all messages."""
        return cast("t.Page[t.Message]", self._caller.call("GET", "/identities/{identity_id}/messages", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate_messages(self, identity_id: str, query: t.IdentitiesMessagesQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Message]:
        """List all messages: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/messages", {"identity_id": identity_id}, "query", query, "page", options)

    def wait(self, identity_id: str, query: t.IdentitiesWaitQuery | None = None, **options: Unpack[Options]) -> t.WaitAnswer:
        """Wait for a message."""
        return cast("t.WaitAnswer", self._caller.call("GET", "/identities/{identity_id}/wait", {"identity_id": identity_id}, "query", query, "json", options))

    def export(self, identity_id: str, body: t.ExportWish | None = None, **options: Unpack[Options]) -> t.Job:
        """Export an identity."""
        return cast("t.Job", self._caller.call("POST", "/identities/{identity_id}/export", {"identity_id": identity_id}, "body", body, "json", options))

    def import_messages(self, identity_id: str, octets: bytes, **options: Unpack[Options]) -> t.Job:
        """Import messages."""
        return cast("t.Job", self._caller.call("POST", "/identities/{identity_id}/import", {"identity_id": identity_id}, "octets", octets, "json", options))

    def empty_trash(self, identity_id: str, **options: Unpack[Options]) -> t.Emptied:
        """Empty the trash of an identity."""
        return cast("t.Emptied", self._caller.call("POST", "/identities/{identity_id}/trash/empty", {"identity_id": identity_id}, "", None, "json", options))


class Jobs:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(self, query: t.JobsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Job]:
        """List jobs."""
        return cast("t.Page[t.Job]", self._caller.call("GET", "/jobs", {}, "query", query, "page", options))

    def iterate(self, query: t.JobsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Job]:
        """List jobs: the rows of all pages."""
        return self._caller.rows("GET", "/jobs", {}, "query", query, "page", options)

    def get(self, job_id: str, **options: Unpack[Options]) -> t.Job:
        """Get a job."""
        return cast("t.Job", self._caller.call("GET", "/jobs/{job_id}", {"job_id": job_id}, "", None, "json", options))

    def cancel(self, job_id: str, **options: Unpack[Options]) -> t.Job:
        """Cancel a job."""
        return cast("t.Job", self._caller.call("POST", "/jobs/{job_id}/cancel", {"job_id": job_id}, "", None, "json", options))

    def delete(self, job_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete a job."""
        return cast("t.Deleted", self._caller.call("DELETE", "/jobs/{job_id}", {"job_id": job_id}, "", None, "json", options))


class Policy:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, **options: Unpack[Options]) -> t.Policy:
        """Get what may leave the account."""
        return cast("t.Policy", self._caller.call("GET", "/policy", {}, "", None, "json", options))

    def update(self, body: t.PolicyInput | None = None, **options: Unpack[Options]) -> t.Policy:
        """Change what may leave the account."""
        return cast("t.Policy", self._caller.call("PATCH", "/policy", {}, "body", body, "json", options))

    def get_of_identity(self, identity_id: str, **options: Unpack[Options]) -> t.Policy:
        """Get what may leave an identity."""
        return cast("t.Policy", self._caller.call("GET", "/identities/{identity_id}/policy", {"identity_id": identity_id}, "", None, "json", options))

    def update_of_identity(self, identity_id: str, body: t.PolicyInput | None = None, **options: Unpack[Options]) -> t.Policy:
        """Change what may leave an identity."""
        return cast("t.Policy", self._caller.call("PATCH", "/identities/{identity_id}/policy", {"identity_id": identity_id}, "body", body, "json", options))


class Queue:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(self, query: t.QueueListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.QueueEntry]:
        """List the queue."""
        return cast("t.Page[t.QueueEntry]", self._caller.call("GET", "/queue", {}, "query", query, "page", options))

    def iterate(self, query: t.QueueListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.QueueEntry]:
        """List the queue: the rows of all pages."""
        return self._caller.rows("GET", "/queue", {}, "query", query, "page", options)

    def summary(self, **options: Unpack[Options]) -> t.QueueSummary:
        """Summarize the queue."""
        return cast("t.QueueSummary", self._caller.call("GET", "/queue/summary", {}, "", None, "json", options))

    def get(self, queue_id: str, **options: Unpack[Options]) -> t.QueueEntryWithHistory:
        """Get a delivery of the queue."""
        return cast("t.QueueEntryWithHistory", self._caller.call("GET", "/queue/{queue_id}", {"queue_id": queue_id}, "", None, "json", options))

    def retry(self, queue_id: str, **options: Unpack[Options]) -> t.QueueEntryWithHistory:
        """Retry a delivery of the queue now."""
        return cast("t.QueueEntryWithHistory", self._caller.call("POST", "/queue/{queue_id}/retry", {"queue_id": queue_id}, "", None, "json", options))

    def delete(self, queue_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Drop a delivery of the queue."""
        return cast("t.Deleted", self._caller.call("DELETE", "/queue/{queue_id}", {"queue_id": queue_id}, "", None, "json", options))


class Realtime:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def token(self, body: t.RealtimeTokenWish | None = None, **options: Unpack[Options]) -> t.RealtimeToken:
        """Get a token for a WebSocket."""
        return cast("t.RealtimeToken", self._caller.call("POST", "/realtime/token", {}, "body", body, "json", options))


class Senders:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, **options: Unpack[Options]) -> t.SenderRules:
        """Get who may write to the account."""
        return cast("t.SenderRules", self._caller.call("GET", "/senders", {}, "", None, "json", options))

    def update(self, body: t.SenderRulesInput | None = None, **options: Unpack[Options]) -> t.SenderRules:
        """Change who may write to the account."""
        return cast("t.SenderRules", self._caller.call("PATCH", "/senders", {}, "body", body, "json", options))

    def get_of_identity(self, identity_id: str, **options: Unpack[Options]) -> t.SenderRules:
        """Get who may write to an identity."""
        return cast("t.SenderRules", self._caller.call("GET", "/identities/{identity_id}/senders", {"identity_id": identity_id}, "", None, "json", options))

    def update_of_identity(self, identity_id: str, body: t.SenderRulesInput | None = None, **options: Unpack[Options]) -> t.SenderRules:
        """Change who may write to an identity."""
        return cast("t.SenderRules", self._caller.call("PATCH", "/identities/{identity_id}/senders", {"identity_id": identity_id}, "body", body, "json", options))


class SigningKeys:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def rotate(self, body: t.KeyRotation | None = None, **options: Unpack[Options]) -> t.KeyRotated:
        """Rotate the signing keys."""
        return cast("t.KeyRotated", self._caller.call("POST", "/signing-keys/rotate", {}, "body", body, "json", options))


class Sms:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def send(self, identity_id: str, body: t.NewSms, **options: Unpack[Options]) -> t.Sms:
        """Send an SMS."""
        return cast("t.Sms", self._caller.call("POST", "/identities/{identity_id}/sms", {"identity_id": identity_id}, "body", body, "json", options))

    def list(self, identity_id: str, query: t.SmsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Sms]:
        """List SMS."""
        return cast("t.Page[t.Sms]", self._caller.call("GET", "/identities/{identity_id}/sms", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.SmsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Sms]:
        """List SMS: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/sms", {"identity_id": identity_id}, "query", query, "page", options)

    def get(self, identity_id: str, sms_id: str, **options: Unpack[Options]) -> t.Sms:
        """Get an SMS."""
        return cast("t.Sms", self._caller.call("GET", "/identities/{identity_id}/sms/{sms_id}", {"identity_id": identity_id, "sms_id": sms_id}, "", None, "json", options))

    def update(self, identity_id: str, sms_id: str, body: t.SmsChange | None = None, **options: Unpack[Options]) -> t.Sms:
        """Mark an SMS as read or unread."""
        return cast("t.Sms", self._caller.call("PATCH", "/identities/{identity_id}/sms/{sms_id}", {"identity_id": identity_id, "sms_id": sms_id}, "body", body, "json", options))

    def delete(self, identity_id: str, sms_id: str, query: t.SmsDeleteQuery | None = None, **options: Unpack[Options]) -> t.Deleted:
        """Delete an SMS."""
        return cast("t.Deleted", self._caller.call("DELETE", "/identities/{identity_id}/sms/{sms_id}", {"identity_id": identity_id, "sms_id": sms_id}, "query", query, "json", options))

    def restore(self, identity_id: str, sms_id: str, **options: Unpack[Options]) -> t.Sms:
        """Restore an SMS."""
        return cast("t.Sms", self._caller.call("POST", "/identities/{identity_id}/sms/{sms_id}/restore", {"identity_id": identity_id, "sms_id": sms_id}, "", None, "json", options))

    def media(self, identity_id: str, sms_id: str, index: int, **options: Unpack[Options]) -> t.SmsMediaWithUrl:
        """Get the URL of a picture."""
        return cast("t.SmsMediaWithUrl", self._caller.call("GET", "/identities/{identity_id}/sms/{sms_id}/media/{index}", {"identity_id": identity_id, "sms_id": sms_id, "index": index}, "", None, "json", options))

    def inject(self, body: t.InjectedSms, **options: Unpack[Options]) -> t.Sms:
        """Send a message to the loopback provider."""
        return cast("t.Sms", self._caller.call("POST", "/sms/loopback/inject", {}, "body", body, "json", options))


class Suppressions:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(self, query: t.SuppressionsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Suppression]:
        """List suppressions."""
        return cast("t.Page[t.Suppression]", self._caller.call("GET", "/suppressions", {}, "query", query, "page", options))

    def iterate(self, query: t.SuppressionsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Suppression]:
        """List suppressions: the rows of all pages."""
        return self._caller.rows("GET", "/suppressions", {}, "query", query, "page", options)

    def create(self, body: t.NewSuppression, **options: Unpack[Options]) -> t.Suppression:
        """Suppress an address."""
        return cast("t.Suppression", self._caller.call("POST", "/suppressions", {}, "body", body, "json", options))

    def delete(self, suppression_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Lift a suppression."""
        return cast("t.Deleted", self._caller.call("DELETE", "/suppressions/{suppression_id}", {"suppression_id": suppression_id}, "", None, "json", options))


class Threads:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(self, identity_id: str, query: t.ThreadsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Thread]:
        """List threads."""
        return cast("t.Page[t.Thread]", self._caller.call("GET", "/identities/{identity_id}/threads", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.ThreadsListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Thread]:
        """List threads: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/threads", {"identity_id": identity_id}, "query", query, "page", options)

    def get(self, identity_id: str, thread_id: str, query: t.ThreadsGetQuery | None = None, **options: Unpack[Options]) -> t.ThreadWithMessages:
        """Get a thread."""
        return cast("t.ThreadWithMessages", self._caller.call("GET", "/identities/{identity_id}/threads/{thread_id}", {"identity_id": identity_id, "thread_id": thread_id}, "query", query, "json", options))


class Tokens:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def verify(self, body: t.TokenQuestion, **options: Unpack[Options]) -> t.VerifiedToken:
        """Verify an identity token."""
        return cast("t.VerifiedToken", self._caller.call("POST", "/verify/token", {}, "body", body, "json", options))


class Totp:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, identity_id: str, body: t.NewTotpEntry | None = None, **options: Unpack[Options]) -> t.TotpEntry:
        """Create a one-time password."""
        return cast("t.TotpEntry", self._caller.call("POST", "/identities/{identity_id}/totp", {"identity_id": identity_id}, "body", body, "json", options))

    def list(self, identity_id: str, query: t.TotpListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.TotpEntry]:
        """List one-time passwords."""
        return cast("t.Page[t.TotpEntry]", self._caller.call("GET", "/identities/{identity_id}/totp", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.TotpListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.TotpEntry]:
        """List one-time passwords: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/totp", {"identity_id": identity_id}, "query", query, "page", options)

    def get(self, identity_id: str, totp_id: str, **options: Unpack[Options]) -> t.TotpEntry:
        """Get a one-time password."""
        return cast("t.TotpEntry", self._caller.call("GET", "/identities/{identity_id}/totp/{totp_id}", {"identity_id": identity_id, "totp_id": totp_id}, "", None, "json", options))

    def code(self, identity_id: str, totp_id: str, query: t.TotpCodeQuery | None = None, **options: Unpack[Options]) -> t.TotpCode:
        """Read the code."""
        return cast("t.TotpCode", self._caller.call("GET", "/identities/{identity_id}/totp/{totp_id}/code", {"identity_id": identity_id, "totp_id": totp_id}, "query", query, "json", options))

    def delete(self, identity_id: str, totp_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete a one-time password."""
        return cast("t.Deleted", self._caller.call("DELETE", "/identities/{identity_id}/totp/{totp_id}", {"identity_id": identity_id, "totp_id": totp_id}, "", None, "json", options))


class Trust:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def evaluate(self, body: t.TrustQuestion | None = None, **options: Unpack[Options]) -> t.TrustEvaluation:
        """Evaluate trust."""
        return cast("t.TrustEvaluation", self._caller.call("POST", "/trust/evaluate", {}, "body", body, "json", options))


class Webhooks:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, body: t.NewWebhook, **options: Unpack[Options]) -> t.WebhookWithSecret:
        """Create a webhook."""
        return cast("t.WebhookWithSecret", self._caller.call("POST", "/webhooks", {}, "body", body, "json", options))

    def list(self, query: t.WebhooksListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Webhook]:
        """List webhooks."""
        return cast("t.Page[t.Webhook]", self._caller.call("GET", "/webhooks", {}, "query", query, "page", options))

    def iterate(self, query: t.WebhooksListQuery | None = None, **options: Unpack[Options]) -> Iterator[t.Webhook]:
        """List webhooks: the rows of all pages."""
        return self._caller.rows("GET", "/webhooks", {}, "query", query, "page", options)

    def get(self, webhook_id: str, **options: Unpack[Options]) -> t.Webhook:
        """Get a webhook."""
        return cast("t.Webhook", self._caller.call("GET", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}, "", None, "json", options))

    def update(self, webhook_id: str, body: t.WebhookChange | None = None, **options: Unpack[Options]) -> t.Webhook:
        """Change a webhook."""
        return cast("t.Webhook", self._caller.call("PATCH", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}, "body", body, "json", options))

    def delete(self, webhook_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete a webhook."""
        return cast("t.Deleted", self._caller.call("DELETE", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}, "", None, "json", options))

    def deliveries(self, webhook_id: str, query: t.WebhooksDeliveriesQuery | None = None, **options: Unpack[Options]) -> t.Page[t.WebhookDelivery]:
        """List deliveries of a webhook."""
        return cast("t.Page[t.WebhookDelivery]", self._caller.call("GET", "/webhooks/{webhook_id}/deliveries", {"webhook_id": webhook_id}, "query", query, "page", options))

    def iterate_deliveries(self, webhook_id: str, query: t.WebhooksDeliveriesQuery | None = None, **options: Unpack[Options]) -> Iterator[t.WebhookDelivery]:
        """List deliveries of a webhook: the rows of all pages."""
        return self._caller.rows("GET", "/webhooks/{webhook_id}/deliveries", {"webhook_id": webhook_id}, "query", query, "page", options)

    def delivery(self, webhook_id: str, delivery_id: str, **options: Unpack[Options]) -> t.WebhookDeliveryWithRequest:
        """Get a delivery of a webhook."""
        return cast("t.WebhookDeliveryWithRequest", self._caller.call("GET", "/webhooks/{webhook_id}/deliveries/{delivery_id}", {"webhook_id": webhook_id, "delivery_id": delivery_id}, "", None, "json", options))

    def redeliver(self, webhook_id: str, delivery_id: str, **options: Unpack[Options]) -> t.WebhookDelivery:
        """Redeliver an event."""
        return cast("t.WebhookDelivery", self._caller.call("POST", "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", {"webhook_id": webhook_id, "delivery_id": delivery_id}, "", None, "json", options))

    def test(self, webhook_id: str, **options: Unpack[Options]) -> t.WebhookDelivery:
        """Send a test event."""
        return cast("t.WebhookDelivery", self._caller.call("POST", "/webhooks/{webhook_id}/test", {"webhook_id": webhook_id}, "", None, "json", options))

    def rotate_secret(self, webhook_id: str, body: t.SecretRotation | None = None, **options: Unpack[Options]) -> t.WebhookWithSecret:
        """Rotate the secret of a webhook."""
        return cast("t.WebhookWithSecret", self._caller.call("POST", "/webhooks/{webhook_id}/secret/rotate", {"webhook_id": webhook_id}, "body", body, "json", options))


class Methods:
    """The methods, by group."""

    def __init__(self, caller: Caller) -> None:
        self.account = Account(caller)
        self.accounts = Accounts(caller)
        self.agents = Agents(caller)
        self.aliases = Aliases(caller)
        self.api_keys = ApiKeys(caller)
        self.backups = Backups(caller)
        self.billing = Billing(caller)
        self.box = Box(caller)
        self.cards = Cards(caller)
        self.certificates = Certificates(caller)
        self.doctor = Doctor(caller)
        self.domains = Domains(caller)
        self.emails = Emails(caller)
        self.holds = Holds(caller)
        self.identities = Identities(caller)
        self.jobs = Jobs(caller)
        self.policy = Policy(caller)
        self.queue = Queue(caller)
        self.realtime = Realtime(caller)
        self.senders = Senders(caller)
        self.signing_keys = SigningKeys(caller)
        self.sms = Sms(caller)
        self.suppressions = Suppressions(caller)
        self.threads = Threads(caller)
        self.tokens = Tokens(caller)
        self.totp = Totp(caller)
        self.trust = Trust(caller)
        self.webhooks = Webhooks(caller)


class AsyncAccount:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def sessions(self, query: t.AccountSessionsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.SessionEntry]:
        """List sessions."""
        return cast("t.Page[t.SessionEntry]", await self._caller.call("GET", "/account/sessions", {}, "query", query, "page", options))

    def iterate_sessions(self, query: t.AccountSessionsQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.SessionEntry]:
        """List sessions: the rows of all pages."""
        return self._caller.rows("GET", "/account/sessions", {}, "query", query, "page", options)

    async def end_sessions(self, **options: Unpack[Options]) -> t.SessionsEnded:
        """Sign out everywhere."""
        return cast("t.SessionsEnded", await self._caller.call("DELETE", "/account/sessions", {}, "", None, "json", options))

    async def get(self, **options: Unpack[Options]) -> t.Account:
        """Get the account."""
        return cast("t.Account", await self._caller.call("GET", "/account", {}, "", None, "json", options))

    async def whoami(self, **options: Unpack[Options]) -> t.WhoAmI:
        """Get the caller."""
        return cast("t.WhoAmI", await self._caller.call("GET", "/whoami", {}, "", None, "json", options))

    async def events(self, query: t.AccountEventsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Event]:
        """List events of the account."""
        return cast("t.Page[t.Event]", await self._caller.call("GET", "/events", {}, "query", query, "page", options))

    def iterate_events(self, query: t.AccountEventsQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Event]:
        """List events of the account: the rows of all pages."""
        return self._caller.rows("GET", "/events", {}, "query", query, "page", options)


class AsyncAccounts:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(self, query: t.AccountsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Account]:
        """List the accounts of the box."""
        return cast("t.Page[t.Account]", await self._caller.call("GET", "/accounts", {}, "query", query, "page", options))

    def iterate(self, query: t.AccountsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Account]:
        """List the accounts of the box: the rows of all pages."""
        return self._caller.rows("GET", "/accounts", {}, "query", query, "page", options)

    async def create(self, body: t.AccountWish, **options: Unpack[Options]) -> t.Account:
        """Add an account."""
        return cast("t.Account", await self._caller.call("POST", "/accounts", {}, "body", body, "json", options))


class AsyncAgents:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(self, body: t.NewAgent, **options: Unpack[Options]) -> t.Agent:
        """Create an agent."""
        return cast("t.Agent", await self._caller.call("POST", "/agents", {}, "body", body, "json", options))

    async def list(self, query: t.AgentsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Agent]:
        """List agents."""
        return cast("t.Page[t.Agent]", await self._caller.call("GET", "/agents", {}, "query", query, "page", options))

    def iterate(self, query: t.AgentsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Agent]:
        """List agents: the rows of all pages."""
        return self._caller.rows("GET", "/agents", {}, "query", query, "page", options)

    async def get(self, agent_id: str, **options: Unpack[Options]) -> t.Agent:
        """Get an agent."""
        return cast("t.Agent", await self._caller.call("GET", "/agents/{agent_id}", {"agent_id": agent_id}, "", None, "json", options))

    async def update(self, agent_id: str, body: t.AgentChange | None = None, **options: Unpack[Options]) -> t.Agent:
        """Change an agent."""
        return cast("t.Agent", await self._caller.call("PATCH", "/agents/{agent_id}", {"agent_id": agent_id}, "body", body, "json", options))

    async def delete(self, agent_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete an agent."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/agents/{agent_id}", {"agent_id": agent_id}, "", None, "json", options))

    async def add_erc8004(self, agent_id: str, body: t.NewErc8004Link, **options: Unpack[Options]) -> t.Erc8004Link:
        """Link an agent to ERC-8004."""
        return cast("t.Erc8004Link", await self._caller.call("POST", "/agents/{agent_id}/erc8004", {"agent_id": agent_id}, "body", body, "json", options))

    async def erc8004(self, agent_id: str, query: t.AgentsErc8004Query | None = None, **options: Unpack[Options]) -> t.Page[t.Erc8004Link]:
        """List ERC-8004 links."""
        return cast("t.Page[t.Erc8004Link]", await self._caller.call("GET", "/agents/{agent_id}/erc8004", {"agent_id": agent_id}, "query", query, "page", options))

    def iterate_erc8004(self, agent_id: str, query: t.AgentsErc8004Query | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Erc8004Link]:
        """List ERC-8004 links: the rows of all pages."""
        return self._caller.rows("GET", "/agents/{agent_id}/erc8004", {"agent_id": agent_id}, "query", query, "page", options)

    async def remove_erc8004(self, agent_id: str, link_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Remove an ERC-8004 link."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/agents/{agent_id}/erc8004/{link_id}", {"agent_id": agent_id, "link_id": link_id}, "", None, "json", options))

    async def reputation(self, agent_id: str, **options: Unpack[Options]) -> t.Reputation:
        """Get the reputation of an agent."""
        return cast("t.Reputation", await self._caller.call("GET", "/agents/{agent_id}/reputation", {"agent_id": agent_id}, "", None, "json", options))


class AsyncAliases:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(self, domain_id: str, body: t.NewAlias, **options: Unpack[Options]) -> t.Alias:
        """Add an alias."""
        return cast("t.Alias", await self._caller.call("POST", "/domains/{domain_id}/aliases", {"domain_id": domain_id}, "body", body, "json", options))

    async def list(self, domain_id: str, query: t.AliasesListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Alias]:
        """List aliases."""
        return cast("t.Page[t.Alias]", await self._caller.call("GET", "/domains/{domain_id}/aliases", {"domain_id": domain_id}, "query", query, "page", options))

    def iterate(self, domain_id: str, query: t.AliasesListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Alias]:
        """List aliases: the rows of all pages."""
        return self._caller.rows("GET", "/domains/{domain_id}/aliases", {"domain_id": domain_id}, "query", query, "page", options)

    async def get(self, domain_id: str, alias_id: str, **options: Unpack[Options]) -> t.Alias:
        """Get an alias."""
        return cast("t.Alias", await self._caller.call("GET", "/domains/{domain_id}/aliases/{alias_id}", {"domain_id": domain_id, "alias_id": alias_id}, "", None, "json", options))

    async def update(self, domain_id: str, alias_id: str, body: t.AliasChange | None = None, **options: Unpack[Options]) -> t.Alias:
        """Change an alias."""
        return cast("t.Alias", await self._caller.call("PATCH", "/domains/{domain_id}/aliases/{alias_id}", {"domain_id": domain_id, "alias_id": alias_id}, "body", body, "json", options))

    async def delete(self, domain_id: str, alias_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete an alias."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/domains/{domain_id}/aliases/{alias_id}", {"domain_id": domain_id, "alias_id": alias_id}, "", None, "json", options))


class AsyncApiKeys:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(self, body: t.NewApiKey | None = None, **options: Unpack[Options]) -> t.ApiKeyWithSecret:
        """Create an API key."""
        return cast("t.ApiKeyWithSecret", await self._caller.call("POST", "/api-keys", {}, "body", body, "json", options))

    async def list(self, query: t.ApiKeysListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.ApiKey]:
        """List API keys."""
        return cast("t.Page[t.ApiKey]", await self._caller.call("GET", "/api-keys", {}, "query", query, "page", options))

    def iterate(self, query: t.ApiKeysListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.ApiKey]:
        """List API keys: the rows of all pages."""
        return self._caller.rows("GET", "/api-keys", {}, "query", query, "page", options)

    async def rotate(self, api_key_id: str, body: t.Rotation | None = None, **options: Unpack[Options]) -> t.ApiKeyWithSecret:
        """Rotate the secret of a key."""
        return cast("t.ApiKeyWithSecret", await self._caller.call("POST", "/api-keys/{api_key_id}/rotate", {"api_key_id": api_key_id}, "body", body, "json", options))

    async def revoke(self, api_key_id: str, query: t.ApiKeysRevokeQuery | None = None, **options: Unpack[Options]) -> t.KeyRevoked:
        """Revoke an API key."""
        return cast("t.KeyRevoked", await self._caller.call("DELETE", "/api-keys/{api_key_id}", {"api_key_id": api_key_id}, "query", query, "json", options))


class AsyncBackups:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(self, **options: Unpack[Options]) -> t.Job:
        """Create a backup."""
        return cast("t.Job", await self._caller.call("POST", "/backups", {}, "", None, "json", options))

    async def list(self, query: t.BackupsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Backup]:
        """List backups."""
        return cast("t.Page[t.Backup]", await self._caller.call("GET", "/backups", {}, "query", query, "page", options))

    def iterate(self, query: t.BackupsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Backup]:
        """List backups: the rows of all pages."""
        return self._caller.rows("GET", "/backups", {}, "query", query, "page", options)


class AsyncBilling:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def subscription(self, **options: Unpack[Options]) -> t.Subscription:
        """Get the subscription."""
        return cast("t.Subscription", await self._caller.call("GET", "/billing/subscription", {}, "", None, "json", options))


class AsyncBox:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def stats(self, query: t.BoxStatsQuery | None = None, **options: Unpack[Options]) -> t.Stats:
        """Get the activity of the box."""
        return cast("t.Stats", await self._caller.call("GET", "/stats", {}, "query", query, "json", options))

    async def status(self, **options: Unpack[Options]) -> t.Status:
        """Get the status of the box."""
        return cast("t.Status", await self._caller.call("GET", "/status", {}, "", None, "json", options))

    async def reload(self, **options: Unpack[Options]) -> t.Reloaded:
        """Reload the settings."""
        return cast("t.Reloaded", await self._caller.call("POST", "/reload", {}, "", None, "json", options))


class AsyncCards:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(self, identity_id: str, body: t.NewCard | dict[str, Any], **options: Unpack[Options]) -> t.Card:
        """Store a card."""
        return cast("t.Card", await self._caller.call("POST", "/identities/{identity_id}/cards", {"identity_id": identity_id}, "body", body, "json", options))

    async def list(self, identity_id: str, query: t.CardsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Card]:
        """List cards."""
        return cast("t.Page[t.Card]", await self._caller.call("GET", "/identities/{identity_id}/cards", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.CardsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Card]:
        """List cards: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/cards", {"identity_id": identity_id}, "query", query, "page", options)

    async def get(self, card_id: str, **options: Unpack[Options]) -> t.Card:
        """Get a card."""
        return cast("t.Card", await self._caller.call("GET", "/cards/{card_id}", {"card_id": card_id}, "", None, "json", options))

    async def reveal(self, card_id: str, body: t.RevealWish | None = None, **options: Unpack[Options]) -> t.Revealed:
        """Reveal a card."""
        return cast("t.Revealed", await self._caller.call("POST", "/cards/{card_id}/reveal", {"card_id": card_id}, "body", body, "json", options))

    async def freeze(self, card_id: str, **options: Unpack[Options]) -> t.Card:
        """Freeze a card."""
        return cast("t.Card", await self._caller.call("POST", "/cards/{card_id}/freeze", {"card_id": card_id}, "", None, "json", options))

    async def unfreeze(self, card_id: str, **options: Unpack[Options]) -> t.Card:
        """Unfreeze a card."""
        return cast("t.Card", await self._caller.call("POST", "/cards/{card_id}/unfreeze", {"card_id": card_id}, "", None, "json", options))

    async def cancel(self, card_id: str, **options: Unpack[Options]) -> t.Card:
        """Cancel a card."""
        return cast("t.Card", await self._caller.call("POST", "/cards/{card_id}/cancel", {"card_id": card_id}, "", None, "json", options))

    async def limits(self, card_id: str, **options: Unpack[Options]) -> t.CardLimits:
        """Get a card's limits."""
        return cast("t.CardLimits", await self._caller.call("GET", "/cards/{card_id}/limits", {"card_id": card_id}, "", None, "json", options))

    async def update_limits(self, card_id: str, body: t.LimitsChange | None = None, **options: Unpack[Options]) -> t.CardLimits:
        """Change a card's limits."""
        return cast("t.CardLimits", await self._caller.call("PATCH", "/cards/{card_id}/limits", {"card_id": card_id}, "body", body, "json", options))

    async def transactions(self, card_id: str, query: t.CardsTransactionsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.CardTransaction]:
        """List a card's transactions."""
        return cast("t.Page[t.CardTransaction]", await self._caller.call("GET", "/cards/{card_id}/transactions", {"card_id": card_id}, "query", query, "page", options))

    def iterate_transactions(self, card_id: str, query: t.CardsTransactionsQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.CardTransaction]:
        """List a card's transactions: the rows of all pages."""
        return self._caller.rows("GET", "/cards/{card_id}/transactions", {"card_id": card_id}, "query", query, "page", options)

    async def report(self, card_id: str, body: t.NewTransaction, **options: Unpack[Options]) -> t.CardTransaction:
        """Record spending."""
        return cast("t.CardTransaction", await self._caller.call("POST", "/cards/{card_id}/transactions", {"card_id": card_id}, "body", body, "json", options))


class AsyncCertificates:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(self, **options: Unpack[Options]) -> dict[str, Any]:
        """List certificates."""
        return cast("dict[str, Any]", await self._caller.call("GET", "/certificates", {}, "", None, "json", options))

    async def renew(self, body: t.CertificateRenewal | None = None, **options: Unpack[Options]) -> dict[str, Any]:
        """Renew certificates."""
        return cast("dict[str, Any]", await self._caller.call("POST", "/certificates/renew", {}, "body", body, "json", options))


class AsyncDoctor:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def get(self, **options: Unpack[Options]) -> t.DoctorReport:
        """Get the last results of the doctor."""
        return cast("t.DoctorReport", await self._caller.call("GET", "/doctor", {}, "", None, "json", options))

    async def run(self, **options: Unpack[Options]) -> t.DoctorReport:
        """Run all checks of the doctor."""
        return cast("t.DoctorReport", await self._caller.call("POST", "/doctor", {}, "", None, "json", options))


class AsyncDomains:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def update(self, domain_id: str, body: t.DomainChange | None = None, **options: Unpack[Options]) -> t.Domain:
        """Change a domain."""
        return cast("t.Domain", await self._caller.call("PATCH", "/domains/{domain_id}", {"domain_id": domain_id}, "body", body, "json", options))

    async def create(self, body: t.NewDomain | None = None, **options: Unpack[Options]) -> t.Domain:
        """Add a domain."""
        return cast("t.Domain", await self._caller.call("POST", "/domains", {}, "body", body, "json", options))

    async def list(self, query: t.DomainsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Domain]:
        """List domains."""
        return cast("t.Page[t.Domain]", await self._caller.call("GET", "/domains", {}, "query", query, "page", options))

    def iterate(self, query: t.DomainsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Domain]:
        """List domains: the rows of all pages."""
        return self._caller.rows("GET", "/domains", {}, "query", query, "page", options)

    async def get(self, domain_id: str, **options: Unpack[Options]) -> t.Domain:
        """Get a domain."""
        return cast("t.Domain", await self._caller.call("GET", "/domains/{domain_id}", {"domain_id": domain_id}, "", None, "json", options))

    async def delete(self, domain_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete a domain."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/domains/{domain_id}", {"domain_id": domain_id}, "", None, "json", options))

    async def verify(self, domain_id: str, **options: Unpack[Options]) -> t.Domain:
        """Verify a domain."""
        return cast("t.Domain", await self._caller.call("POST", "/domains/{domain_id}/verify", {"domain_id": domain_id}, "", None, "json", options))

    async def rotate_keys(self, domain_id: str, **options: Unpack[Options]) -> t.Domain:
        """Rotate the DKIM keys."""
        return cast("t.Domain", await self._caller.call("POST", "/domains/{domain_id}/dkim/rotate", {"domain_id": domain_id}, "", None, "json", options))

    async def zone(self, domain_id: str, **options: Unpack[Options]) -> str:
        """Get a domain's records as a zone file."""
        return cast("str", await self._caller.call("GET", "/domains/{domain_id}/zone", {"domain_id": domain_id}, "", None, "text", options))

    async def reports(self, domain_id: str, query: t.DomainsReportsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.DomainReport]:
        """List reports about a domain."""
        return cast("t.Page[t.DomainReport]", await self._caller.call("GET", "/domains/{domain_id}/reports", {"domain_id": domain_id}, "query", query, "page", options))

    def iterate_reports(self, domain_id: str, query: t.DomainsReportsQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.DomainReport]:
        """List reports about a domain: the rows of all pages."""
        return self._caller.rows("GET", "/domains/{domain_id}/reports", {"domain_id": domain_id}, "query", query, "page", options)


class AsyncEmails:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(self, identity_id: str, query: t.EmailsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.EmailRow]:
        """List e-mails."""
        return cast("t.Page[t.EmailRow]", await self._caller.call("GET", "/identities/{identity_id}/emails", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.EmailsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.EmailRow]:
        """List e-mails: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/emails", {"identity_id": identity_id}, "query", query, "page", options)

    async def search(self, identity_id: str, query: t.EmailsSearchQuery | None = None, **options: Unpack[Options]) -> t.Page[t.EmailRow]:
        """Search e-mails."""
        return cast("t.Page[t.EmailRow]", await self._caller.call("GET", "/identities/{identity_id}/emails/search", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate_search(self, identity_id: str, query: t.EmailsSearchQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.EmailRow]:
        """Search e-mails: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/emails/search", {"identity_id": identity_id}, "query", query, "page", options)

    async def update_many(self, identity_id: str, body: t.BulkChange | None = None, **options: Unpack[Options]) -> t.BulkResult:
        """Change many e-mails."""
        return cast("t.BulkResult", await self._caller.call("POST", "/identities/{identity_id}/emails/bulk", {"identity_id": identity_id}, "body", body, "json", options))

    async def get(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> t.Email:
        """Get an e-mail."""
        return cast("t.Email", await self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}", {"identity_id": identity_id, "email_id": email_id}, "", None, "json", options))

    async def update(self, identity_id: str, email_id: str, body: t.EmailChange | None = None, **options: Unpack[Options]) -> t.Email:
        """Change an e-mail."""
        return cast("t.Email", await self._caller.call("PATCH", "/identities/{identity_id}/emails/{email_id}", {"identity_id": identity_id, "email_id": email_id}, "body", body, "json", options))

    async def delete(self, identity_id: str, email_id: str, query: t.EmailsDeleteQuery | None = None, **options: Unpack[Options]) -> t.Deleted:
        """Delete an e-mail."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/identities/{identity_id}/emails/{email_id}", {"identity_id": identity_id, "email_id": email_id}, "query", query, "json", options))

    async def restore(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> t.Email:
        """Restore an e-mail."""
        return cast("t.Email", await self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/restore", {"identity_id": identity_id, "email_id": email_id}, "", None, "json", options))

    async def raw(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> bytes:
        """Get the source of an e-mail."""
        return cast("bytes", await self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/raw", {"identity_id": identity_id, "email_id": email_id}, "", None, "octets", options))

    async def html(self, identity_id: str, email_id: str, query: t.EmailsHtmlQuery | None = None, **options: Unpack[Options]) -> str:
        """Get an e-mail as an HTML page."""
        return cast("str", await self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/html", {"identity_id": identity_id, "email_id": email_id}, "query", query, "text", options))

    async def attachments(self, identity_id: str, email_id: str, query: t.EmailsAttachmentsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Attachment]:
        """List attachments."""
        return cast("t.Page[t.Attachment]", await self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/attachments", {"identity_id": identity_id, "email_id": email_id}, "query", query, "page", options))

    def iterate_attachments(self, identity_id: str, email_id: str, query: t.EmailsAttachmentsQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Attachment]:
        """List attachments: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/emails/{email_id}/attachments", {"identity_id": identity_id, "email_id": email_id}, "query", query, "page", options)

    async def attachment(self, identity_id: str, email_id: str, index: int, **options: Unpack[Options]) -> t.AttachmentWithUrl:
        """Get an attachment’s URL."""
        return cast("t.AttachmentWithUrl", await self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/attachments/{index}", {"identity_id": identity_id, "email_id": email_id, "index": index}, "", None, "json", options))

    async def attachment_text(self, identity_id: str, email_id: str, index: int, query: t.EmailsAttachmentTextQuery | None = None, **options: Unpack[Options]) -> t.AttachmentText:
        """Get the text of an attachment."""
        return cast("t.AttachmentText", await self._caller.call("GET", "/identities/{identity_id}/emails/{email_id}/attachments/{index}/text", {"identity_id": identity_id, "email_id": email_id, "index": index}, "query", query, "json", options))

    async def release(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> t.Email:
        """Release an e-mail that was set aside."""
        return cast("t.Email", await self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/release", {"identity_id": identity_id, "email_id": email_id}, "", None, "json", options))

    async def send(self, identity_id: str, body: t.NewEmail, **options: Unpack[Options]) -> t.Email:
        """Send an e-mail."""
        return cast("t.Email", await self._caller.call("POST", "/identities/{identity_id}/emails", {"identity_id": identity_id}, "body", body, "json", options))

    async def reply(self, identity_id: str, email_id: str, body: t.NewReply | None = None, **options: Unpack[Options]) -> t.Email:
        """Reply to an e-mail."""
        return cast("t.Email", await self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/reply", {"identity_id": identity_id, "email_id": email_id}, "body", body, "json", options))

    async def forward(self, identity_id: str, email_id: str, body: t.NewForward, **options: Unpack[Options]) -> t.Email:
        """Forward an e-mail."""
        return cast("t.Email", await self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/forward", {"identity_id": identity_id, "email_id": email_id}, "body", body, "json", options))

    async def cancel(self, identity_id: str, email_id: str, **options: Unpack[Options]) -> t.Email:
        """Cancel an e-mail."""
        return cast("t.Email", await self._caller.call("POST", "/identities/{identity_id}/emails/{email_id}/cancel", {"identity_id": identity_id, "email_id": email_id}, "", None, "json", options))


class AsyncHolds:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(self, query: t.HoldsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.HoldRow]:
        """List holds."""
        return cast("t.Page[t.HoldRow]", await self._caller.call("GET", "/holds", {}, "query", query, "page", options))

    def iterate(self, query: t.HoldsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.HoldRow]:
        """List holds: the rows of all pages."""
        return self._caller.rows("GET", "/holds", {}, "query", query, "page", options)

    async def get(self, hold_id: str, **options: Unpack[Options]) -> t.Hold:
        """Get a hold."""
        return cast("t.Hold", await self._caller.call("GET", "/holds/{hold_id}", {"hold_id": hold_id}, "", None, "json", options))

    async def approve(self, hold_id: str, body: t.HoldsApproveBody | None = None, **options: Unpack[Options]) -> t.Hold:
        """Approve what is held."""
        return cast("t.Hold", await self._caller.call("POST", "/holds/{hold_id}/approve", {"hold_id": hold_id}, "body", body, "json", options))

    async def reject(self, hold_id: str, body: t.HoldsRejectBody | None = None, **options: Unpack[Options]) -> t.Hold:
        """Reject what is held."""
        return cast("t.Hold", await self._caller.call("POST", "/holds/{hold_id}/reject", {"hold_id": hold_id}, "body", body, "json", options))


class AsyncIdentities:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(self, body: t.NewIdentity | None = None, **options: Unpack[Options]) -> t.Identity:
        """Create an identity."""
        return cast("t.Identity", await self._caller.call("POST", "/identities", {}, "body", body, "json", options))

    async def list(self, query: t.IdentitiesListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.ReducedIdentity]:
        """List identities."""
        return cast("t.Page[t.ReducedIdentity]", await self._caller.call("GET", "/identities", {}, "query", query, "page", options))

    def iterate(self, query: t.IdentitiesListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.ReducedIdentity]:
        """List identities: the rows of all pages."""
        return self._caller.rows("GET", "/identities", {}, "query", query, "page", options)

    async def get(self, identity_id: str, **options: Unpack[Options]) -> t.Identity:
        """Get an identity."""
        return cast("t.Identity", await self._caller.call("GET", "/identities/{identity_id}", {"identity_id": identity_id}, "", None, "json", options))

    async def update(self, identity_id: str, body: t.IdentityChange | None = None, **options: Unpack[Options]) -> t.Identity:
        """Change an identity."""
        return cast("t.Identity", await self._caller.call("PATCH", "/identities/{identity_id}", {"identity_id": identity_id}, "body", body, "json", options))

    async def delete(self, identity_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete an identity."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/identities/{identity_id}", {"identity_id": identity_id}, "", None, "json", options))

    async def provision_phone(self, identity_id: str, body: t.PhoneWish | None = None, **options: Unpack[Options]) -> t.Identity:
        """Provision a phone number for an identity."""
        return cast("t.Identity", await self._caller.call("POST", "/identities/{identity_id}/phone", {"identity_id": identity_id}, "body", body, "json", options))

    async def release_phone(self, identity_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Release the phone number of an identity."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/identities/{identity_id}/phone", {"identity_id": identity_id}, "", None, "json", options))

    async def issue_token(self, identity_id: str, body: t.TokenWish | None = None, **options: Unpack[Options]) -> t.IdentityToken:
        """Issue an identity token."""
        return cast("t.IdentityToken", await self._caller.call("POST", "/identities/{identity_id}/token", {"identity_id": identity_id}, "body", body, "json", options))

    async def revoke_tokens(self, identity_id: str, **options: Unpack[Options]) -> t.TokensRevoked:
        """Revoke identity tokens."""
        return cast("t.TokensRevoked", await self._caller.call("POST", "/identities/{identity_id}/token/revoke", {"identity_id": identity_id}, "", None, "json", options))

    async def reputation(self, identity_id: str, **options: Unpack[Options]) -> t.Reputation:
        """Get the reputation of an identity."""
        return cast("t.Reputation", await self._caller.call("GET", "/identities/{identity_id}/reputation", {"identity_id": identity_id}, "", None, "json", options))

    async def report(self, identity_id: str, body: t.NewReport, **options: Unpack[Options]) -> t.Report:
        """Report on a subject."""
        return cast("t.Report", await self._caller.call("POST", "/identities/{identity_id}/events", {"identity_id": identity_id}, "body", body, "json", options))

    async def credential(self, identity_id: str, **options: Unpack[Options]) -> t.Credential:
        """Issue a reputation credential."""
        return cast("t.Credential", await self._caller.call("POST", "/identities/{identity_id}/reputation/credential", {"identity_id": identity_id}, "", None, "json", options))

    async def events(self, identity_id: str, query: t.IdentitiesEventsQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Event]:
        """List events."""
        return cast("t.Page[t.Event]", await self._caller.call("GET", "/identities/{identity_id}/events", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate_events(self, identity_id: str, query: t.IdentitiesEventsQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Event]:
        """List events: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/events", {"identity_id": identity_id}, "query", query, "page", options)

    async def messages(self, identity_id: str, query: t.IdentitiesMessagesQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Message]:
        """List all messages."""
        return cast("t.Page[t.Message]", await self._caller.call("GET", "/identities/{identity_id}/messages", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate_messages(self, identity_id: str, query: t.IdentitiesMessagesQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Message]:
        """List all messages: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/messages", {"identity_id": identity_id}, "query", query, "page", options)

    async def wait(self, identity_id: str, query: t.IdentitiesWaitQuery | None = None, **options: Unpack[Options]) -> t.WaitAnswer:
        """Wait for a message."""
        return cast("t.WaitAnswer", await self._caller.call("GET", "/identities/{identity_id}/wait", {"identity_id": identity_id}, "query", query, "json", options))

    async def export(self, identity_id: str, body: t.ExportWish | None = None, **options: Unpack[Options]) -> t.Job:
        """Export an identity."""
        return cast("t.Job", await self._caller.call("POST", "/identities/{identity_id}/export", {"identity_id": identity_id}, "body", body, "json", options))

    async def import_messages(self, identity_id: str, octets: bytes, **options: Unpack[Options]) -> t.Job:
        """Import messages."""
        return cast("t.Job", await self._caller.call("POST", "/identities/{identity_id}/import", {"identity_id": identity_id}, "octets", octets, "json", options))

    async def empty_trash(self, identity_id: str, **options: Unpack[Options]) -> t.Emptied:
        """Empty the trash of an identity."""
        return cast("t.Emptied", await self._caller.call("POST", "/identities/{identity_id}/trash/empty", {"identity_id": identity_id}, "", None, "json", options))


class AsyncJobs:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(self, query: t.JobsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Job]:
        """List jobs."""
        return cast("t.Page[t.Job]", await self._caller.call("GET", "/jobs", {}, "query", query, "page", options))

    def iterate(self, query: t.JobsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Job]:
        """List jobs: the rows of all pages."""
        return self._caller.rows("GET", "/jobs", {}, "query", query, "page", options)

    async def get(self, job_id: str, **options: Unpack[Options]) -> t.Job:
        """Get a job."""
        return cast("t.Job", await self._caller.call("GET", "/jobs/{job_id}", {"job_id": job_id}, "", None, "json", options))

    async def cancel(self, job_id: str, **options: Unpack[Options]) -> t.Job:
        """Cancel a job."""
        return cast("t.Job", await self._caller.call("POST", "/jobs/{job_id}/cancel", {"job_id": job_id}, "", None, "json", options))

    async def delete(self, job_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete a job."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/jobs/{job_id}", {"job_id": job_id}, "", None, "json", options))


class AsyncPolicy:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def get(self, **options: Unpack[Options]) -> t.Policy:
        """Get what may leave the account."""
        return cast("t.Policy", await self._caller.call("GET", "/policy", {}, "", None, "json", options))

    async def update(self, body: t.PolicyInput | None = None, **options: Unpack[Options]) -> t.Policy:
        """Change what may leave the account."""
        return cast("t.Policy", await self._caller.call("PATCH", "/policy", {}, "body", body, "json", options))

    async def get_of_identity(self, identity_id: str, **options: Unpack[Options]) -> t.Policy:
        """Get what may leave an identity."""
        return cast("t.Policy", await self._caller.call("GET", "/identities/{identity_id}/policy", {"identity_id": identity_id}, "", None, "json", options))

    async def update_of_identity(self, identity_id: str, body: t.PolicyInput | None = None, **options: Unpack[Options]) -> t.Policy:
        """Change what may leave an identity."""
        return cast("t.Policy", await self._caller.call("PATCH", "/identities/{identity_id}/policy", {"identity_id": identity_id}, "body", body, "json", options))


class AsyncQueue:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(self, query: t.QueueListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.QueueEntry]:
        """List the queue."""
        return cast("t.Page[t.QueueEntry]", await self._caller.call("GET", "/queue", {}, "query", query, "page", options))

    def iterate(self, query: t.QueueListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.QueueEntry]:
        """List the queue: the rows of all pages."""
        return self._caller.rows("GET", "/queue", {}, "query", query, "page", options)

    async def summary(self, **options: Unpack[Options]) -> t.QueueSummary:
        """Summarize the queue."""
        return cast("t.QueueSummary", await self._caller.call("GET", "/queue/summary", {}, "", None, "json", options))

    async def get(self, queue_id: str, **options: Unpack[Options]) -> t.QueueEntryWithHistory:
        """Get a delivery of the queue."""
        return cast("t.QueueEntryWithHistory", await self._caller.call("GET", "/queue/{queue_id}", {"queue_id": queue_id}, "", None, "json", options))

    async def retry(self, queue_id: str, **options: Unpack[Options]) -> t.QueueEntryWithHistory:
        """Retry a delivery of the queue now."""
        return cast("t.QueueEntryWithHistory", await self._caller.call("POST", "/queue/{queue_id}/retry", {"queue_id": queue_id}, "", None, "json", options))

    async def delete(self, queue_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Drop a delivery of the queue."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/queue/{queue_id}", {"queue_id": queue_id}, "", None, "json", options))


class AsyncRealtime:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def token(self, body: t.RealtimeTokenWish | None = None, **options: Unpack[Options]) -> t.RealtimeToken:
        """Get a token for a WebSocket."""
        return cast("t.RealtimeToken", await self._caller.call("POST", "/realtime/token", {}, "body", body, "json", options))


class AsyncSenders:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def get(self, **options: Unpack[Options]) -> t.SenderRules:
        """Get who may write to the account."""
        return cast("t.SenderRules", await self._caller.call("GET", "/senders", {}, "", None, "json", options))

    async def update(self, body: t.SenderRulesInput | None = None, **options: Unpack[Options]) -> t.SenderRules:
        """Change who may write to the account."""
        return cast("t.SenderRules", await self._caller.call("PATCH", "/senders", {}, "body", body, "json", options))

    async def get_of_identity(self, identity_id: str, **options: Unpack[Options]) -> t.SenderRules:
        """Get who may write to an identity."""
        return cast("t.SenderRules", await self._caller.call("GET", "/identities/{identity_id}/senders", {"identity_id": identity_id}, "", None, "json", options))

    async def update_of_identity(self, identity_id: str, body: t.SenderRulesInput | None = None, **options: Unpack[Options]) -> t.SenderRules:
        """Change who may write to an identity."""
        return cast("t.SenderRules", await self._caller.call("PATCH", "/identities/{identity_id}/senders", {"identity_id": identity_id}, "body", body, "json", options))


class AsyncSigningKeys:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def rotate(self, body: t.KeyRotation | None = None, **options: Unpack[Options]) -> t.KeyRotated:
        """Rotate the signing keys."""
        return cast("t.KeyRotated", await self._caller.call("POST", "/signing-keys/rotate", {}, "body", body, "json", options))


class AsyncSms:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def send(self, identity_id: str, body: t.NewSms, **options: Unpack[Options]) -> t.Sms:
        """Send an SMS."""
        return cast("t.Sms", await self._caller.call("POST", "/identities/{identity_id}/sms", {"identity_id": identity_id}, "body", body, "json", options))

    async def list(self, identity_id: str, query: t.SmsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Sms]:
        """List SMS."""
        return cast("t.Page[t.Sms]", await self._caller.call("GET", "/identities/{identity_id}/sms", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.SmsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Sms]:
        """List SMS: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/sms", {"identity_id": identity_id}, "query", query, "page", options)

    async def get(self, identity_id: str, sms_id: str, **options: Unpack[Options]) -> t.Sms:
        """Get an SMS."""
        return cast("t.Sms", await self._caller.call("GET", "/identities/{identity_id}/sms/{sms_id}", {"identity_id": identity_id, "sms_id": sms_id}, "", None, "json", options))

    async def update(self, identity_id: str, sms_id: str, body: t.SmsChange | None = None, **options: Unpack[Options]) -> t.Sms:
        """Mark an SMS as read or unread."""
        return cast("t.Sms", await self._caller.call("PATCH", "/identities/{identity_id}/sms/{sms_id}", {"identity_id": identity_id, "sms_id": sms_id}, "body", body, "json", options))

    async def delete(self, identity_id: str, sms_id: str, query: t.SmsDeleteQuery | None = None, **options: Unpack[Options]) -> t.Deleted:
        """Delete an SMS."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/identities/{identity_id}/sms/{sms_id}", {"identity_id": identity_id, "sms_id": sms_id}, "query", query, "json", options))

    async def restore(self, identity_id: str, sms_id: str, **options: Unpack[Options]) -> t.Sms:
        """Restore an SMS."""
        return cast("t.Sms", await self._caller.call("POST", "/identities/{identity_id}/sms/{sms_id}/restore", {"identity_id": identity_id, "sms_id": sms_id}, "", None, "json", options))

    async def media(self, identity_id: str, sms_id: str, index: int, **options: Unpack[Options]) -> t.SmsMediaWithUrl:
        """Get the URL of a picture."""
        return cast("t.SmsMediaWithUrl", await self._caller.call("GET", "/identities/{identity_id}/sms/{sms_id}/media/{index}", {"identity_id": identity_id, "sms_id": sms_id, "index": index}, "", None, "json", options))

    async def inject(self, body: t.InjectedSms, **options: Unpack[Options]) -> t.Sms:
        """Send a message to the loopback provider."""
        return cast("t.Sms", await self._caller.call("POST", "/sms/loopback/inject", {}, "body", body, "json", options))


class AsyncSuppressions:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(self, query: t.SuppressionsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Suppression]:
        """List suppressions."""
        return cast("t.Page[t.Suppression]", await self._caller.call("GET", "/suppressions", {}, "query", query, "page", options))

    def iterate(self, query: t.SuppressionsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Suppression]:
        """List suppressions: the rows of all pages."""
        return self._caller.rows("GET", "/suppressions", {}, "query", query, "page", options)

    async def create(self, body: t.NewSuppression, **options: Unpack[Options]) -> t.Suppression:
        """Suppress an address."""
        return cast("t.Suppression", await self._caller.call("POST", "/suppressions", {}, "body", body, "json", options))

    async def delete(self, suppression_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Lift a suppression."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/suppressions/{suppression_id}", {"suppression_id": suppression_id}, "", None, "json", options))


class AsyncThreads:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(self, identity_id: str, query: t.ThreadsListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Thread]:
        """List threads."""
        return cast("t.Page[t.Thread]", await self._caller.call("GET", "/identities/{identity_id}/threads", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.ThreadsListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Thread]:
        """List threads: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/threads", {"identity_id": identity_id}, "query", query, "page", options)

    async def get(self, identity_id: str, thread_id: str, query: t.ThreadsGetQuery | None = None, **options: Unpack[Options]) -> t.ThreadWithMessages:
        """Get a thread."""
        return cast("t.ThreadWithMessages", await self._caller.call("GET", "/identities/{identity_id}/threads/{thread_id}", {"identity_id": identity_id, "thread_id": thread_id}, "query", query, "json", options))


class AsyncTokens:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def verify(self, body: t.TokenQuestion, **options: Unpack[Options]) -> t.VerifiedToken:
        """Verify an identity token."""
        return cast("t.VerifiedToken", await self._caller.call("POST", "/verify/token", {}, "body", body, "json", options))


class AsyncTotp:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(self, identity_id: str, body: t.NewTotpEntry | None = None, **options: Unpack[Options]) -> t.TotpEntry:
        """Create a one-time password."""
        return cast("t.TotpEntry", await self._caller.call("POST", "/identities/{identity_id}/totp", {"identity_id": identity_id}, "body", body, "json", options))

    async def list(self, identity_id: str, query: t.TotpListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.TotpEntry]:
        """List one-time passwords."""
        return cast("t.Page[t.TotpEntry]", await self._caller.call("GET", "/identities/{identity_id}/totp", {"identity_id": identity_id}, "query", query, "page", options))

    def iterate(self, identity_id: str, query: t.TotpListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.TotpEntry]:
        """List one-time passwords: the rows of all pages."""
        return self._caller.rows("GET", "/identities/{identity_id}/totp", {"identity_id": identity_id}, "query", query, "page", options)

    async def get(self, identity_id: str, totp_id: str, **options: Unpack[Options]) -> t.TotpEntry:
        """Get a one-time password."""
        return cast("t.TotpEntry", await self._caller.call("GET", "/identities/{identity_id}/totp/{totp_id}", {"identity_id": identity_id, "totp_id": totp_id}, "", None, "json", options))

    async def code(self, identity_id: str, totp_id: str, query: t.TotpCodeQuery | None = None, **options: Unpack[Options]) -> t.TotpCode:
        """Read the code."""
        return cast("t.TotpCode", await self._caller.call("GET", "/identities/{identity_id}/totp/{totp_id}/code", {"identity_id": identity_id, "totp_id": totp_id}, "query", query, "json", options))

    async def delete(self, identity_id: str, totp_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete a one-time password."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/identities/{identity_id}/totp/{totp_id}", {"identity_id": identity_id, "totp_id": totp_id}, "", None, "json", options))


class AsyncTrust:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def evaluate(self, body: t.TrustQuestion | None = None, **options: Unpack[Options]) -> t.TrustEvaluation:
        """Evaluate trust."""
        return cast("t.TrustEvaluation", await self._caller.call("POST", "/trust/evaluate", {}, "body", body, "json", options))


class AsyncWebhooks:
    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(self, body: t.NewWebhook, **options: Unpack[Options]) -> t.WebhookWithSecret:
        """Create a webhook."""
        return cast("t.WebhookWithSecret", await self._caller.call("POST", "/webhooks", {}, "body", body, "json", options))

    async def list(self, query: t.WebhooksListQuery | None = None, **options: Unpack[Options]) -> t.Page[t.Webhook]:
        """List webhooks."""
        return cast("t.Page[t.Webhook]", await self._caller.call("GET", "/webhooks", {}, "query", query, "page", options))

    def iterate(self, query: t.WebhooksListQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.Webhook]:
        """List webhooks: the rows of all pages."""
        return self._caller.rows("GET", "/webhooks", {}, "query", query, "page", options)

    async def get(self, webhook_id: str, **options: Unpack[Options]) -> t.Webhook:
        """Get a webhook."""
        return cast("t.Webhook", await self._caller.call("GET", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}, "", None, "json", options))

    async def update(self, webhook_id: str, body: t.WebhookChange | None = None, **options: Unpack[Options]) -> t.Webhook:
        """Change a webhook."""
        return cast("t.Webhook", await self._caller.call("PATCH", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}, "body", body, "json", options))

    async def delete(self, webhook_id: str, **options: Unpack[Options]) -> t.Deleted:
        """Delete a webhook."""
        return cast("t.Deleted", await self._caller.call("DELETE", "/webhooks/{webhook_id}", {"webhook_id": webhook_id}, "", None, "json", options))

    async def deliveries(self, webhook_id: str, query: t.WebhooksDeliveriesQuery | None = None, **options: Unpack[Options]) -> t.Page[t.WebhookDelivery]:
        """List deliveries of a webhook."""
        return cast("t.Page[t.WebhookDelivery]", await self._caller.call("GET", "/webhooks/{webhook_id}/deliveries", {"webhook_id": webhook_id}, "query", query, "page", options))

    def iterate_deliveries(self, webhook_id: str, query: t.WebhooksDeliveriesQuery | None = None, **options: Unpack[Options]) -> AsyncIterator[t.WebhookDelivery]:
        """List deliveries of a webhook: the rows of all pages."""
        return self._caller.rows("GET", "/webhooks/{webhook_id}/deliveries", {"webhook_id": webhook_id}, "query", query, "page", options)

    async def delivery(self, webhook_id: str, delivery_id: str, **options: Unpack[Options]) -> t.WebhookDeliveryWithRequest:
        """Get a delivery of a webhook."""
        return cast("t.WebhookDeliveryWithRequest", await self._caller.call("GET", "/webhooks/{webhook_id}/deliveries/{delivery_id}", {"webhook_id": webhook_id, "delivery_id": delivery_id}, "", None, "json", options))

    async def redeliver(self, webhook_id: str, delivery_id: str, **options: Unpack[Options]) -> t.WebhookDelivery:
        """Redeliver an event."""
        return cast("t.WebhookDelivery", await self._caller.call("POST", "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", {"webhook_id": webhook_id, "delivery_id": delivery_id}, "", None, "json", options))

    async def test(self, webhook_id: str, **options: Unpack[Options]) -> t.WebhookDelivery:
        """Send a test event."""
        return cast("t.WebhookDelivery", await self._caller.call("POST", "/webhooks/{webhook_id}/test", {"webhook_id": webhook_id}, "", None, "json", options))

    async def rotate_secret(self, webhook_id: str, body: t.SecretRotation | None = None, **options: Unpack[Options]) -> t.WebhookWithSecret:
        """Rotate the secret of a webhook."""
        return cast("t.WebhookWithSecret", await self._caller.call("POST", "/webhooks/{webhook_id}/secret/rotate", {"webhook_id": webhook_id}, "body", body, "json", options))


class AsyncMethods:
    """The methods, by group."""

    def __init__(self, caller: AsyncCaller) -> None:
        self.account = AsyncAccount(caller)
        self.accounts = AsyncAccounts(caller)
        self.agents = AsyncAgents(caller)
        self.aliases = AsyncAliases(caller)
        self.api_keys = AsyncApiKeys(caller)
        self.backups = AsyncBackups(caller)
        self.billing = AsyncBilling(caller)
        self.box = AsyncBox(caller)
        self.cards = AsyncCards(caller)
        self.certificates = AsyncCertificates(caller)
        self.doctor = AsyncDoctor(caller)
        self.domains = AsyncDomains(caller)
        self.emails = AsyncEmails(caller)
        self.holds = AsyncHolds(caller)
        self.identities = AsyncIdentities(caller)
        self.jobs = AsyncJobs(caller)
        self.policy = AsyncPolicy(caller)
        self.queue = AsyncQueue(caller)
        self.realtime = AsyncRealtime(caller)
        self.senders = AsyncSenders(caller)
        self.signing_keys = AsyncSigningKeys(caller)
        self.sms = AsyncSms(caller)
        self.suppressions = AsyncSuppressions(caller)
        self.threads = AsyncThreads(caller)
        self.tokens = AsyncTokens(caller)
        self.totp = AsyncTotp(caller)
        self.trust = AsyncTrust(caller)
        self.webhooks = AsyncWebhooks(caller)
