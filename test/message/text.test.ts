import { expect, test } from 'vitest'
import { markdownOf } from '../../src/message/markdown.ts'
import { stripReply, snippetOf } from '../../src/message/reply-text.ts'

test.each([
  'On Thu, Nov 19, 2026 at 4:12 PM Robin <robin@box.example> wrote:',
  'On 19/11/2026 16:12, Robin wrote:',
  'Am Do., 19. Nov. 2026 um 16:12 Uhr schrieb Robin <robin@box.example>:',
  'Am 19.11.2026 um 16:12 schrieb Robin:',
  'Le jeu. 19 nov. 2026 à 16:12, Robin <robin@box.example> a écrit :',
  'El jue, 19 nov 2026 a las 16:12, Robin (<robin@box.example>) escribió:',
  'Il giorno gio 19 nov 2026 alle ore 16:12 Robin <robin@box.example> ha scritto:',
  'Em qui., 19 de nov. de 2026 às 16:12, Robin <robin@box.example> escreveu:',
  'Op do 19 nov. 2026 om 16:12 schreef Robin <robin@box.example>:',
  'Den tors 19 nov. 2026 kl 16:12 skrev Robin <robin@box.example>:',
  'czw., 19 lis 2026 o 16:12 Robin <robin@box.example> napisał(a):',
  'to 19. marrask. 2026 klo 16.12 Robin (robin@box.example) kirjoitti:',
  'чт, 19 нояб. 2026 г. в 16:12, Robin <robin@box.example>:',
  '19.11.2026 16:12, Robin пишет:',
  'Robin <robin@box.example>, 19 Kas 2026 Per, 16:12 tarihinde şunu yazdı:',
  'Robin <robin@box.example> 于2026年11月19日周四 16:12写道：',
  '2026年11月19日(木) 16:12 Robin <robin@box.example>:',
  '2026년 11월 19일 (목) 오후 4:12, Robin <robin@box.example>님이 작성:',
  'στις 19/11/2026 16:12, ο/η Robin έγραψε:',
])('a quote begins with: %s', (line) => {
  expect(stripReply(`Fine.\n\n${line}\n\n> Is it?\n> Robin\n`)).toBe('Fine.')
  expect(stripReply(`Fine.\n\n${line}\n\nIs it?\nRobin\n`)).toBe('Fine.')
})

test.each([
  ['From: Robin\nSent: Thursday\nTo: Erik\nSubject: x', 'RE: x'],
  ['Von: Robin\nGesendet: Donnerstag\nAn: Erik\nBetreff: x', 'AW: x'],
  ['De : Robin\nEnvoyé : jeudi\nÀ : Erik\nObjet : x', 'RE: x'],
  ['De: Robin\nEnviado el: jueves\nPara: Erik\nAsunto: x', 'RE: x'],
  ['Da: Robin\nInviato: giovedì\nA: Erik\nOggetto: x', 'R: x'],
  ['От: Robin\nОтправлено: четверг\nКому: Erik\nТема: x', 'RE: x'],
  ['*From:* Robin\n*Sent:* Thursday\n*To:* Erik\n*Subject:* x', 'RE: x'],
  ['差出人: Robin\n送信日時: 2026年11月19日\n宛先: Erik\n件名: x', 'RE: x'],
])('a header block ends the new part: %j', (block, subject) => {
  expect(stripReply(`Fine.\n\n${block}\n\nIs it?\n`, subject)).toBe('Fine.')
  expect(stripReply(`See below.\n\n${block}\n\nIs it?\n`, 'Fwd: x')).toContain('Is it?')
})

test.each([
  'Sent from my iPhone',
  'Von meinem iPhone gesendet',
  'Envoyé de mon iPhone',
  'Enviado desde mi iPhone',
  'Get Outlook for iOS',
  '发自我的iPhone',
  'iPhoneから送信',
])('%s is no part of it', (line) => {
  expect(stripReply(`Fine.\n\n${line}\n`)).toBe('Fine.')
})

test('the signature goes, a rule inside the text stays', () => {
  expect(stripReply('Fine.\n-- \nDana\n+1 555 0100')).toBe('Fine.')
  expect(stripReply('One\n\n-----\n\nTwo')).toBe('One\n\n-----\n\nTwo')
})

test('answers between quoted lines stay', () => {
  expect(stripReply('> One?\nYes.\n\n> Two?\nNo.')).toBe('Yes.\n\nNo.')
})

test('a text without a quote is left alone', () => {
  const text = 'From: the desk of\n\nHe wrote:\nnothing\n\nOn Monday at 9 we meet. To: all'
  expect(stripReply(text)).toBe(text)
})

test('a quote is found in a very long text, and nothing is lost without one', () => {
  const long = 'word\n'.repeat(300_000)
  expect(stripReply(`Fine.\n\nOn Nov 19, 2026 Robin <r@box.example> wrote:\n\n${long}`)).toBe('Fine.')
  expect(stripReply(`Look: colon\n> one\n${long}`)).toMatch(/^Look: colon\nword/)
  expect(stripReply(long)).toBe(long.trim())
})

test('nothing but a quote or a signature is kept whole', () => {
  expect(stripReply('> only\n> this')).toBe('> only\n> this')
  expect(stripReply('-- \nDana')).toBe('-- \nDana')
})

test('HTML reads as Markdown', () => {
  expect(
    markdownOf(
      '<h1>Title</h1><p>One <b>two</b><br>three</p><ul><li>a</li><li>b</li></ul><p>See <a href="https://a.test/?a=1&amp;b=2">this</a>.</p>',
    ),
  ).toBe('# Title\n\nOne two\nthree\n\n- a\n- b\n\nSee [this](https://a.test/?a=1&b=2).')
})

test.each([
  ['<a href="https://a.test/x"><img src="x.png" alt=""></a>', '[link](https://a.test/x)'],
  ['See <a href="https://a.test/x"><b><img src="x.png"></b></a> now', 'See [link](https://a.test/x) now'],
  ['<a href="https://a.test/x"></a>shown', 'shown'],
])('a link without words reads as one when it shows an image: %s', (html, expected) => {
  expect(markdownOf(html)).toBe(expected)
})

test.each([
  ['<div style="display:none">hidden</div>shown'],
  ['<span style="color:red; DISPLAY : none">hidden</span>shown'],
  ['<p style="color:red;visibility: hidden">hidden</p>shown'],
  ['<div hidden>hidden</div>shown'],
  ['<div style="display:\tnone">hidden</div>shown'],
  ['<div style="display:  none">hidden</div>shown'],
  ['<div style="display\n:none">hidden</div>shown'],
  ['<div style="display:/**/none">hidden</div>shown'],
  ['<div style="/* a;b */display:none /* left open">hidden</div>shown'],
  ['<div style="display:none!important">hidden</div>shown'],
  ['<div style="color:red;di\\73 play:\\6eone">hidden</div>shown'],
  ['<td style="visibility:  hidden">hidden</td><p>shown'],
  ['<h2 style="visibility:collapse">hidden</h2>shown'],
  ['<textarea>hidden</textarea><template>hidden</template><svg><text>hidden</text></svg>shown'],
  ['<a href="https://a.test/hidden"><b hidden>hidden</b></a>shown'],
  ['<style>.hidden{}</style><title>hidden</title><script>hidden</script>shown'],
  ['<!--[if mso]>hidden<![endif]-->shown'],
  ['<a href="https://a.test/hidden" style="display:none">hidden</a>shown'],
  ['<img src="https://a.test/hidden.gif" width=1 height=1 alt="hidden">shown'],
])('what is hidden is not read: %s', (html) => {
  expect(markdownOf(html)).toBe('shown')
})

test('an element with a style is formatted as one without', () => {
  const html = '<h1>A</h1><table><tr><td>one</td><td>two</td></tr></table><ul><li>x</li></ul><a href="https://a.test/">y</a>'
  expect(markdownOf(html.replace(/<(\w+)/g, '<$1 style="color: red"'))).toBe(markdownOf(html))
})

test.each([
  ['<p style="mso-hide:all">shown</p>'],
  ['<p style="color:red;background:url(display:none)">shown</p>'],
  ['<p style="display:block;/*display:none*/">shown</p>'],
  ['<p style="-webkit-backface-visibility:hidden">shown</p>'],
  ['<td style="font-size:0"><p style="font-size:13px">shown</p></td>'],
])('what only looks hidden is read: %s', (html) => {
  expect(markdownOf(html)).toBe('shown')
})

test.each([
  ['a heading in a heading is one', '<h1><h2>Title</h2></h1><p>Words', '# Title\n\nWords'],
  [
    'the words of a link are all there, whatever white space is between them',
    `<a href="https://a.test/">Open${' '.repeat(500)}<b>the door</b></a>`,
    '[Open the door](https://a.test/)',
  ],
  [
    'a link in a long link is shown',
    `<a href="https://a.test/">${'word '.repeat(100)}<a href="https://b.test/">here</a></a>`,
    `${'word '.repeat(100)}[here](https://b.test/) [link](https://a.test/)`,
  ],
  ['eight quotations in one another', `${'<blockquote>'.repeat(8)}Words`, `${'> '.repeat(8)}Words`],
  ['more quotations in one another are eight', `${'<blockquote>'.repeat(12)}Words`, `${'> '.repeat(8)}Words`],
  [
    'the points of more lists than eight in one another stay lines',
    `${'<ul><li>'.repeat(12)}One<li>Two`,
    `${'- '.repeat(8)}One\n${' '.repeat(16)}Two`,
  ],
])('%s', (_, html, expected) => {
  expect(markdownOf(html)).toBe(expected)
})

test('quotations and lists in one another do not make a text many times as long as its HTML', () => {
  for (const open of ['<blockquote>', '<ul><li>', '<ol><li>', '<ul><li><blockquote>']) {
    const html = `${open.repeat(30)}<pre>${'a\n'.repeat(20_000)}</pre>`
    expect(markdownOf(html).length).toBeLessThan(16 * html.length)
  }
})

test('the lines of a quotation are marked, but not those of one with hundreds of thousands: no line is lost', () => {
  expect(markdownOf(`<blockquote><pre>${'a\n'.repeat(3)}`)).toBe('> a\n> a\n> a')
  const text = markdownOf(`<blockquote><pre>${'a\n'.repeat(450_000)}`)
  expect(text.slice(0, 4)).toBe('a\na\n')
  expect(text).toHaveLength(899_999)
})

test('a snippet is one line of at most 200 characters and nothing invisible', () => {
  expect(snippetOf('  One\n\n two\tthree ')).toBe('One two three')
  expect(snippetOf(`Hi\u200b\u034f \u200c\u00a0\u200c\u00a0\ufeff${'\u00a0'.repeat(100)}there`)).toBe('Hi there')
  expect(snippetOf('می‌خواهم')).toBe('می‌خواهم')
  expect(snippetOf('word '.repeat(100)).length).toBeLessThanOrEqual(200)
  expect(snippetOf('😀'.repeat(150)).isWellFormed()).toBe(true)
})

test('blanks at line ends, which a relaxed signature does not cover (RFC 6376 3.4.4), decide nothing of what is left out', () => {
  const body = Array.from({ length: 20 }, (_, number) => `Line ${number}`)
  for (const mark of ['--', '-- ', '--  ', '--\t']) {
    // as much as this is no signature
    const long = stripReply(['Hello', mark, ...body].join('\n'))
    expect([mark, long.split('\n').length]).toEqual([mark, 22])
    expect([mark, stripReply(['Hello', mark, 'Eve', 'The bank'].join('\n'))]).toEqual([mark, 'Hello'])
  }
  expect(stripReply('Hello\n>From\there on\n> quoted')).toBe('Hello\n>From\there on')
})

test.each([
  ['<ol start="123456"><li>One<li>Two</ol>', '1. One\n2. Two'],
  ['<ol start="7"><li>One</ol>', '7. One'],
  ['Was <s>10 EUR</s> <del>20 EUR</del>, now <b>5 EUR</b>', 'Was ~~10 EUR~~ ~~20 EUR~~, now 5 EUR'],
  ['a<del> </del>b', 'a b'],
])('%s reads as it is shown', (html, text) => {
  expect(markdownOf(html).trim()).toBe(text)
})
