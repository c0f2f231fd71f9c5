import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Places } from '../../install/places.ts'
import { serviceUser } from '../../install/service-user.ts'
import { program } from '../../install/units.ts'
import { isPublic } from '../../net/public-addresses.ts'

export interface InitOutcome {
  data: string
  keys: string
  config: string
  domain: string
  hostname: string
  /** The file with the records to publish. */
  zone: string
  units: string[]
  log: string
  dns_records: ZoneRecord[]
  account: { id: string; name: string }
  /** The API key, shown only once. Null when the operator provided one. */
  first_key: string | null
  /** The URL at which the operator sets a password, once and within a day; null when there is one. */
  setup_link: string | null
  warnings: string[]
}

export function formatOutcome(outcome: InitOutcome, places: Places): string {
  const { data, config, domain, zone, first_key, warnings, log } = outcome
  return `
The box for ${domain} is set up.

  Settings  ${config}
  Data      ${data}
  Keys      ${outcome.keys}
  Log       ${log}
${outcome.units.map((file) => `  Unit      ${file}\n`).join('')}
${first_key === null ? 'Your API key is the bootstrap key you set.' : `Your API key, shown only once. Store it safely:\n\nexport KEY='${first_key}'`}
${warnings.length === 0 ? '' : `\nTo be corrected:\n${warnings.map((one) => `\n  - ${one}`).join('')}\n`}
Next:

${steps(outcome, places).join('\n\n')}

${readFileSync(zone, 'utf8')}`
}

function steps({ domain, config, units, zone, setup_link }: InitOutcome, places: Places): string[] {
  const { passphrase } = places
  const command = places.system ? 'pillarbox' : join(program, 'bin', 'pillarbox')
  const own = places.system ? '' : ` --config ${config}`
  return [
    `1. Start it:\n\n     ${start(places, units, `${command} serve${own}`)}`,
    `2. Publish the records below (also in ${zone}), then check them:\n\n     ${command} domain check ${domain}${own}`,
    ...(setup_link === null
      ? []
      : [`3. Set your password, once the box runs (the link can be used once, within 24 hours):\n\n     ${setup_link}`]),
    `${setup_link === null ? 3 : 4}. Keep a copy of ${passphrase} in another safe place, apart from the backups:\n` +
      `   the keys in them open only with it (pillarbox backup --auto, ${program}/docs/data.md).`,
  ]
}

function start({ system }: Places, units: string[], serve: string): string {
  if (!system) return serve
  if (existsSync('/run/systemd/system') && units.length > 0) {
    return 'systemctl daemon-reload && systemctl enable --now pillarbox.service pillarbox-backup.timer'
  }
  const right = '--inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service'
  return `setpriv --reuid=${serviceUser} --regid=${serviceUser} --clear-groups ${right} ${serve}`
}

/** A record to publish, in the format of the API. */
export interface ZoneRecord {
  purpose: string
  required: boolean
  type: string
  name: string
  value: string
  ttl: number
}

export function addressRecords(hostname: string, addresses: readonly string[]): ZoneRecord[] {
  return addresses.filter(isPublic).map((value) => ({
    purpose: 'address',
    required: true,
    type: value.includes(':') ? 'AAAA' : 'A',
    name: hostname,
    value,
    ttl: 3600,
  }))
}

/** The domain's zone, followed by these records as its further lines (RFC 1035 5.1). */
export function wholeZone(records: readonly ZoneRecord[], zone: string): string {
  const lines = records.map(({ name, ttl, type, value }) => `${name}. ${ttl} IN ${type} ${value}`)
  return lines.length === 0 ? zone : `${zone.trimEnd()}\n${lines.join('\n')}\n`
}
