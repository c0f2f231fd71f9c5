/**
 * A text without those of `characters` that stand at its end. In one pass: a regular expression like `/-+$/` begins anew at each of a row of
 * hyphens that something else follows, and so takes time in the square of their number.
 */
export function withoutEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text[end - 1]!)) end -= 1
  return text.slice(0, end)
}

/** A text without those of `characters` that stand at either of its ends. */
export function withoutEnds(text: string, characters: string): string {
  let start = 0
  while (start < text.length && characters.includes(text[start]!)) start += 1
  return withoutEnd(text.slice(start), characters)
}
