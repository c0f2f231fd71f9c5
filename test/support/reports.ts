import { message } from './appliance.ts'

/** A delivery status notification as Postfix writes it: the delivery to one recipient failed for good. */
export function failureReport({
  recipient,
  reporter,
  status = '5.1.1',
  words = `550 5.1.1 <${recipient}>: Recipient address rejected: User unknown`,
  returned = 'Subject: Hello\r\n',
}: {
  recipient: string
  reporter: string
  status?: string
  words?: string
  /** The header of the message that failed. */
  returned?: string
}): string {
  const parts = [
    `Content-Description: Notification\nContent-Type: text/plain; charset=us-ascii\n\nThis is the mail system at host ${reporter}.\n\n<${recipient}>: ${words}\n`,
    `Content-Description: Delivery report\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; ${reporter}\nX-Postfix-Queue-ID: 4c1xYz0Q\nArrival-Date: Fri, 20 Nov 2026 10:00:00 +0000 (UTC)\n\nFinal-Recipient: rfc822; ${recipient}\nOriginal-Recipient: rfc822;${recipient}\nAction: failed\nStatus: ${status}\nRemote-MTA: dns; inner.test\nDiagnostic-Code: smtp; ${words}\n`,
    `Content-Description: Undelivered Message Headers\nContent-Type: text/rfc822-headers\n\n${returned}`,
  ]
  const head = {
    From: `MAILER-DAEMON@${reporter} (Mail Delivery System)`,
    Subject: 'Undelivered Mail Returned to Sender',
    'Auto-Submitted': 'auto-replied',
    'MIME-Version': '1.0',
    'Content-Type': 'multipart/report; report-type=delivery-status; boundary="4c1xYz0Q.1763632800/far"',
  }
  const boundary = '--4c1xYz0Q.1763632800/far'
  return message(
    head,
    `This is a MIME-encapsulated message.\n\n${parts.map((part) => `${boundary}\n${part}\n`).join('')}${boundary}--\n`,
  )
}
