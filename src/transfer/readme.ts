/** What a person finds first in an export. */
export function readme(address: string, made: string, files: readonly string[]): string {
  return `An export of ${address}, made ${made} by Pillarbox.

identity.json    the identity
messages.mbox    every e-mail, oldest first, spam too (mboxrd: lines that begin with "From " have a ">" more; line ends are LF)
eml/             e-mails as files of their own: all of them, or those whose octets an mbox cannot hold exactly
messages.jsonl   a line for each e-mail: everything the box knows of it but its words; "file" and "mbox_index" say where it is
sms.jsonl        a line for each text message, oldest first; what came with it is in media/
threads.jsonl    conversations
events.jsonl     what happened, oldest first
cards.jsonl      cards: what they are called and what they may spend
totp.jsonl       services with one-time passwords
agents.jsonl     the public profile

Received messages are exactly the octets that came. Sent ones have the date and signatures with which they left.

NOT in here, because the box cannot read it or must not give it away:
- what is encrypted in cards (encrypted_data): the client that made it has the key, the box has not;
- the secrets of one-time passwords: set them up anew at each service;
- API keys, webhooks and suppressions: they belong to the account.
What the key that asked for the export may not read is not here either. These files are: ${files.join(', ')}.

pillarbox import <identity> <this file> puts messages and text messages into another identity.
`
}
