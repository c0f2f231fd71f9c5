import { chosen } from '../config/documents.ts'
import { Config } from '../config.ts'
import type { Places } from './places.ts'
import { program } from './units.ts'

export interface InitChoice {
  domain: string
  hostname: string
  /** The address to which mail for postmaster and abuse is forwarded. */
  email?: string | undefined
  /** A web server of this machine is the proxy of the API. */
  behindProxy: boolean
  /** The box obtains its certificates from Let's Encrypt, whose terms of service the operator agrees to. */
  agreed: boolean
  /** The user of the box may open ports below 1024. */
  lowPorts: boolean
}

/** The settings file of a new box: the choices, without defaults. */
export function settingsText(choice: InitChoice, places: Places, day: string): string {
  const { domain, hostname, email, behindProxy, agreed, lowPorts } = choice
  const facesTheWeb = agreed && !behindProxy
  const values: [string, unknown][] = [
    ['data_dir', places.data],
    ['keys_dir', places.keys === `${places.data}-keys` ? undefined : places.keys],
    ['hostname', hostname],
    ['public_url', behindProxy || agreed ? `https://${hostname}` : undefined],
    ['http.tls.listen', facesTheWeb ? ':443' : undefined],
    ['http.trusted_proxies', behindProxy ? ['127.0.0.1/32', '::1/128'] : undefined],
    ['smtp.listen', lowPorts ? ':25' : ':2525'],
    ['mail.domain', domain],
    ['mail.postmaster', email],
    ['acme.agree_terms', agreed ? true : undefined],
    ['acme.email', agreed ? email : undefined],
    ['acme.listen', facesTheWeb ? ':80' : undefined],
    ['backup.directory', places.backups],
    ['backup.passphrase_file', places.passphrase],
  ]
  const check = places.system
    ? 'Check it with: pillarbox config check'
    : `Check it with: pillarbox config check --config ${places.config}`
  return chosen(Config, new Map(values), [
    `Settings of Pillarbox, written by pillarbox init on ${day}. It contains only the values that were chosen.`,
    `All settings with their defaults: ${program}/config/pillarbox.example.yaml`,
    places.system ? `${check}, and apply a change with: systemctl reload pillarbox` : check,
  ])
}
