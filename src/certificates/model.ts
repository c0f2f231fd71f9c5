import * as z from 'zod'
import type { Scope } from '../core/scopes.ts'
import { Timestamp } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

/** A certificate that the box uses, or should use. */
export const Certificate = z
  .object({
    uses: z.array(z.enum(['mail', 'api'])).meta({
      description: 'the services that use it: mail is SMTP (STARTTLS and submission), api the REST API; empty while unused',
    }),
    source: z
      .enum(['file', 'acme', 'self_signed'])
      .meta({ description: 'files named in the settings, obtained by ACME, or self-signed' }),
    names: z.array(z.string()).meta({ description: 'the host names it contains, or should contain' }),
    file: z.string().meta({ description: 'its path on the box' }),
    issuer: z.string().nullable().meta({ description: 'null while there is none' }),
    fingerprint: z.string().nullable().meta({ description: 'SHA-256, in hexadecimal' }),
    not_before: Timestamp.nullable(),
    not_after: Timestamp.nullable(),
    renew_at: Timestamp.nullable().meta({ description: 'time from which ACME requests the next one' }),
    tried_at: Timestamp.nullable().meta({ description: 'time of the last request to the CA' }),
    next_try_at: Timestamp.nullable().meta({ description: 'after a failure' }),
    problem: z
      .string()
      .nullable()
      .meta({ description: 'why there is none, or none newer: the fault of the files, or the error of the CA' }),
  })
  .meta({ id: 'Certificate' })
export type Certificate = z.output<typeof Certificate>

export const Renewal = z
  .strictObject({
    name: z
      .string()
      .trim()
      .min(1)
      .max(253)
      .optional()
      .meta({ description: 'a host name: its certificate is renewed even if it is not due' }),
  })
  .meta({ id: 'CertificateRenewal' })
export type Renewal = z.output<typeof Renewal>

const readers: Scope[] = ['identities:read']

export const certificateRenewed = eventType(
  'certificate.renewed',
  readers,
  'A certificate was obtained by ACME, or replaced in its files; it is in use from now on.',
  Certificate,
)
export const certificateFailed = eventType(
  'certificate.failed',
  readers,
  'A certificate could not be obtained; raised at the first failure in a row, and when the reason changes.',
  Certificate,
)
