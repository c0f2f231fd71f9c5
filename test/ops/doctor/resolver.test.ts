import { expect, test } from 'vitest'
import { patient, published, linesOf } from '../../support/checkup.ts'
import { run } from '../../support/program.ts'
import { loadConfig } from '../../../src/config.ts'

const program = new URL('../../../src/main.ts', import.meta.url).pathname

test('a resolver that gives no answer fails, a domain check says that it could not look, and another resolver mends both', async () => {
  const { box } = await patient()
  await published(box)
  const check = async (): Promise<{ code: number | null; output: string }> => {
    const { code, output } = await run(process.execPath, [program, 'domain', 'check', 'box.test'], {
      env: box.env,
      cwd: box.directory,
    })
    return { code, output: output.toString() }
  }
  expect(await linesOf(box, 'dns')).toMatchObject([{ status: 'pass' }])
  const well = await check()
  expect(well).toMatchObject({ code: 0, output: expect.stringMatching(/^box\.test is verified\.\n/) })
  expect(Math.max(...well.output.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
  const { servers } = box.dns
  const silent = { ...box.env, PILLARBOX_DNS__SERVERS: '127.0.0.1:9', PILLARBOX_OUTBOUND__IPV6: 'false' }
  await box.app.reload(await loadConfig({ env: silent, cwd: box.directory }))
  expect(await linesOf(box, 'dns')).toMatchObject([
    {
      subject: '127.0.0.1:9',
      status: 'fail',
      message: 'The DNS lookup of mx.box.test and box.test failed: mail can be neither sent nor checked.',
      fix: 'Set dns.servers to a resolver that answers, then: systemctl reload pillarbox',
    },
  ])
  // nor is it said that a name has no address
  expect(await linesOf(box, 'helo')).toMatchObject([{ status: 'warn', message: 'The DNS lookup failed.' }])
  const blind = await check()
  expect(blind.code).toBe(1)
  expect(blind.output).toMatch(/^The DNS lookup of any of its records failed: box\.test remains verified/)
  expect(blind.output).toMatch(/^valid {2}MX {2}box\.test \(no answer; result of 20\d\d-/m)
  expect(Math.max(...blind.output.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
  // the remedy
  await box.app.reload(await loadConfig({ env: { ...box.env, PILLARBOX_DNS__SERVERS: servers.join(',') }, cwd: box.directory }))
  expect(await linesOf(box, 'dns')).toMatchObject([{ status: 'pass' }])
  expect(await check()).toMatchObject({ code: 0 })
})
