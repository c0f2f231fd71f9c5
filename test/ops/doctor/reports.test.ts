import { expect, test } from 'vitest'
import { loadConfig } from '../../../src/config.ts'
import { linesOf, patient } from '../../support/checkup.ts'
import { verifiedDomain } from '../../support/verified-domain.ts'

test('reports that are on and cannot be sent are named, with what mends it; off, nothing is said of them', async () => {
  const { box } = await patient()
  const reload = async (env: Record<string, string>): Promise<void> => {
    await box.app.reload(await loadConfig({ env: { ...box.env, ...env }, cwd: box.directory }))
  }
  expect(await linesOf(box, 'reports')).toEqual([])
  const on = { PILLARBOX_REPORTS__TLS: 'true' }
  await reload(on)
  expect(await linesOf(box, 'reports')).toMatchObject([
    { status: 'warn', message: expect.stringContaining('not verified'), fix: expect.stringContaining('pillarbox domain check') },
  ])
  await verifiedDomain(box)
  expect(await linesOf(box, 'reports')).toMatchObject([{ status: 'pass', fix: null }])
  await reload({ ...on, PILLARBOX_OUTBOUND__MODE: 'none' })
  expect(await linesOf(box, 'reports')).toMatchObject([{ status: 'warn', fix: expect.stringContaining('outbound.mode') }])
})
