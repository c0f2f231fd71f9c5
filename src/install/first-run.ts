import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { createLog } from '../core/log.ts'

export interface FirstRun<T> {
  /** Null when the operator provided one. */
  first_key: string | null
  /** The URL at which the operator sets a password; null once there is one. */
  setup_link: string | null
  account: { id: string; name: string }
  answer: T
}

/**
 * Starts the box once, on random local ports, runs `work`, and stops it. The caller gets the first key: no later start creates another.
 * Throws a sentence when the box cannot start.
 */
export async function firstRun<T>(config: Config, work: () => Promise<T>): Promise<FirstRun<T>> {
  const own = { host: '127.0.0.1', port: 0 }
  const hidden: Config = {
    ...config,
    http: { ...config.http, listen: own, tls: undefined },
    metrics: { ...config.metrics, listen: undefined },
    smtp: { ...config.smtp, listen: [own] },
    acme: undefined,
    submission: { ...config.submission, listen: [], listen_tls: [] },
  }
  const { App } = await import('../app.ts')
  const app = await App.open(hidden, createLog('silent'))
  try {
    const { firstKey } = await app.start()
    const answer = await work()
    await app.firstKeyShown()
    const { accounts } = JSON.parse(readFileSync(join(config.data_dir, 'state.json'), 'utf8')) as {
      accounts: { id: string; name: string }[]
    }
    const { id, name } = accounts[0]!
    const setup_link = await app.setupLink()
    return { first_key: config.bootstrap_key === undefined ? firstKey : null, setup_link, account: { id, name }, answer }
  } finally {
    await app.stop()
  }
}
