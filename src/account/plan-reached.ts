import { Fault } from '../core/fault.ts'
import type { Planned } from '../core/planned.ts'

interface Reached {
  what: Planned
  most: number
  used: number
  more: number
  /** In which it is counted: `2026-11`. */
  month: string
}

/** What each is called, and how one gets below the limit again. */
const words: Record<Exclude<Planned, 'storage_bytes' | 'emails_sent' | 'sms_sent'>, [noun: string, less: string]> = {
  identities: ['identities', 'delete one'],
  domains: ['domains', 'delete one'],
  webhooks: ['webhooks', 'delete one'],
  api_keys: ['API keys', 'revoke one'],
  phone_numbers: ['phone numbers', 'give one back'],
  cards: ['cards', 'cancel one'],
  totp_entries: ['one-time passwords', 'delete one'],
  agents: ['agents', 'delete one'],
}

/** Fault forbidden, code `plan_limit_reached`: what the limit is, what is used of it, and what can be done. */
export function reached(met: Reached): Fault {
  return new Fault('forbidden', `${sentence(met)}, or have the operator raise limits.${met.what}.`, {
    code: 'plan_limit_reached',
  })
}

function sentence({ what, most, used, more, month }: Reached): string {
  if (what === 'storage_bytes') {
    return `This account may keep ${most} octets of messages, keeps ${used}, and this needs ${more} more: delete some messages`
  }
  if (what === 'emails_sent' || what === 'sms_sent') {
    const noun = what === 'emails_sent' ? 'e-mails' : 'text messages'
    return `This account may send ${most} ${noun} in a month, and ${used} are counted for ${month} (UTC): wait for the next`
  }
  const [noun, less] = words[what]
  return `This account may have ${most} ${noun}, and has ${used}: ${less}`
}
