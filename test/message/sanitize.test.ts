import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parse } from '../../src/message/parse.ts'
import { sanitize } from '../../src/message/sanitize.ts'
import { mailOf } from './screening/hostile.ts'

const none = (): undefined => undefined

/** As a strict reader of tags would see it: each tag, its attributes, and the text between. */
function tagsOf(html: string): string[] {
  return [...html.matchAll(/<(\/?[^\s>]*)/g)].map(([, name]) => name!.toLowerCase())
}

test('what shapes text stays; what runs, asks or leads away goes', async () => {
  const cases: [string, string][] = [
    ['<p class="a" dir="rtl" onclick="x()">Hi <b>there</b></p>', '<p dir="rtl">Hi <b>there</b></p>'],
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
    [
      '<p style="background:url(https://x.test);text-align:center">t</p>',
      '<p style="text-align:center"><span style="color:#000000;background-color:#ffffff">t</span></p>',
    ],
    [
      '<p style="background:u\\72l(https://x.test)">t</p>',
      '<p><span style="color:#000000;background-color:#ffffff">t</span></p>',
    ],
    ['<style>@import "https://x.test/a.css";p{text-align:right}</style><p>a</p>', '<p style="text-align:right">a</p>'],
    ['<style>p{text-align:right', ''],
    ['<p style="color:red">t</p>', '<p><span style="color:#ff0000;background-color:#ffffff">t</span></p>'],
    [
      '<p style="background:#000"><b style="color:#fff">t</b></p>',
      '<p style="background-color:#000000"><b><span style="color:#ffffff;background-color:#000000">t</span></b></p>',
    ],
    [
      '<p style="font-size:20px;font-family:Georgia, serif">t</p>',
      '<p style="font-family:serif"><span style="font-size:20px">t</span></p>',
    ],
    ['<p style="display:none">hidden</p>t', 't'],
    ['<style>.a{display:none}</style><p class="a">hidden</p>t', 't'],
    [
      '<p style="position:absolute;left:-100px;overflow:hidden;height:9px;margin-left:-99px;padding-left:9px;opacity:.5">t</p>',
      '<p style="padding-left:9px">t</p>',
    ],
    ['<td width="9999999" onclick="x()" constructor="y" colspan="2">t</td>', '<td colspan="2">t</td>'],
    ['<p dir="rtl" dir="ltr">t</p>', '<p dir="rtl">t</p>'],
  ]
  for (const [given, wanted] of cases) expect(await sanitize(given, none)).toBe(wanted)
})

test('links open apart, and only to what can be opened', async () => {
  const apart = ' target="_blank" rel="noopener noreferrer nofollow"'
  const kept = ['https://x.test/a?b=1&c', 'http://x.test', 'mailto:a@x.test', 'tel:+1555']
  for (const href of kept) {
    const shown = href.replace('&', '&amp;')
    expect(await sanitize(`<a href="${href}" target="_top" ping="https://x.test">t</a>`, none)).toBe(
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
  for (const href of refused) expect(await sanitize(`<a href="${href}">t</a>`, none)).toBe(`<a${apart}>t</a>`)
})

const image = (source: string): string | undefined => (source === 'cid:logo' ? 'data:image/png;base64,AA==' : undefined)

test('images come from where it is said they may', async () => {
  expect(await sanitize('<img src="cid:logo"><img src="cid:other">', image)).toBe('<img src="data:image/png;base64,AA=="><img>')
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
      const shown = await sanitize(parts.join(''), none)
      const outside = shown
      expect(tagsOf(outside).filter((tag) => forbidden.test(tag))).toEqual([])
      // in a tag, every attribute is one that we wrote, and its quotes are closed
      for (const [tag] of outside.matchAll(/<[^>]*>/g)) expect(tag).toMatch(/^<(?:\/[a-z0-9]+|[a-z0-9]+(?: [a-z]+="[^"<>]*")*)>$/)
      expect(outside).not.toMatch(/<[^>]* on[a-z]+=|javascript:[^<]*"/)
    }),
    { numRuns: 2000 },
  )
})

const styles = [
  'display:none',
  'display:block',
  'position:absolute',
  'left:-9999px',
  'color:red',
  'color:rgb(1 2 3 / 50%)',
  'background:#000 url(https://x.test/a.png)',
  'width:9999999px',
  'width:300px',
  'font-family:"x\\"y"',
  'font-size:1px',
  'font-size:1e9px',
  'margin:-99px',
  'border:1px solid #ccc',
  'border:9999px solid url(https://x.test)',
  'text-decoration:line-through white 40px',
  'content:url(https://x.test)',
  '--a:none',
  'display:var(--a)',
  '@import "https://x.test"',
  '}',
  '"',
  '/*',
]

/** A declaration that fetches nothing and hides nothing. */
const harmless =
  /^(?:(?:margin|padding)-(?:top|right|bottom|left):(?:auto|[\d.]{1,8}(?:px|pt|em|rem|%)?)|border[a-z-]*:[\d.]{0,5}[a-z]{0,6}(?: [a-z]+)?(?: #?[\da-z]+)?|(?:max-)?width:[\d.]{1,9}(?:px|pt|%)|(?:background-)?color:#[\da-f]{6}|font-size:(?:9|[1-6]\d|7[0-2])px|font-family:(?:sans-serif|serif|monospace)|display:(?:block|inline|inline-block|table|table-row|table-cell|list-item)|(?:text-align|vertical-align|white-space|font-weight|font-style|list-style-type):[a-z\d-]+|text-decoration:(?:none|underline|line-through))$/

test('whatever styles say, what is left of them fetches nothing and hides nothing', async () => {
  const declared = fc.array(fc.constantFrom(...styles), { maxLength: 5 }).map((all) => all.join(';'))
  const element = fc.tuple(fc.constantFrom('p', 'b', 'div', 'td', 'style', 'a'), declared)
  await fc.assert(
    fc.asyncProperty(fc.array(element, { maxLength: 6 }), async (elements) => {
      const html = elements
        .map(([tag, style]) => (tag === 'style' ? `<style>p,.a{${style}}</style>` : `<${tag} class=a style='${style}'>t`))
        .join('')
      const shown = await sanitize(html, none)
      expect(shown).not.toMatch(/<style|class=|url|@import/)
      for (const [, style] of shown.matchAll(/ style="([^"]*)"/g))
        for (const one of style!.split(';')) expect(one).toMatch(harmless)
    }),
    { numRuns: 3000 },
  )
})

test('every text of a page is wrapped, as nobody can scroll to where lines from right to left end', async () => {
  const html =
    '<p dir="rtl" style="width:20px;white-space:nowrap">a</p><p style="white-space:pre">b</p><table><tr><td nowrap>c</table>'
  expect(await sanitize(html, none)).toBe(
    '<p dir="rtl" style="width:20px">a</p><p style="white-space:pre-wrap">b</p><table><tr><td>c</table>',
  )
})

const filling = 'x '.repeat(1_100_000)

test.each([
  ['a text that is hidden', `<p style="display:none">${filling}</p>`],
  ['a script', `<script>${filling}</script>`],
  ['character references that are hidden', `<p hidden>${'&amp;'.repeat(500_000)}</p>`],
  ['a text outside of any element that is hidden', `<style>body{color:#fff}</style>${filling}`],
])('what programs read of HTML after %s is shown', async (_what, before) => {
  const html = `${before}<p style="color:#000">Marked</p>`
  expect((await parse(mailOf({ html }))).text).toContain('Marked')
  expect(await sanitize(html, none)).toContain('Marked')
})

test('a text part that says what the HTML has further than it is shown is left out', async () => {
  const html = `<p>Hello.</p>${'<b></b>'.repeat(160_000)}<p>Pay the invoice of Friday to the account below.</p>`
  const { text } = await parse(mailOf({ html, text: 'Hello. Pay the invoice of Friday to the account below.' }))
  expect(await sanitize(html, none)).not.toContain('Friday')
  expect(text).not.toContain('Friday')
})

test.each([
  ['what is behind a drawing that is closed in itself', 'Hello <svg viewBox="0 0 1 1"/> world.'],
  ['what is behind a formula that is closed in itself', 'Hello <math/> world.'],
  ['what is written where there is no text', '<html><head><title>x</title>Hello</head> world.'],
  ['what is before a body', '<p>Hello</p><body> world.</body>'],
  ['what is behind a body', '<body>Hello</body> world.'],
  ['an element where there is none', '<html><head><p>Hello</p></head> world.'],
])('programs read as people do %s', async (_what, html) => {
  const shown = await sanitize(html, () => undefined)
  const raw = Buffer.from(`Content-Type: text/html\r\n\r\n${html}\r\n`)
  for (const text of [shown, (await parse(raw)).text])
    expect(text.replace(/<[^>]*>/g, '').match(/\w+/g)).toEqual(['Hello', 'world'])
})

test('a drawing whose attribute ends with a slash is open', async () => {
  expect(await sanitize('Hello <svg a=b/> world.', () => undefined)).toBe('Hello ')
})

test('of long HTML the start is shown, and others have their turn while it is read', async () => {
  let turns = 0
  const timer = setInterval(() => (turns += 1), 0)
  const shown = await sanitize('<p>word</p>'.repeat(300_000), none)
  clearInterval(timer)
  expect(shown.length).toBeLessThanOrEqual(1_100_000)
  expect(shown.startsWith('<p>word</p>')).toBe(true)
  expect(turns).toBeGreaterThan(5)
})
