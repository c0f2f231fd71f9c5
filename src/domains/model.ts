import * as z from 'zod'
import type { Scope } from '../core/scopes.ts'
import { Id, Json, Paging, Timestamp } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

export const DnsRecord = z
  .object({
    purpose: z.enum(['mx', 'spf', 'dkim', 'dmarc', 'mta_sts', 'tls_rpt']),
    required: z.boolean().meta({ description: 'whether verification requires this record' }),
    type: z.enum(['MX', 'TXT', 'CNAME']),
    name: z.string().meta({ description: 'without a trailing dot' }),
    value: z.string(),
    priority: z.int().optional().meta({ description: 'the preference of an MX record' }),
    ttl: z.int().meta({ description: 'seconds' }),
    status: z.enum(['missing', 'invalid', 'valid']),
    found: z
      .array(z.string())
      .meta({ description: 'the first ten values found in the DNS, shortened to 3 KB together; control characters as \\DDD' }),
    reason: z.string().nullable().meta({ description: 'what is wrong, and the correct value' }),
    unanswered: z.boolean().meta({ description: 'whether the last lookup failed: the other fields are from an earlier one' }),
    seen_at: Timestamp.nullable().meta({
      description: 'time of the last DNS answer; null if there was none, or it was not recorded',
    }),
  })
  .meta({ id: 'DnsRecord' })
export type DnsRecord = z.output<typeof DnsRecord>

/** A domain that receives and sends mail, with the DNS records it requires. */
export const Domain = z
  .object({
    id: Id('dom'),
    name: z.string().meta({ description: 'lower-case A-labels' }),
    status: z.enum(['pending', 'verified']),
    default: z.boolean().meta({ description: 'whether this is mail.domain, the domain of new addresses' }),
    catch_all: Id('ident')
      .nullable()
      .meta({ description: 'the identity that receives mail for unknown addresses of the domain' }),
    dns_records: z.array(DnsRecord),
    created_at: Timestamp,
    verified_at: Timestamp.nullable(),
    last_checked_at: Timestamp.nullable(),
  })
  .meta({ id: 'Domain' })
export type Domain = z.output<typeof Domain>

const Name = z.string().trim().min(1).max(253)

export const NewDomain = z
  .strictObject({
    name: Name.optional(),
    domain: Name.optional().meta({ description: 'the same as name' }),
    domain_name: Name.optional().meta({ description: 'the same as name' }),
  })
  .meta({ id: 'NewDomain' })
export type NewDomain = z.output<typeof NewDomain>

/** A DMARC or TLS report of another server on mail in the domain's name. */
export const DomainReport = z
  .object({
    kind: z.enum(['dmarc', 'tls']),
    reporter: z.string(),
    report_id: z.string(),
    begins_at: Timestamp.nullable(),
    ends_at: Timestamp.nullable(),
    received_at: Timestamp,
    data: z.record(z.string(), Json).meta({
      description:
        'dmarc: {policy, rows[{source_ip, count, disposition, dkim, spf, header_from}], pass, fail}; tls: {policies[{type, domain, successful, failed, failures[]}]}',
    }),
  })
  .meta({ id: 'DomainReport' })
export type DomainReport = z.output<typeof DomainReport>

export const ReportFilter = z.strictObject({ ...Paging.shape, kind: z.enum(['dmarc', 'tls']).optional() })
export type ReportFilter = z.output<typeof ReportFilter>

const readers: Scope[] = ['identities:read']

export const domainVerified = eventType('domain.verified', readers, 'The DNS records of a domain are correct.', Domain)
export const domainFailed = eventType(
  'domain.failed',
  readers,
  'The DNS records of a domain were wrong for 72 hours; it still receives mail, but can no longer send.',
  Domain,
)
