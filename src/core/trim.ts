/**
 * Removes `characters` from the end of a text. A single pass: a regular expression like `/-+$/` starts again at each hyphen of a run that
 * something else follows, which takes quadratic time.
 */
export function trimEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text[end - 1]!)) end -= 1
  return text.slice(0, end)
}

/** Removes `characters` from both ends of a text. */
export function trimBothEnds(text: string, characters: string): string {
  let start = 0
  while (start < text.length && characters.includes(text[start]!)) start += 1
  return trimEnd(text.slice(start), characters)
}
