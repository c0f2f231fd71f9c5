import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { App } from '../../app.ts'
import { loadConfig } from '../../config.ts'
import { createLog } from '../../core/log.ts'

/** What a box declares (its routes, its events, what it seals), from one that is opened with nothing in it and never started. */
export async function declared<T>(look: (app: App) => T): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-declared-'))
  try {
    const config = await loadConfig({ env: { PILLARBOX_DATA_DIR: join(directory, 'data') }, cwd: directory })
    const { App } = await import('../../app.ts')
    const app = await App.open(config, createLog('silent'))
    try {
      return look(app)
    } finally {
      await app.stop()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
