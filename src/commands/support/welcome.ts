import type { App } from '../../app.ts'
import type { Config } from '../../config.ts'

/**
 * The output of the first start: the key, once, a link to the page, and three commands to paste. A key that the operator provided is not
 * printed, as the output may be logged.
 */
export function welcome(app: App, config: Config, key: string, setupLink: string | null): string {
  const { address: ip, port: apiPort } = app.httpAddresses.plain!
  // the plain port on this machine needs no trusted certificate
  const url = `http://${ip === '::' || ip === '0.0.0.0' ? '127.0.0.1' : ip.includes(':') ? `[${ip}]` : ip}:${apiPort}`
  const { host, port } = app.smtpAddresses[0]!
  const smtp = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const address = `ada@${config.mail.domain}`
  const mail = `From: You <you@sender.test>\\r\\nTo: ${address}\\r\\nSubject: Hello Ada\\r\\n\\r\\nYour sign-in code is 493817.\\r\\n`
  const { protocol, hostname } = new URL(app.publicUrl)
  // the URL for browsers
  const secure = protocol === 'https:' || /^(?:127\.[\d.]+|\[::1\]|(?:.+\.)?localhost)$/.test(hostname)
  const page = `To use the web page, set your password here (the link can be used once, within 24 hours):\n\n${setupLink}\n\n${secure ? '' : 'The page requires https, or localhost, and public_url is neither: set http.tls or put a reverse proxy with TLS in front, and public_url to https.\n\n'}`
  return `
Pillarbox is running.

  API   ${app.publicUrl}  (reference at ${app.publicUrl}/docs)
  SMTP  ${smtp}  for ${config.mail.domain}

${config.bootstrap_key === undefined ? 'Your API key, shown only once. Store it safely:' : 'Your API key is the bootstrap key you set:'}

export KEY=${config.bootstrap_key === undefined ? `'${key}'` : '"$PILLARBOX_BOOTSTRAP_KEY"'}

${setupLink === null ? '' : page}Then try these three:

# 1. create an identity
ID=$(curl -sS ${url}/v1/identities -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"name":"Ada"}' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/'); echo "$ID"

# 2. send it a message
printf '${mail}' | curl -sS smtp://${smtp} --mail-from you@sender.test --mail-rcpt ${address} -T - && echo sent

# 3. read it
curl -sS "${url}/v1/identities/$ID/emails" -H "Authorization: Bearer $KEY"; echo

`
}
