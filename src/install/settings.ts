import { chosen } from '../config/documents.ts'
import { Config } from '../config.ts'
import type { Places } from './places.ts'
import { program } from './units.ts'

/** What the operator chose. */
export interface Choice {
  domain: string
  hostname: string
  /** Where mail for postmaster and abuse is forwarded. */
  email?: string | undefined
  /** A web server of this machine passes the API on. */
  behindProxy: boolean
  /** Whoever runs the box may open ports below 1024. */
  lowPorts: boolean
}

/** The settings file of a new box: what was chosen, and nothing that is so anyway. */
export function settingsText({ domain, hostname, email, behindProxy, lowPorts }: Choice, places: Places, day: string): string {
  const values: [string, unknown][] = [
    ['data_dir', places.data],
    ['keys_dir', places.keys === `${places.data}-keys` ? undefined : places.keys],
    ['hostname', hostname],
    ['public_url', behindProxy ? `https://${hostname}` : undefined],
    ['http.trusted_proxies', behindProxy ? ['127.0.0.1/32', '::1/128'] : undefined],
    ['smtp.listen', lowPorts ? ':25' : ':2525'],
    ['mail.domain', domain],
    ['mail.postmaster', email],
    ['backup.directory', places.backups],
  ]
  const check = places.system
    ? 'Check it with: pillarbox config check'
    : `Check it with: pillarbox config check --config ${places.config}`
  return chosen(Config, new Map(values), [
    `Settings of Pillarbox, written by pillarbox init on ${day}. Only what was chosen stands here.`,
    `Every setting there is, with its default: ${program}/config/pillarbox.example.yaml`,
    places.system ? `${check}, and take a change over with: systemctl reload pillarbox` : check,
  ])
}
