import { largeWork } from '../../core/work/long-work.ts'
import { release } from '../../core/memory.ts'
import { WorkLimiter, type WorkLimits } from '../../net/work-limiter.ts'
import type { DecodedAttachment } from '../../message/parsed.ts'
import type { StoredEmail } from '../email-rows.ts'
import type { Emails } from '../emails.ts'
import type { Examiner } from './examiner.ts'

const mebibyte = 1024 * 1024

/**
 * Stored messages that are read for their attachments: `memory` of those being read and those waiting, and `concurrent` of those in memory. Small
 * ones do not wait.
 */
const readLimits = {
  memory: {
    all: 192 * mebibyte,
    one: 96 * mebibyte,
    own: mebibyte,
    message: 'Too many large messages are being read at once. Retry when other requests have finished.',
  },
  concurrent: { all: 4, one: 2 },
  large: 64 * 1024,
} satisfies WorkLimits

/** A stored message, the account that it belongs to, and the signal of the call. */
export interface Reading {
  row: Pick<StoredEmail, 'raw_id' | 'raw_expired_at' | 'size'>
  account: string
  signal: AbortSignal
}

/** Decodes attachments of the message that is read, by their indexes; those that do not exist are left out. */
export type Decode = (indexes: readonly number[]) => Promise<Map<number, DecodedAttachment>>

/** Reads stored messages for their attachments, few at a time: none is in memory while it waits for others. Accounts take turns. */
export class AttachmentReader {
  readonly #emails: Pick<Emails, 'rawMessage'>
  readonly #examiner: Examiner
  readonly #limiter = new WorkLimiter(readLimits)

  constructor(deps: { emails: Pick<Emails, 'rawMessage'>; examiner: Examiner }) {
    this.#emails = deps.emails
    this.#examiner = deps.examiner
  }

  /**
   * Runs work with a message when it is the account's turn. Rejects when the signal aborts before. Throws Fault rate_limited, code
   * `too_much_at_once`, when too much is waiting. `decode` throws Fault not_found, code `raw_expired`.
   */
  async read<Result>({ row, account, signal }: Reading, work: (decode: Decode) => Promise<Result>): Promise<Result> {
    const share = this.#limiter.share(account)
    try {
      // smtp.size may be above the limit
      share.reserve(Math.min(row.size, readLimits.memory.one))
      return await share.run(signal, () => work((indexes) => this.#decode({ row, account, signal }, indexes)))
    } finally {
      share.release()
    }
  }

  async #decode({ row, account, signal }: Reading, indexes: readonly number[]): Promise<Map<number, DecodedAttachment>> {
    const decode = async (): Promise<Map<number, DecodedAttachment>> => {
      const raw = await this.#emails.rawMessage(row)
      try {
        const found = await this.#examiner.attachments(raw, indexes, account, signal)
        return new Map(found.map((one) => [one.attachment.index, one]))
      } finally {
        release(raw)
      }
    }
    return largeWork(account, row.size, decode, signal)
  }
}
