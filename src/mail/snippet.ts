const most = 200

/** At most 200 characters of one line: white space folded, invisible padding taken out. */
export function snippetOf(text: string): string {
  const close = text.slice(0, 600)
  // Far more is looked at only where padding fills the first of it.
  const start = padded.test(close) || /\s{9}/.test(close) ? text.slice(0, 6000) : close
  const visible = padded.test(start) ? start.replace(padding, '').replace(looseJoiners, '') : start
  const line = visible.replace(/\s+/g, ' ').trim()
  if (line.length <= most) return line
  return line
    .slice(0, most)
    .toWellFormed()
    .replace(/\uFFFD$/, '')
    .trimEnd()
}

/** Markdown without its marks, for people to read in one line. */
export function unmarked(markdown: string): string {
  return markdown
    .slice(0, 8000)
    .replace(/\[([^[\]\n]{0,200})\]\(https?:[^()\s]{0,8192}\)/g, '$1')
    .replace(/^(?:#{1,6} |- |> )/gm, '')
    .replace(/^---$/gm, '')
    .replace(/ \| /g, ' ')
}

const padded = /[\u034f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u2800\u3164\ufeff]/
const padding = /[\u034f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\u2800\u3164\ufeff]/g
// Joiners mean something between letters (Persian, emoji); beside a space they only fill.
const looseJoiners = /(?<=^|\s)[\u200c\u200d]|[\u200c\u200d](?=[\s\u200c\u200d]|$)/g
