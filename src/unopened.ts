import type { Config } from './config.ts'
import { systemClock } from './core/clock.ts'
import { masterKeySource } from './core/service-unit.ts'
import { examine } from './ops/doctor/check.ts'
import type { Line } from './ops/doctor/model.ts'
import { ExternalView } from './ops/doctor/external-view.ts'
import { doctorSettings, outerChecks } from './ops/doctor/module.ts'
import { opening } from './ops/doctor/remedies.ts'
import { inquire } from './mailauth/inquire.ts'

/** The checks of the doctor for a box that cannot be opened: of its settings, files, ports and the DNS. */
export async function seenFromOutside(config: Config, version: string): Promise<Line[]> {
  const settings = doctorSettings(config)
  const externalView = new ExternalView(settings, () => inquire({ hostname: config.hostname, dns: config.dns }))
  const checks = outerChecks({
    settings,
    externalView,
    version,
    now: () => systemClock.now(),
    publicUrl: () => config.public_url,
    present: () => undefined,
  })
  return (await Promise.all(checks.map((check) => examine(check, true)))).flatMap(({ lines }) => lines)
}

/** The remedy for a box that could not be opened, by the error. */
export function openingRemedy(error: unknown, config: Config): string {
  const { data_dir, keys_dir, master_key_file } = doctorSettings(config)
  return opening(error, { data_dir, keys_dir, master_key: masterKeySource({ data_dir, keys_dir, master_key_file }) })
}
