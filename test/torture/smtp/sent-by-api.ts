import { pick, type Random } from '../../support/random.ts'
import { falseEnds, hiddenOf } from './dialogue-grammar.ts'

/** A message for the API in which another is hidden behind a false end, in any part that a caller writes. */
export function hidingEmail(random: Random, to: string, marker: string): Record<string, unknown> {
  const text = `Hello.${pick(falseEnds, random)}${hiddenOf('writer@pillarbox.test', to, marker).join(pick(['\r\n', '\n', '\r'], random))}${pick(falseEnds, random)}`
  const content = Buffer.from(text).toString('base64')
  const types = ['text/plain', 'text/html', 'message/rfc822', 'message/delivery-status', 'application/octet-stream']
  const places = [
    { body_text: text },
    { body_text: text.replaceAll('\0', '') },
    { body_html: `<p>${text.replaceAll('\0', '')}</p>` },
    { headers: { 'X-Hidden': text } },
    { reply_to: `"${text}" <a@far0.test>` },
    { attachments: [{ filename: 'a.eml', content_type: pick(types, random), content }] },
    { attachments: [{ filename: `a${text}`, content }] },
  ]
  return { to, subject: marker, body_text: 'Hello.', ...pick(places, random) }
}
