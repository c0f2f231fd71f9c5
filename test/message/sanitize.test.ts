import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sanitize } from '../../src/message/sanitize.ts'

const none = (): undefined => undefined

/** As a strict reader of tags would see it: each tag, its attributes, and the text between. */
function tagsOf(html: string): string[] {
  return [...html.matchAll(/<(\/?[^\s>]*)/g)].map(([, name]) => name!.toLowerCase())
}

test('what shapes text stays; what runs, asks or leads away goes', async () => {
  const cases: [string, string][] = [
    ['<p class="a" onclick="x()">Hi <b>there</b></p>', '<p class="a">Hi <b>there</b></p>'],
    ['a<script>alert(1)</script>b', 'ab'],
    ['a<SCRIPT\n>alert("</b>")</ScRiPt >b', 'ab'],
    ['a<svg><svg><p>x</p></svg>y</svg>b', 'ab'],
    ['a<svg/>b', 'ab'],
    ['a<iframe srcdoc="<p>x"><p>in</p></iframe>b', 'ab'],
    ['<form action="https://x.test"><input name="a">Text<button>Go</button></form>', 'TextGo'],
    ['<meta http-equiv="refresh" content="0"><base href="https://x.test">a', 'a'],
    ['<!doctype html><!-- <b> --><?php x ?>a', 'a'],
    ['1 &lt; 2 &amp;&amp; "3"', '1 &lt; 2 &amp;&amp; &quot;3&quot;'],
    ['<img src="https://x.test/i.png" alt="Logo" onerror="x()">', '<img alt="Logo">'],
    ['<p title="a&quot; onclick=&quot;x()">t</p>', '<p title="a&quot; onclick=&quot;x()">t</p>'],
    ['<p style="color:red;background:url(https://x.test)">t</p>', '<p style="color:red;background:none(https://x.test)">t</p>'],
    ['<p style="background:u\\72l(https://x.test)">t</p>', '<p style="background:u72l(https://x.test)">t</p>'],
    ['<style>@import "https://x.test/a.css";p{color:red}</style>a', '<style>@none "https://x.test/a.css";p{color:red}</style>a'],
    ['<style>p{background:u<rl(https://x.test)}</style>a', '<style>p{background:none(https://x.test)}</style>a'],
    ['<p style="background:u<rl(https://x.test)">t</p>', '<p style="background:none(https://x.test)">t</p>'],
    ['<style>@im@import;port "https://x.test";</style>a', '<style>@im@none;port "https://x.test";</style>a'],
    ['<style/>b{background:url(https://x.test)}<b>a</b></style>', 'b{background:url(https://x.test)}<b>a</b></style>'],
    ['<style>p{color:red}', '<style>p{color:red}</style>'],
    ['<p dir="rtl" dir="ltr">t</p>', '<p dir="rtl">t</p>'],
  ]
  for (const [given, wanted] of cases) expect(await sanitize(given, none, false)).toBe(wanted)
})

test('links open apart, and only to what can be opened', async () => {
  const apart = ' target="_blank" rel="noopener noreferrer nofollow"'
  const kept = ['https://x.test/a?b=1&c', 'http://x.test', 'mailto:a@x.test', 'tel:+1555']
  for (const href of kept) {
    const shown = href.replace('&', '&amp;')
    expect(await sanitize(`<a href="${href}" target="_top" ping="https://x.test">t</a>`, none, false)).toBe(
      `<a href="${shown}"${apart}>t</a>`,
    )
  }
  const refused = [
    'javascript:x()',
    'java\tscript:x()',
    ' javascript:x()',
    '&#106;avascript:x()',
    'data:text/html,x',
    'vbscript:x',
    '/v1/session',
    '//x.test',
  ]
  for (const href of refused) expect(await sanitize(`<a href="${href}">t</a>`, none, false)).toBe(`<a${apart}>t</a>`)
})

const image = (source: string): string | undefined => (source === 'cid:logo' ? 'data:image/png;base64,AA==' : undefined)

test('images come from where it is said they may', async () => {
  expect(await sanitize('<img src="cid:logo"><img src="cid:other">', image, false)).toBe(
    '<img src="data:image/png;base64,AA=="><img>',
  )
})

test('where a sheet is read in pieces, nothing passes between them', async () => {
  // wherever the pieces end: each of these is cut once
  for (let before = 65_536 - 45; before < 65_536; before++) {
    const start = `${'a'.repeat(before - '<style>'.length)}<style>`
    const shown = await sanitize(`${start}p{background:url(https://x.test)}@import "https://x.test";</style>b`, none, false)
    expect(shown.slice(before)).toBe('p{background:none(https://x.test)}@none "https://x.test";</style>b')
  }
})

const marks = [
  '<',
  '>',
  '</',
  '/>',
  '"',
  "'",
  '=',
  ' ',
  '&lt;',
  '&#60;',
  '&#x3c;script&gt;',
  '<!--',
  '-->',
  '<![CDATA[',
  ']]>',
  '\0',
]
const names = 'script style svg math title textarea p b a img table template noscript iframe form'.split(' ')

test('whatever comes, only what is allowed goes out', async () => {
  const pieces = fc.constantFrom(...marks, ...names, 'onclick', 'onerror', 'src', 'href', 'javascript:', 'https://x.test', 'url(')
  const forbidden =
    /^\/?(?:script|svg|math|iframe|object|embed|form|input|button|meta|link|base|template|noscript|title|textarea)/
  await fc.assert(
    fc.asyncProperty(fc.array(pieces, { maxLength: 40 }), async (parts) => {
      const shown = await sanitize(parts.join(''), none, false)
      const outside = shown.replace(/<style[^>]*>[^<]*<\/style>/g, '')
      expect(tagsOf(outside).filter((tag) => forbidden.test(tag))).toEqual([])
      // in a tag, every attribute is one that we wrote, and its quotes are closed
      for (const [tag] of outside.matchAll(/<[^>]*>/g)) expect(tag).toMatch(/^<(?:\/[a-z0-9]+|[a-z0-9]+(?: [a-z]+="[^"<>]*")*)>$/)
      expect(outside).not.toMatch(/<[^>]* on[a-z]+=|javascript:[^<]*"/)
    }),
    { numRuns: 2000 },
  )
})

const sheetPieces =
  '<style> <style/> <style </style> </style url( u rl( l( ( @import @im port ; \\ < / > <!-- --> src( image( -set( <b> x'.split(
    ' ',
  )

test('whatever a sheet says, it fetches nothing', async () => {
  const pieces = fc.constantFrom(...sheetPieces, ' ', '\n', '&#117;')
  await fc.assert(
    fc.asyncProperty(fc.array(pieces, { maxLength: 30 }), async (parts) => {
      const shown = await sanitize(`<style>${parts.join('')}`, none, false)
      // as browsers read it: from the tag to the next that could end it
      for (const [, sheet] of shown.matchAll(/<style[^>]*>(.*?)(?:<\/style[\s/>]|$)/gs))
        expect(sheet).not.toMatch(/(?:url|image-set|image|src)\s*\(|@import|[\\<]/i)
    }),
    { numRuns: 5000 },
  )
})

test('of long HTML the start is shown, and others have their turn while it is read', async () => {
  let turns = 0
  const timer = setInterval(() => (turns += 1), 0)
  const shown = await sanitize('<p>word</p>'.repeat(300_000), none, false)
  clearInterval(timer)
  expect(shown.length).toBeLessThanOrEqual(2_000_020)
  expect(shown.startsWith('<p>word</p>')).toBe(true)
  expect(turns).toBeGreaterThan(5)
})
