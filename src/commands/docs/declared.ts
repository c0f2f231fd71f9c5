import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { App } from '../../app.ts'
import { loadConfig } from '../../config.ts'
import { createLog } from '../../core/log.ts'

/** The declarations of a box (its routes, its events, its encrypted columns), from an empty one that is never started. */
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
