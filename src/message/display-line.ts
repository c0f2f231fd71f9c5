/**
 * Untrusted text as one line that is safe to display beside other text: white space and control characters become one space, and explicit
 * direction controls (Unicode TR 9) are removed. Right-to-left letters need no such controls.
 */
export function displayLine(text: string): string {
  return text
    .replace(new RegExp(directionControls, 'gu'), '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
}

/** True if text has an explicit direction control. */
export function hasDirectionControls(text: string): boolean {
  return directionControls.test(text)
}

const directionControls = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u
