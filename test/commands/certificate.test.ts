import { expect, test } from 'vitest'
import { answer, lyingCa } from '../certificates/lying-ca.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { run } from '../support/program.ts'

const program = new URL('../../src/main.ts', import.meta.url).pathname

async function pillarbox(box: Appliance, ...words: string[]): Promise<{ status: number | null; output: string; errors: string }> {
  const { code, output, errors } = await run(process.execPath, [program, ...words], { env: box.env, cwd: box.directory })
  return { status: code, output: output.toString(), errors }
}

// six starts of the program
const timeout = 150_000

test(
  'certificates are listed beside a running box and on a stopped one, and asked for only where somebody could answer',
  { timeout: timeout },
  async () => {
    const ca = await lyingCa((_, response) =>
      answer(response, 403, { type: 'urn:ietf:params:acme:error:malformed', detail: 'not you' }),
    )
    const box = await appliance({
      PILLARBOX_HOSTNAME: 'mx.example.test',
      PILLARBOX_ACME__AGREE_TERMS: 'true',
      PILLARBOX_ACME__DIRECTORY: ca.directory,
      PILLARBOX_ACME__CA_FILE: ca.ca_file,
    })
    const renewed = await pillarbox(box, 'certificate', 'renew', 'mx.example.test', '--json')
    expect(renewed).toMatchObject({ status: 1, errors: '' })
    expect(JSON.parse(renewed.output)[0]).toMatchObject({ source: 'acme', problem: 'CA error: not you (malformed)' })
    expect(await pillarbox(box, 'certificate', 'renew', 'other.example.test')).toMatchObject({
      status: 1,
      errors: 'No certificate for other.example.test is obtained by ACME.\n',
    })
    const listed = await pillarbox(box, 'certificate', 'list')
    expect(listed.output).toMatch(/^NAMES +SOURCE +USED BY +GOOD UNTIL\n/)
    expect(listed.output).toMatch(/^mx\.example\.test +acme +none yet +CA error: not you \(malformed\)$/m)
    expect(listed.output).toMatch(/^mx\.example\.test localhost +self_signed +mail +20\d\d-/m)

    await box.app.stop()
    expect((await pillarbox(box, 'certificate', 'list')).output).toBe(listed.output)
    expect(await pillarbox(box, 'certificate', 'renew')).toMatchObject({
      status: 1,
      errors: 'The box is not running, so no CA can reach it. Start it first.\n',
    })
  },
)
