import { moneyText } from '../../cards/money.ts'
import { htmlEscaped } from '../../core/text.ts'
import type { Hold } from '../model.ts'

/** A hold in a digest, and the URL of the page on which it is decided. */
export interface DigestEntry {
  hold: Hold
  url: string
}

/** Subject and bodies of the digest of open holds; `more` is how many are not in it. */
export function digestMail(
  entries: readonly DigestEntry[],
  more: number,
  page: string,
): { subject: string; text: string; html: string } {
  const count = entries.length + more
  const subject = count === 1 ? 'One message waits for you to decide' : `${count} messages wait for you to decide`
  const rest = more > 0 ? `${more} more: ${page}` : ''
  const close =
    'To open a link changes nothing: you decide by a button on the page that it opens. Do not forward this mail: its links decide for you.'
  const text = entries.map(
    ({ hold, url }) => `${describe(hold).join('\n')}\n\nApprove: ${url}&decision=approve\nReject: ${url}&decision=reject\n`,
  )
  const html = entries.map(({ hold, url }) => {
    const [first = '', ...others] = describe(hold).map(htmlEscaped)
    const button = (decision: string, word: string): string =>
      `<a href="${htmlEscaped(`${url}&decision=${decision}`)}" style="display:inline-block;padding:8px 16px;border:1px solid #555">${word}</a>`
    return `<p><strong>${first}</strong><br>${others.join('<br>')}</p><p>${button('approve', 'Approve')} ${button('reject', 'Reject')}</p><hr>`
  })
  return {
    subject,
    text: [...text, ...(rest === '' ? [] : [rest, '']), close, ''].join('\n'),
    html: `<!doctype html><html><body>${html.join('')}<p>${htmlEscaped(rest)}</p><p>${htmlEscaped(close)}</p></body></html>`,
  }
}

function describe({ kind, email, sms, card, login, found, expires_at }: Hold): string[] {
  const recipients = email ? Object.values(email.recipients).flatMap((list) => list.map(({ address }) => address)) : []
  const what = {
    email: email
      ? [`E-mail: ${unlinked(email.subject)}`, `From ${email.from}`, `To ${shortList(recipients)}`]
      : ['An e-mail that was deleted'],
    sms: sms ? [`Text message to ${sms.to}`, unlinked(sms.body)] : ['A text message that was deleted'],
    card: card
      ? [
          `Reveal of the card ${unlinked(card.label)}, ending in ${card.last4} (${card.id})`,
          `Amount: ${moneyText(card.amount_cents, card.currency)}`,
          `For ${unlinked(card.purpose ?? 'no purpose that was said')}`,
        ]
      : ['A card that was deleted'],
    login: login
      ? [
          `Reveal of the login ${unlinked(login.label)}`,
          `At ${unlinked(login.host ?? 'no host')}`,
          `For ${unlinked(login.purpose ?? 'no purpose that was said')}`,
        ]
      : ['A login that was deleted'],
  }
  const kinds = [...new Set(found.map(({ kind: one }) => one))]
  return [
    ...what[kind],
    ...(kinds.length > 0 ? [`Found in it: ${kinds.join(', ')}`] : []),
    `Rejected at ${expires_at} if nobody decides`,
  ].map(line)
}

function shortList(addresses: readonly string[]): string {
  return addresses.length <= 5 ? addresses.join(', ') : `${addresses.slice(0, 5).join(', ')} and ${addresses.length - 5} more`
}

/** Text of an agent in which no mail program finds a link: the only ones that decide are the box's own. */
function unlinked(text: string): string {
  return text.replaceAll('://', ': //').replaceAll(/(?<=[\p{L}\p{N}])\.(?=\p{L})/gu, '[.]')
}

/** Text of an agent on one line, without what could hide or turn it around. */
function line(text: string): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').toWellFormed()
  return plain.length <= 300 ? plain : `${plain.slice(0, 300).toWellFormed()}…`
}
