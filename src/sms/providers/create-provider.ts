import type { Basis } from '../../basis.ts'
import type { Outside } from '../../net/outside.ts'
import type { Inbound } from '../inbound.ts'
import type { SmsProvider } from '../provider.ts'
import { android, type AndroidSettings } from './android.ts'
import { httpBridge, type HttpBridgeSettings } from './http.ts'
import { loopback } from './loopback.ts'
import { twilio, type TwilioSettings } from './twilio.ts'

interface ProviderSettings {
  provider: 'none' | SmsProvider['name']
  country: string
  media_limit: number
  twilio?: TwilioSettings | undefined
  android?: AndroidSettings | undefined
  http?: HttpBridgeSettings | undefined
}

interface Deps extends Pick<Basis, 'clock' | 'log' | 'publicUrl'> {
  settings: () => ProviderSettings
  outside: Outside
  inbound: () => Inbound
  isTaken: (number: string) => Promise<boolean>
}

/** Creates the configured provider; undefined for none. */
export function chosen(deps: Deps): SmsProvider | undefined {
  const settings = deps.settings()
  const mediaLimit = (): number => deps.settings().media_limit
  const country = (): string => deps.settings().country
  switch (settings.provider) {
    case 'none':
      return undefined
    case 'loopback':
      return loopback(deps)
    case 'twilio':
      return twilio({ ...deps, settings: settings.twilio!, mediaLimit })
    case 'android':
      return android({ ...deps, settings: settings.android!, country })
    default:
      return httpBridge({ ...deps, settings: settings.http!, country })
  }
}
