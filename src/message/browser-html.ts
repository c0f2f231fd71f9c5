/**
 * HTML that the tokenizer used here reads as browsers do (HTML 13.2.5): without what they take for a comment in `<!>`, `</ x>` or CDATA, with closing
 * tags that have no attributes, and with the text of elements that have no tags inside. Linear in the text.
 */
export function asInBrowsers(html: string): string {
  const kept: string[] = []
  let from = 0
  const put = (start: number, end: number, text: string): void => {
    kept.push(html.slice(from, start), text)
    from = end
  }
  const marks = /<(?:!--|[!?]|\/(?:[^a-z]|$)|\/?[a-z])/gi
  for (let found = marks.exec(html); found; found = marks.exec(html)) {
    const { index } = found
    const mark = found[0]
    let at: number
    if (mark === '<!--') {
      at = after(html, /-->|--!>/g, /^-{0,1}>/.test(html.slice(index + 4, index + 6)) ? index + 2 : index + 4)
      if (html.startsWith('--!>', at - 4)) put(at - 4, at, '-->')
    } else if (/[a-z]$/i.test(mark)) {
      const end = tagEnd(html, index + mark.length)
      // a tag that does not end is none, nor is what follows
      if (end === -1) return kept.join('') + html.slice(from, index)
      at = end + 1
      if (mark.length === 3) {
        closing.lastIndex = index
        if (!closing.test(html)) put(index, at, `</${nameAt(html, index + 2)}>`)
      } else {
        rawStart.lastIndex = index
        const name = rawStart.exec(html)?.[1]?.toLowerCase()
        if (name !== undefined && html[end - 1] === '/') put(end - 1, at, '>')
        closedInItself.lastIndex = index
        const foreign = html[end - 1] === '/' ? closedInItself.exec(html)?.[1] : undefined
        // unless the slash is that of a value
        if (foreign !== undefined && !/=\s{0,20}[^\s"'=]{0,99}$/.test(html.slice(Math.max(index, end - 120), end)))
          put(end - 1, at, `></${foreign}>`)
        if (name !== undefined) at = putText(html, { name, at, put })
      }
    } else {
      at = after(html, />/g, index + mark.length - (mark.endsWith('>') ? 1 : 0))
      put(index, at, '')
    }
    marks.lastIndex = at
  }
  return kept.length === 0 ? html : kept.join('') + html.slice(from)
}

/** Puts the text of an element that has no elements in it. Returns its end. */
function putText(
  html: string,
  { name, at, put }: { name: string; at: number; put: (start: number, end: number, text: string) => void },
): number {
  const end = name === 'script' ? scriptEnd(html, at) : before(html, rawEnds.get(name)!, at)
  // what is in a script is no text, and the tokenizer ends it elsewhere
  if (name === 'script') put(at, end, '')
  else if (taglessOnly.has(name)) put(at, end, html.slice(at, end).replaceAll('<', '&lt;'))
  return end
}

/** A closing tag without attributes. */
const closing = /<\/[a-z][^\s/>]{0,40}>/iy

const rawStart = /<(script|style|title|textarea|xmp|iframe|noembed|noframes)(?=[\s/>])/iy

/** Elements of other languages, which have no content when they are closed in themselves; the library that makes Markdown takes all that follows for it. */
const closedInItself = /<(svg|math)(?=[\s/])/iy

function nameAt(html: string, start: number): string {
  return /^[a-z][^\s/>]{0,40}/i.exec(html.slice(start, start + 42))?.[0].toLowerCase() ?? ''
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
