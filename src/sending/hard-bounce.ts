/** What a server said of a recipient, in its own reply or in a report. */
interface Said {
  smtp_code: number | null
  enhanced_code: string | null
  /** Its words. */
  response: string | null
}

/**
 * Whether there is nobody at the address, and will not be: 5.1.x but for what is the sender's fault (5.1.7 to 5.1.9), 5.2.1, or words to this
 * effect where the code is vague. Full mailboxes, policy and spam are not that.
 */
export function isHard({ smtp_code, enhanced_code, response }: Said): boolean {
  if (enhanced_code !== null && !/^5\.\d\.0$/.test(enhanced_code)) {
    return /^5\.1\.(?![789]$)\d+$/.test(enhanced_code) || enhanced_code === '5.2.1'
  }
  if (smtp_code !== null && ![550, 551, 553, 554].includes(smtp_code)) return false
  const words = response ?? ''
  return nobody.some((pattern) => pattern.test(words)) && !aboutUs.test(words)
}

const nobody = [
  /\b(?:no such|unknown|invalid|unrout(?:e)?able|non-?existent|bad destination)\s(?:\w+\s)?(?:user|recipient|mailbox|address|account|person|name)/i,
  /\b(?:user|recipient|mailbox|address|account|person)\b[^.;]{0,60}\b(?:unknown|invalid|disabled|not (?:found|known|exist|have)|doesn'?t (?:exist|have))/i,
  /\bno mailbox (?:here )?by that name\b/i,
]

const aboutUs = /spam|block|black|polic|reputation|denied|banned|listed|relay|\brbl\b|\bspf\b|\bdkim\b|\bdmarc\b|quota|full/i
