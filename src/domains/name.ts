import { domainToASCII } from 'node:url'

/** With the longest local part it still makes an address of 254 octets (RFC 5321 4.5.3.1.3). */
const longest = 189

/** A domain in lower-case A-labels without a dot at its end; undefined for what mail could not be sent to, such as `localhost` or `192.0.2.1`. */
export function domainNameOf(text: string): string | undefined {
  const bare = text.trim().replace(/[.\u3002]$/, '')
  // domainToASCII reads a URL's host: what ends one there is no part of a domain
  const name = /^[^\s/?#@:%\\[\]]+$/.test(bare) ? domainToASCII(bare) : ''
  const labels = name.split('.')
  const sound = labels.length > 1 && labels.every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label))
  return sound && name.length <= longest && !/^\d+$/.test(labels.at(-1)!) ? name : undefined
}
