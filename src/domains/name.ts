import { hostNameOf } from '../core/domain-names.ts'

/** With the longest local part it still makes an address of 254 octets (RFC 5321 4.5.3.1.3). */
const longest = 189

/** A domain in lower-case A-labels without a dot at its end; undefined for what mail could not be sent to, such as `localhost` or `192.0.2.1`. */
export function mailDomainOf(text: string): string | undefined {
  // letters and full stops as East Asian keyboards write them: whoever names a domain of their own is shown what it was taken for
  const typed = text.trim().normalize('NFKC').replaceAll('\u3002', '.')
  const name = hostNameOf(typed.replace(/\.$/, ''))
  return name?.includes('.') && name.length <= longest ? name : undefined
}
