import type { DomainStatusReport } from '../../../domains/status.ts'
import { about, sharedCheck, type Check } from '../check.ts'
import type { BoxContext } from '../context.ts'
import type { Line } from '../model.ts'

/** One line for each kind of record of each domain. */
export function domains({ lookUpDomains: lookUp }: BoxContext): Check {
  return sharedCheck('domains', 'often', async (asked) => (await lookUp(asked)).flatMap((domain) => linesOf(domain)))
}

/** Whether mail from the box's own domain can be sent to any address. */
export function sending({ sendingRights, settings }: BoxContext): Check {
  return sharedCheck('sending', 'often', async () => {
    const { explanation, fix } = sendingRights()
    const line = about('sending', settings.domain)
    // a box that is not to send is not at fault
    return [fix === null || settings.mode === 'none' ? line.pass(explanation) : line.warn(explanation, fix)]
  })
}

function linesOf({ name, receives, records }: DomainStatusReport): Line[] {
  const purposes = [...new Set(records.map(({ purpose }) => purpose))]
  return purposes.map((purpose) => {
    const line = about(purpose, name)
    // a spare key is for the next rotation, and a retired one for older mail
    const counted = records.filter((record) => record.purpose === purpose && !record.idle)
    const wrong = counted.filter(({ status }) => status !== 'valid')
    const [first] = wrong
    const silent = counted.find(({ unanswered }) => unanswered)
    if (!first) return line.pass(silent ? formerly(silent) : 'It is correct.')
    const publish = wrong.map(({ zone }) => zone).join('\n')
    const verb = first.status === 'invalid' ? 'Replace it with' : 'Publish'
    const message = wrong.map(({ reason }) => reason ?? 'It is not correct.').join(' ')
    const serious = wrong.some(({ required, unanswered }) => required && !unanswered) && receives
    return line.of(serious ? 'fail' : 'warn', message, `${verb}: ${publish}`)
  })
}

/** A record that was correct at the last answer is not reported as wrong for a missing one. */
function formerly({ seen_at }: DomainStatusReport['records'][number]): string {
  return `The DNS lookup failed now; ${seen_at === null ? 'before' : `on ${seen_at}`} it was correct.`
}
