import { join } from 'node:path'
import type { Clock } from '../../../src/core/clock.ts'
import { type Appliance, appliance } from '../../support/appliance.ts'
import { folder } from '../../support/folder.ts'
import { lendCertificate } from '../../support/own-certificate.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase } from './server.ts'

let databases = 0

/** Opens boxes on one new database, with one master key and one DNS, and starts them; they are stopped when the test ends. */
export async function severalBoxes(
  postgres: PostgresServer,
  count = 2,
  env: Record<string, string> | ((number: number) => Record<string, string>) = {},
  clock?: Clock,
): Promise<[Appliance, Appliance, ...Appliance[]]> {
  const database = `boxes_${(databases += 1)}`
  await emptyDatabase(postgres, database)
  const keys = join(folder(), 'keys')
  const boxes: Appliance[] = []
  for (let number = 0; number < count; number += 1) {
    const data = join(folder(), 'data')
    await lendCertificate(data)
    const settings = {
      PILLARBOX_DATA_DIR: data,
      PILLARBOX_KEYS_DIR: keys,
      PILLARBOX_DATABASE__URL: postgres.url(database),
      ...(boxes[0] && { PILLARBOX_DNS__SERVERS: boxes[0].dns.servers.join(',') }),
      ...(typeof env === 'function' ? env(number) : env),
    }
    const box = await appliance(settings, clock, { postgres: { shared: true, heartbeat } })
    if (boxes[0]) box.dns = boxes[0].dns
    boxes.push(box)
  }
  return boxes as [Appliance, Appliance]
}
