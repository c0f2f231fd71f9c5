import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Outside } from '../../delivery/outside.ts'
import type { Inbound } from '../inbound.ts'
import type { SmsProvider } from '../provider.ts'
import { android } from './android.ts'
import type { AndroidSettings } from './android.ts'
import { httpBridge } from './http.ts'
import type { HttpBridgeSettings } from './http.ts'
import { loopback } from './loopback.ts'
import { twilio } from './twilio.ts'
import type { TwilioSettings } from './twilio.ts'

export interface ProviderSettings {
  provider: 'none' | SmsProvider['name']
  country: string
  media_limit: number
  twilio?: TwilioSettings | undefined
  android?: AndroidSettings | undefined
  http?: HttpBridgeSettings | undefined
}

interface Parts {
  settings: () => ProviderSettings
  clock: Clock
  log: Log
  outside: Outside
  inbound: () => Inbound
  isTaken: (number: string) => Promise<boolean>
  publicUrl: () => string
}

/** The provider that the settings name; undefined for none. */
export function chosen(parts: Parts): SmsProvider | undefined {
  const settings = parts.settings()
  const mediaLimit = (): number => parts.settings().media_limit
  const country = (): string => parts.settings().country
  switch (settings.provider) {
    case 'none':
      return undefined
    case 'loopback':
      return loopback(parts)
    case 'twilio':
      return twilio({ ...parts, settings: settings.twilio!, mediaLimit })
    case 'android':
      return android({ ...parts, settings: settings.android!, country })
    default:
      return httpBridge({ ...parts, settings: settings.http!, country })
  }
}
