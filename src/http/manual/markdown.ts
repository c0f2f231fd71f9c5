import { posix } from 'node:path'
import { Marked, type Tokens } from 'marked'
import { anchor } from '../openapi/reference.ts'

/** A page of the documentation as HTML without scripts. Its links lead to other pages of `paths` as HTML; those out of the documentation are text. */
export function htmlOf(path: string, markdown: string, paths: ReadonlySet<string>): string {
  const marked = new Marked({
    async: false,
    gfm: true,
    renderer: {
      heading({ tokens, depth }: Tokens.Heading) {
        const text = this.parser.parseInline(tokens)
        return `<h${depth} id="${anchor(plain(tokens))}">${text}</h${depth}>\n`
      },
      // a tag in the text of a page is what the page is about
      html: ({ text }: Tokens.HTML | Tokens.Tag) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens)
        const target = targetOf(path, href, paths)
        return target === undefined ? text : `<a href="${target}">${text}</a>`
      },
    },
  })
  const title = /^# (.+)$/m.exec(markdown)?.[1] ?? 'Pillarbox'
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title.replaceAll(/[<>&`]/g, '')} · Pillarbox</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/manual.css">
</head>
<body>
<nav><a href="/docs/README">All pages</a> · <a href="${path}">This page as Markdown</a> · <a href="/llms.txt">For agents</a> · <a href="/docs">Try the API</a></nav>
<main>
${marked.parse(markdown) as string}</main>
</body>
</html>
`
}

export const stylesheet = `body { max-width: 56rem; margin: 0 auto; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color-scheme: light dark }
pre, table { overflow-x: auto; display: block }
pre { padding: .75rem; background: #8882 }
code { font-size: .9em }
td, th { padding: .2rem .6rem; text-align: start; vertical-align: top; border-bottom: 1px solid #8886 }
img { max-width: 100% }
`

/** Where a link of a page leads on this box; undefined for what the box does not serve. */
function targetOf(path: string, href: string, paths: ReadonlySet<string>): string | undefined {
  if (/^(?:https?:|mailto:|#)/.test(href)) return href
  const [file = '', heading] = href.split('#')
  const target = posix.join(posix.dirname(path), file)
  if (!paths.has(target)) return undefined
  return target.replace(/\.md$/, '') + (heading === undefined ? '' : `#${heading}`)
}

/** The text of a heading. */
function plain(tokens: Tokens.Generic[]): string {
  return tokens.map((token) => (token.tokens ? plain(token.tokens) : String(token['text'] ?? ''))).join('')
}
