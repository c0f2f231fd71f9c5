/**
 * One line of a sender's words, fit to be shown beside others: white space and control characters are one space, and the characters that turn the
 * direction of what follows them (Unicode TR 9) are left out. Letters that are written from right to left turn by themselves.
 */
export function shownLine(text: string): string {
  return text
    .replace(new RegExp(turning, 'gu'), '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
}

/** Whether text has a character that turns the direction of what follows it. */
export function isTurned(text: string): boolean {
  return turning.test(text)
}

const turning = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u
