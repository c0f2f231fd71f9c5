/** The enhanced code (RFC 3463) that a text holds. */
export function enhancedCodeIn(text: string | null): string | null {
  return /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?!\.?\d)/.exec(text ?? '')?.[1] ?? null
}

/** The SMTP reply code that a text holds: first what stands at its start, then anywhere. */
export function smtpCodeIn(text: string | null): number | null {
  const found = /^\W{0,9}([245]\d\d)(?=[ \-#]|$)/.exec(text ?? '') ?? /(?<![\d.:/-])([45][0-5]\d)(?=[ \-#]\S)/.exec(text ?? '')
  return found ? Number(found[1]) : null
}
