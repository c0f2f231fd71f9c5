import { card } from '../support/card.ts'
import { OutboundProcess } from '../support/outbound-process.ts'

const count = 160

/** A box whose Ada has so many cards, one-time passwords and scheduled e-mails. */
export async function rich(): Promise<OutboundProcess> {
  const desk = await OutboundProcess.open()
  const own = `/v1/identities/${desk.ada.id}`
  const make = async (number: number): Promise<void> => {
    const at = new Date(Date.now() + (24 + number / 100) * 3_600_000).toISOString()
    await desk.post(`${own}/cards`, card())
    await desk.post(`${own}/totp`, { service_name: `s${number}`, secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' })
    await desk.post(`${own}/emails`, { to: desk.bob.email, subject: `${number}`, send_at: at })
  }
  for (let number = 0; number < count; number += 10)
    await Promise.all(Array.from({ length: 10 }, (_, place) => make(number + place)))
  return desk
}

/** How much is left of what an identity had, and whether each event was written once. */
export function left(desk: OutboundProcess): unknown {
  return desk.rows(`SELECT
    (SELECT count(*) FROM cards WHERE status <> 'cancelled') AS cards,
    (SELECT count(*) FROM card_secrets WHERE encrypted_data <> zeroblob(length(encrypted_data))) AS blobs,
    (SELECT count(*) FROM totp_entries) + (SELECT count(*) FROM totp_secrets WHERE secret <> zeroblob(length(secret))) AS secrets,
    (SELECT count(*) FROM emails WHERE status = 'scheduled') AS emails,
    (SELECT count(*) FROM events WHERE type = 'card.cancelled') AS card_events,
    (SELECT count(DISTINCT resource_id) FROM events WHERE type = 'card.cancelled') AS cancelled_cards,
    (SELECT count(*) FROM events WHERE type = 'email.cancelled') AS email_events,
    (SELECT count(DISTINCT resource_id) FROM events WHERE type = 'email.cancelled') AS cancelled_emails`)[0]
}

/** As `left`, once all has ended. */
export const nothing = {
  cards: 0,
  blobs: 0,
  secrets: 0,
  emails: 0,
  card_events: count,
  cancelled_cards: count,
  email_events: count,
  cancelled_emails: count,
}
