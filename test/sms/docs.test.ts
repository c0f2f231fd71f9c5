import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { run } from '../support/program.ts'

const text = readFileSync(new URL('../../docs/sms.md', import.meta.url), 'utf8')

test('the shell example of docs/sms.md hands a message in', async () => {
  const secret = `whsec_${Buffer.from('a secret of the bridge').toString('base64')}`
  const box = await appliance({
    PILLARBOX_SMS__PROVIDER: 'http',
    PILLARBOX_SMS__HTTP__URL: 'http://127.0.0.1:9/sms',
    PILLARBOX_SMS__HTTP__SECRET: secret,
    PILLARBOX_SMS__HTTP__NUMBERS: '+4915112345678',
  })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  const script = /```sh\n(.*?)```/s.exec(text)![1]!
  const call = (SECRET: string) => run('sh', ['-eu'], { input: script, env: { BOX: box.url, SECRET } })
  const forged = await call('whsec_c29tZWJvZHkgZWxzZQ==')
  expect(JSON.parse(forged.output.toString())).toMatchObject({ error: { status: 403, code: 'bad_signature' } })
  const { output, errors } = await call(secret)
  expect([output.toString(), errors]).toEqual(['{"effect":true}', ''])
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/sms`)
  expect(body.data).toMatchObject([{ body: 'Your code is 271828', codes: ['271828'], from: '+4917012345678' }])
})
