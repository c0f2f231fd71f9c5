/**
 * HTML that the tokenizer used here reads as browsers do (HTML 13.2.5): without what they take for a comment in `<!>`, `</ x>` or CDATA, with closing
 * tags that have no attributes, and with the text of elements that have no tags inside. Linear in the text.
 */
export function asInBrowsers(html: string): string {
  const kept: string[] = []
  const marks = /<(?:!--|[!?]|\/(?:[^a-z]|$)|\/?[a-z])/gi
  let at = 0
  for (let found = marks.exec(html); found; found = marks.exec(html)) {
    const { index } = found
    const mark = found[0].toLowerCase()
    kept.push(html.slice(at, index))
    if (mark === '<!--') {
      at = after(html, /-->|--!>/g, /^-{0,1}>/.test(html.slice(index + 4, index + 6)) ? index + 2 : index + 4)
      kept.push(html.slice(index, at).replace(/--!>$/, '-->'))
    } else if (/^<\/?[a-z]/.test(mark)) {
      const end = tagEnd(html, index + mark.length)
      // a tag that does not end is none, nor is what follows
      if (end === -1) return kept.join('')
      at = end + 1
      const name = /^<\/?([a-z][^\s/>]{0,40})/i.exec(html.slice(index, index + 44))?.[1]?.toLowerCase() ?? ''
      const closing = rawEnds.get(name)
      if (mark.startsWith('</')) kept.push(`</${name}>`)
      else if (closing === undefined) kept.push(html.slice(index, at))
      else {
        kept.push(`${html.slice(index, end).replace(/\/$/, '')}>`)
        const text = name === 'script' ? scriptEnd(html, at) : before(html, closing, at)
        if (name !== 'script')
          kept.push(taglessOnly.has(name) ? html.slice(at, text).replaceAll('<', '&lt;') : html.slice(at, text))
        at = text
      }
    } else at = after(html, />/g, index + mark.length - (mark.endsWith('>') ? 1 : 0))
    marks.lastIndex = at
  }
  return [...kept, html.slice(at)].join('')
}

/** How elements end whose content is a text. */
const rawEnds: ReadonlyMap<string, RegExp> = new Map([
  ['script', /<\/script(?=[\s/>])/gi],
  ['style', /<\/style(?=[\s/>])/gi],
  ['title', /<\/title(?=[\s/>])/gi],
  ['textarea', /<\/textarea(?=[\s/>])/gi],
  ['xmp', /<\/xmp(?=[\s/>])/gi],
  ['iframe', /<\/iframe(?=[\s/>])/gi],
  ['noembed', /<\/noembed(?=[\s/>])/gi],
  ['noframes', /<\/noframes(?=[\s/>])/gi],
])

/** Those whose content has tags for the tokenizer. */
const taglessOnly = new Set(['iframe', 'noembed', 'noframes'])

function before(html: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from
  return pattern.exec(html)?.index ?? html.length
}

function after(html: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from
  return pattern.test(html) ? pattern.lastIndex : html.length
}

/** Where the text of a script ends: not at the end of one in a comment in it (HTML 13.2.5.24). */
function scriptEnd(html: string, from: number): number {
  const marks = /<!--|-->|<\/?script(?=[\s/>])/gi
  marks.lastIndex = from
  let [isComment, isInner] = [false, false]
  for (let found = marks.exec(html); found; found = marks.exec(html)) {
    const mark = found[0].toLowerCase()
    if (mark === '<!--') isComment = true
    else if (mark === '-->') isComment = isInner = false
    else if (mark === '<script') isInner ||= isComment
    else if (isInner) isInner = false
    else return found.index
  }
  return html.length
}

/** Where a tag ends: not in the value of an attribute. */
function tagEnd(html: string, from: number): number {
  const marks = /["'>]/g
  marks.lastIndex = from
  for (let found = marks.exec(html); found; found = marks.exec(html)) {
    if (found[0] === '>') return found.index
    if (!/=\s{0,20}$/.test(html.slice(Math.max(from, found.index - 21), found.index))) continue
    const end = html.indexOf(found[0], marks.lastIndex)
    if (end === -1) return -1
    marks.lastIndex = end + 1
  }
  return -1
}
