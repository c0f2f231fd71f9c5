import { isAbsent, type Records } from './resolve.ts'

/** The result of a query: an answer, no such record, a timeout, or a failure of a name server. */
const dnsResults = ['found', 'absent', 'timeout', 'trouble'] as const
type DnsResult = (typeof dnsResults)[number]

/** Counts DNS queries, in memory shared between threads, as most queries are made in worker threads. */
export class DnsTally {
  readonly cells: BigUint64Array

  constructor(cells: BigUint64Array = new BigUint64Array(new SharedArrayBuffer(dnsResults.length * 8))) {
    this.cells = cells
  }

  count(result: DnsResult): void {
    Atomics.add(this.cells, dnsResults.indexOf(result), 1n)
  }

  /** Counts a failed query by its error. */
  countFailure(error: unknown): void {
    const late = error instanceof Error && 'code' in error && (error.code === 'ETIMEOUT' || error.code === 'ECANCELLED')
    this.count(isAbsent(error) ? 'absent' : late ? 'timeout' : 'trouble')
  }

  /** Wraps lookups of records so that they are counted. */
  counting(records: Records): Records {
    return async (name, type) => {
      try {
        const found = await records(name, type)
        this.count('found')
        return found
      } catch (error) {
        this.countFailure(error)
        throw error
      }
    }
  }

  *counts(): Generator<[DnsResult, number]> {
    for (const [index, result] of dnsResults.entries()) yield [result, Number(Atomics.load(this.cells, index))]
  }
}
