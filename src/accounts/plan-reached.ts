import { Fault } from '../core/fault.ts'
import type { Planned } from '../core/planned.ts'

interface Reached {
  what: Planned
  most: number
  used: number
  more: number
  /** The month of the count: `2026-11`. */
  month: string
}

/** Singular and plural of each limit, and how to get below it. */
const words: Record<Exclude<Planned, 'storage_bytes'>, [one: string, many: string, less: string]> = {
  identities: ['identity', 'identities', 'delete one'],
  domains: ['domain', 'domains', 'delete one'],
  aliases: ['alias', 'aliases', 'delete one'],
  webhooks: ['webhook', 'webhooks', 'delete one'],
  api_keys: ['API key', 'API keys', 'revoke one'],
  phone_numbers: ['phone number', 'phone numbers', 'release one'],
  cards: ['card', 'cards', 'cancel one'],
  totp_entries: ['one-time password', 'one-time passwords', 'delete one'],
  agents: ['agent', 'agents', 'delete one'],
  emails_sent: ['e-mail', 'e-mails', 'wait for the next'],
  sms_sent: ['text message', 'text messages', 'wait for the next'],
}

/** Fault forbidden, code `plan_limit_reached`: names the limit, the usage and a remedy. */
export function reached(met: Reached): Fault {
  return new Fault('forbidden', `${sentence(met)}, or ask the operator to raise limits.${met.what}.`, {
    code: 'plan_limit_reached',
  })
}

function sentence({ what, most, used, more, month }: Reached): string {
  if (what === 'storage_bytes') {
    return `This account may store ${most} bytes of messages and long texts, stores ${used}, and this needs ${more} more: delete some messages`
  }
  const [one, many, less] = words[what]
  const allowed = `${most} ${most === 1 ? one : many}`
  if (what === 'emails_sent' || what === 'sms_sent') {
    return `This account may send ${allowed} in a month, and ${used} ${used === 1 ? 'is' : 'are'} counted for ${month} (UTC): ${less}`
  }
  return `This account may have ${allowed}, and has ${used}: ${less}`
}
