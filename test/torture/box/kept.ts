import type { RunningBox } from './world.ts'

/**
 * What is wrong with the message that came last, as the box keeps and shows it; undefined when it is as it was sent. What was put before it must be
 * like this.
 */
export async function faultOfKept(box: RunningBox, inbox: string, sent: string, before?: RegExp): Promise<string | undefined> {
  const found: string[] = []
  for (const spam of [false, true]) {
    const list = await box.get('GET', `/v1/identities/${inbox}/emails?limit=1&duplicates=true&spam=${spam}`)
    for (const { id } of list['data'] as { id: string }[]) {
      const kept = withoutTrace(await box.text(`/v1/identities/${inbox}/emails/${id}/raw`))
      if (!kept.endsWith(withoutTrace(sent))) {
        found.push(difference(kept, withoutTrace(sent)))
        continue
      }
      const added = kept.slice(0, kept.length - withoutTrace(sent).length)
      if (before?.test(added) === false) return `before it stands ${JSON.stringify(added)}`
      const shown = await box.ask('GET', `/v1/identities/${inbox}/emails/${id}`)
      return shown?.status === 200 ? undefined : `it is shown with ${shown?.status} ${JSON.stringify(shown?.body)}`
    }
  }
  return `it is kept with other bytes, or not at all: ${found.join(', or ')}`
}

/** A message without the fields that `GET …/raw` leaves out where they are forged (docs/email.md). */
function withoutTrace(text: string): string {
  const end = text.startsWith('\r\n') ? 0 : text.indexOf('\r\n\r\n')
  const head = end < 0 ? text : text.slice(0, end + 2)
  const fields = /^(?:return-path|authentication-results)(?:[ \t]|\r\n[ \t])*:.*(?:\r\n[ \t].*)*\r\n/gim
  return head.replaceAll(fields, '') + text.slice(head.length)
}

/** Where a text and what is kept of it differ first, seen from the end. */
export function difference(kept: string, sent: string): string {
  let same = 0
  while (same < sent.length && kept.at(-1 - same) === sent.at(-1 - same)) same += 1
  const around = (text: string): string =>
    JSON.stringify(text.slice(Math.max(0, text.length - same - 30), text.length - same + 30))
  return `sent ${around(sent)}, kept ${around(kept)}`
}
