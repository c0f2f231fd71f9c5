import type { App } from '../app.ts'
import type { Config } from '../config.ts'

/**
 * What the first start says: the key, once, and three commands that work when pasted as they are. A key that the operator gave is a
 * secret of theirs, and is not written where logs are kept.
 */
export function welcome(app: App, config: Config, key: string): string {
  const url = app.publicUrl
  const { host, port } = app.smtpAddresses[0]!
  const smtp = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const address = `ada@${config.mail.domain}`
  const mail = `From: You <you@sender.test>\\r\\nTo: ${address}\\r\\nSubject: Hello Ada\\r\\n\\r\\nYour sign-in code is 493817.\\r\\n`
  return `
Pillarbox is running.

  API   ${url}  (reference at ${url}/docs)
  SMTP  ${smtp}  for ${config.mail.domain}

${config.bootstrap_key === undefined ? 'Your API key, shown this once. Keep it:' : 'Your API key is the bootstrap key you set:'}

export KEY=${config.bootstrap_key === undefined ? `'${key}'` : '"$PILLARBOX_BOOTSTRAP_KEY"'}

Then try these three:

# 1. create an identity
ID=$(curl -s ${url}/v1/identities -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"name":"Ada"}' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/'); echo "$ID"

# 2. send it a message
printf '${mail}' | curl -s smtp://${smtp} --mail-from you@sender.test --mail-rcpt ${address} -T - && echo sent

# 3. read it
curl -s "${url}/v1/identities/$ID/emails" -H "Authorization: Bearer $KEY"; echo

`
}
