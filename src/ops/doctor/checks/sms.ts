import { about, newCheck, type Check, reasonOf } from '../check.ts'
import type { BoxContext } from '../context.ts'

const timeout = 20_000

/** Checks that the SMS provider is reachable and accepts our credentials. */
export function sms({ carrier: provider }: BoxContext): Check {
  return newCheck('sms', 'usual', async () => {
    if (!provider) return []
    const { name, capabilities } = provider
    const line = about('sms', name)
    if (!provider.check) return [line.pass('Text messages stay on this box.')]
    try {
      await provider.check(AbortSignal.timeout(timeout))
      const codes = capabilities.receives_otp
        ? ''
        : ' One-time codes that its numbers receive are redacted (error 30038); sms.provider android receives them.'
      return [line.pass(`It answers, and accepts the credentials.${codes}`)]
    } catch (error) {
      return [line.fail(`${reasonOf(error)}.`.replace(/\.\.$/, '.'), `Check sms.${name}.*: its address, user and secrets.`)]
    }
  })
}
