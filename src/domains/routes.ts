import { Deleted, Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Domains } from './domains.ts'
import { Domain, DomainReport, NewDomain, ReportFilter } from './model.ts'
import type { DomainReports } from './reports.ts'
import type { Verification } from './verification.ts'

const route = routeOf('Domains')

export function routes({
  domains,
  verification,
  reports,
}: {
  domains: Domains
  verification: Verification
  reports: DomainReports
}): AnyRoute[] {
  return [
    route('POST', '/domains', {
      scope: 'account:write',
      sdk: 'domains.create',
      errors: { 403: ['plan_limit_reached'], 404: ['not_found'], 409: ['conflict'] },
      audit: 'domain.created',
      summary: 'Add a domain',
      description:
        'The response lists the DNS records to publish. Once they are published the domain is verified automatically, or immediately by verify; then identities can have addresses in it.',
      body: NewDomain,
      reply: Domain,
      status: 201,
      location: (domain) => `/v1/domains/${domain.id}`,
      example: { body: { name: 'example.com' } },
      handle: ({ caller, body, signal }) => domains.create(caller, body, signal),
    }),
    route('GET', '/domains', {
      scope: 'account:read',
      sdk: 'domains.list',
      errors: { 404: ['not_found'] },
      summary: 'List domains',
      description: "Newest first. mail.domain belongs to the operator's account.",
      query: Paging,
      reply: Page(Domain),
      handle: ({ caller, query }) => domains.list(caller, query),
    }),
    route('GET', '/domains/:id', {
      scope: 'account:read',
      sdk: 'domains.get',
      summary: 'Get a domain',
      description: 'With each DNS record: the result of the last lookup and the correct value.',
      reply: Domain,
      handle: ({ caller, params }) => domains.get(caller, params.id),
    }),
    route('DELETE', '/domains/:id', {
      scope: 'account:write',
      sdk: 'domains.delete',
      errors: { 409: ['default_domain', 'domain_in_use'] },
      audit: 'domain.deleted',
      summary: 'Delete a domain',
      description:
        'Its mail is rejected from then on. A conflict, code domain_in_use, while identities have addresses in it; and for mail.domain, code default_domain.',
      reply: Deleted,
      handle: ({ caller, params }) => domains.remove(caller, params.id),
    }),
    route('POST', '/domains/:id/verify', {
      scope: 'account:write',
      sdk: 'domains.verify',
      errors: { 409: ['domain_held'] },
      audit: 'domain.checked',
      summary: 'Verify a domain',
      description:
        'Looks up the records now and returns the domain, verified or with the reasons why not. A conflict, code domain_held, if another account has it.',
      reply: Domain,
      handle: ({ caller, params }) => verification.verify(caller, params.id),
    }),
    route('POST', '/domains/:id/dkim/rotate', {
      scope: 'account:write',
      sdk: 'domains.rotateKeys',
      errors: { 409: ['spares_not_published'] },
      audit: 'dkim.rotated',
      summary: 'Rotate the DKIM keys',
      description:
        'The spare keys sign from now on, and new spares are listed for publication; the old selectors stay listed for 7 days. A conflict, code spares_not_published, while the spares are not in the DNS.',
      reply: Domain,
      handle: ({ caller, params, signal }) => verification.rotate(caller, params.id, signal),
    }),
    route('GET', '/domains/:id/zone', {
      scope: 'account:read',
      sdk: 'domains.zone',
      summary: "Get a domain's records as a zone file",
      description: 'Records in zone file format (RFC 1035) with absolute names, for import into any zone.',
      download: 'text/plain',
      handle: async ({ caller, params }) => {
        const text = await domains.zone(caller, params.id)
        return { type: 'text/plain; charset=utf-8', bytes: Buffer.from(text), headers: { 'Content-Disposition': 'inline' } }
      },
    }),
    route('GET', '/domains/:id/reports', {
      scope: 'account:read',
      sdk: 'domains.reports',
      summary: 'List reports about a domain',
      description: 'Reports of other servers about mail in its name (DMARC) and TLS to it, newest first.',
      query: ReportFilter,
      reply: Page(DomainReport),
      handle: ({ caller, params, query }) => reports.list(caller, params.id, query),
    }),
    route('GET', '/.well-known/mta-sts.txt', {
      root: true,
      scope: 'public',
      rate: 'document',
      errors: { 404: ['not_found'] },
      summary: 'Get the MTA-STS policy',
      description: 'The TLS policy for senders (RFC 8461), served at mta-sts.<domain>; not found at any other host.',
      download: 'text/plain',
      example: { headers: { Host: 'mta-sts.pillarbox.test' } },
      handle: async ({ host }) => ({
        type: 'text/plain; charset=utf-8',
        bytes: Buffer.from(domains.policyAt(host)),
        headers: { 'Content-Disposition': 'inline' },
      }),
    }),
  ]
}
