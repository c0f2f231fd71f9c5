import { iso } from '../core/clock.ts'
import { type Certificates, main } from './certificates.ts'
import type { Certificate } from './model.ts'
import { type Pair, readingOf } from './pair.ts'
import type { Obtained } from './renewal.ts'

/** Every certificate the box uses or should use: from files, by ACME (`fileOf` returns the file of each), and self-signed. */
export function inventory(certificates: Certificates, obtained: Obtained[], fileOf: (name: string) => string): Certificate[] {
  const { own, files } = certificates
  return [
    ...files.map(({ uses, file: { place, pair, fault } }) => ({
      ...blank,
      ...read(pair),
      uses,
      source: 'file' as const,
      file: place.cert,
      problem: fault,
    })),
    ...obtained.map(({ name, hosts, pair, renew_at, state }) => ({
      ...blank,
      ...(pair ? read(pair) : { names: hosts }),
      // each other one is for a host of the API
      uses: name === main ? certificates.uses('acme') : pair ? ['api' as const] : [],
      source: 'acme' as const,
      file: fileOf(name),
      renew_at: timeOf(renew_at),
      tried_at: timeOf(state?.tried_at),
      next_try_at: timeOf(state?.next_try_at),
      problem: state?.problem ?? null,
    })),
    ...(own
      ? [{ ...blank, ...read(own.pair), uses: certificates.uses('self_signed'), source: 'self_signed' as const, file: own.file }]
      : []),
  ]
}

const blank = {
  names: [] as string[],
  issuer: null,
  fingerprint: null,
  not_before: null,
  not_after: null,
  renew_at: null,
  tried_at: null,
  next_try_at: null,
  problem: null,
}

function read({ cert }: Pair): Pick<Certificate, 'names' | 'issuer' | 'fingerprint' | 'not_before' | 'not_after'> {
  const { names, issuer, fingerprint, not_before, not_after } = readingOf(cert)
  return { names, issuer, fingerprint, not_before: iso(not_before), not_after: iso(not_after) }
}

function timeOf(milliseconds: number | null | undefined): string | null {
  return milliseconds === null || milliseconds === undefined ? null : iso(milliseconds)
}
