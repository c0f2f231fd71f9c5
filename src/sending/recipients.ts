import { invalid } from '../core/fault.ts'
import type { Address } from '../mail/model.ts'

/**
 * One recipient as a caller writes it, `ada@example.com` or `Ada <ada@example.com>`. Throws Fault invalid_request with the parameter for
 * anything else: lists in one text, groups, address literals, line breaks.
 */
export function recipientAddress(text: string, param: string): Address {
  const parts = /^\s*(?:"?([^"<>\r\n\0]*?)"?\s*<([^<>]+)>|([^\s<>]+))\s*$/u.exec(text)
  const address = parts?.[2] ?? parts?.[3] ?? ''
  if (!/^[^\s@,;:"()<>[\]\\]{1,64}@[^\s@,;:"()<>[\]\\]+\.[^\s@,;:"()<>[\]\\.]+$/u.test(address)) {
    throw invalid(param, `${JSON.stringify(text.slice(0, 100))} is not an e-mail address such as ada@example.com.`)
  }
  return { address, name: parts?.[1]?.trim() ?? '' }
}
