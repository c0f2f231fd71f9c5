import { mac, sameBytes } from '../core/seal/seal.ts'
import { type ChannelName, channelNames } from './model.ts'

/** The claims of a token; times in milliseconds since the epoch. */
interface Claims {
  /** The key or session that created it, with which it ends. */
  holder_id: string
  /** The number of the key's secret; 0 for a session. */
  secret: number
  account_id: string
  identity_id: string | null
  channels: readonly ChannelName[]
  expires_at: number
}

const prefix = 'rtt_'

/** A token: the claims and their HMAC-SHA-256, so that nothing is stored. */
export function writeToken(key: Uint8Array, claims: Claims): string {
  const { holder_id, secret, account_id, identity_id, channels, expires_at } = claims
  const flags = channelNames.map((name) => (channels.includes(name) ? '1' : '0')).join('')
  const said = [holder_id, secret, account_id, identity_id ?? '', flags, expires_at.toString(36)].join('.')
  const body = Buffer.from(said).toString('base64url')
  return `${prefix}${body}.${mac(key, body).toString('base64url')}`
}

/** The claims of a token of this box, even if expired; undefined for any other text. */
export function readToken(key: Uint8Array, token: string): Claims | undefined {
  if (!isToken(token) || token.length > 1000) return undefined
  const [body = '', signature = ''] = token.slice(prefix.length).split('.')
  // compared as text: another encoding of the same bytes is not a valid token
  const expected = `${prefix}${body}.${mac(key, body).toString('base64url')}`
  if (signature === '' || !sameBytes(Buffer.from(expected), Buffer.from(token))) return undefined
  const [holder_id, secret, account_id, identity_id, flags, expires] = Buffer.from(body, 'base64url').toString().split('.')
  // a token from before secrets were numbered
  if (!/^\d+$/.test(secret!)) return undefined
  return {
    holder_id: holder_id!,
    secret: Number(secret),
    account_id: account_id!,
    identity_id: identity_id === '' ? null : identity_id!,
    channels: channelNames.filter((_, index) => flags![index] === '1'),
    expires_at: Number.parseInt(expires!, 36),
  }
}

/** True if a text has the form of a token, valid or not. */
export function isToken(text: string): boolean {
  return text.startsWith(prefix)
}
