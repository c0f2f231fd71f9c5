import type { Config } from './config.ts'
import { systemClock } from './core/clock.ts'
import { masterKeySource } from './core/service-unit.ts'
import { about } from './doctor/check.ts'
import { examine } from './doctor/examination.ts'
import { summary } from './doctor/model.ts'
import type { Line } from './doctor/model.ts'
import { outerChecks } from './doctor/outer-checks.ts'
import { Outlook } from './doctor/outlook.ts'
import { doctorSettings } from './doctor/part.ts'
import { asRoot, opening } from './doctor/remedies.ts'
import { inquire } from './mail/inquire.ts'

export { about, asRoot, summary }
export type { Line }

/** What the doctor can say of a box that cannot be opened: from its settings, its files, its ports and the DNS. */
export async function seenFromOutside(config: Config, version: string): Promise<Line[]> {
  const settings = doctorSettings(config)
  const outlook = new Outlook(settings, () => inquire({ hostname: config.hostname, dns: config.dns }))
  const checks = outerChecks(settings, {
    outlook,
    version,
    now: () => systemClock.now(),
    publicUrl: () => config.public_url,
    present: () => undefined,
  })
  return (await Promise.all(checks.map((check) => examine(check, true)))).flatMap(({ lines }) => lines)
}

/** What mends a box that could not be opened, by the error that this threw. */
export function openingRemedy(error: unknown, config: Config): string {
  const { data_dir, keys_dir, master_key_file } = doctorSettings(config)
  return opening(error, { data_dir, keys_dir, master_key: masterKeySource({ data_dir, keys_dir, master_key_file }) })
}
