/** The candidate most similar to a word: one or two typing errors away, ignoring case and separators; undefined when none is similar. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const given = plain(word)
  if (given === '' || given.length > 64) return undefined
  let best: string | undefined
  let least = given.length < 4 ? 1 : Math.max(2, Math.floor(given.length / 4))
  for (const candidate of candidates) {
    const distance = editDistance(given, plain(candidate))
    if (distance < least || (distance === least && best === undefined)) {
      best = candidate
      least = distance
    }
  }
  return best
}

function plain(word: string): string {
  return word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}

// Insertions, deletions, substitutions and transpositions: the optimal string alignment distance.
function editDistance(from: string, to: string): number {
  let before: number[] = []
  let above = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row += 1) {
    const here = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1]
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      here.push(
        Math.min(
          at(above, column) + 1,
          at(here, column - 1) + 1,
          at(above, column - 1) + (same ? 0 : 1),
          swapped ? at(before, column - 2) + 1 : Infinity,
        ),
      )
    }
    before = above
    above = here
  }
  return at(above, to.length)
}

function at(row: number[], column: number): number {
  return row[column] ?? Infinity
}

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

/** A percent-encoded text (RFC 3986 2.1); undefined when it is not UTF-8. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
