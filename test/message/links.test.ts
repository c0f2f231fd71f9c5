import { expect, test } from 'vitest'
import { linksIn, linksOf, mayHaveLink } from '../../src/message/links.ts'

function ofHtml(html: string) {
  return linksOf(html, null, undefined).links
}

test('anchors come in order, each address once, references decoded', () => {
  expect(
    ofHtml(
      '<a href="https://a.test/?x=1&amp;y=2">One</a> <a HREF=http://b.test/>Two</a> <a href=\'https://a.test/?x=1&y=2\'>Three</a>',
    ),
  ).toEqual([
    { url: 'https://a.test/?x=1&y=2', text: 'One', kind: 'other' },
    { url: 'http://b.test/', text: 'Two', kind: 'other' },
  ])
})

test('only http and https, and only what is an address', () => {
  expect(
    ofHtml('<a href="javascript:alert(1)">x</a><a href="mailto:a@a.test">x</a><a href="/x">x</a><a href="http://">x</a><a>x</a>'),
  ).toEqual([])
})

test('an address broken over lines is mended', () => {
  expect(ofHtml('<a href=" https://a.test/\r\n verify ">Verify</a>').map(({ url }) => url)).toEqual(['https://a.test/%20verify'])
  expect(ofHtml('<a href="https://a.test/ver\nify">Go</a>')[0]?.url).toBe('https://a.test/verify')
})

test('the text is what a reader sees: nested elements, the name of an image, no styles', () => {
  expect(ofHtml('<a href="https://a.test/1"><table><tr><td><b>Log</b> in&nbsp;now</td></tr></table></a>')[0]?.text).toBe(
    'Log in now',
  )
  expect(ofHtml('<a href="https://a.test/2"><img alt="Our shop" src="x.png"></a>')[0]?.text).toBe('Our shop')
  expect(ofHtml('<a href="https://a.test/3"><style>a{color:red}</style>Shop</a>')[0]?.text).toBe('Shop')
  expect(ofHtml(`<a href="https://a.test/4">${'word '.repeat(100)}</a>`)[0]?.text.length).toBeLessThanOrEqual(200)
})

test('links in comments, scripts and attributes are none', () => {
  expect(
    ofHtml(
      '<!-- <a href="https://a.test/">x</a> --><script>"<a href=https://b.test/>"</script><p title="<a href=https://c.test/>">x</p>',
    ),
  ).toEqual([])
})

test.each([
  '<a style="display:none" href="https://b.test/login">Sign in</a>',
  '<a hidden href="https://b.test/login">Sign in</a>',
  '<p style="display:\t/* */none">Sign in: <a href="https://b.test/login">here</a> https://b.test/login</p>',
  '<a href="https://b.test/login" style="x:y; Visibility: hidden">Sign in</a>',
  '<p style="display: none"><i>Sign in <br><a href="https://b.test/login">here</i></a></p>',
  '<p hidden>Sign in: https://b.test/login</p>',
  '<svg><a href="https://b.test/login">Sign in</a></svg>',
  '<template><a href="https://b.test/login">Sign in</a></template>',
  '<textarea><a href="https://b.test/login">Sign in</a> https://b.test/login</textarea>',
])('what is hidden is no link, and what comes after it is: %s', (html) => {
  expect(ofHtml(`${html}<p><a href="https://a.test/login"><u hidden>Not </u>Sign in</a>`)).toEqual([
    { url: 'https://a.test/login', text: 'Sign in', kind: 'signin' },
  ])
})

test.each([
  '<a style="mso-hide:all" href="https://a.test/login">Sign in</a>',
  '<a style="-webkit-backface-visibility:hidden" href="https://a.test/login">Sign in</a>',
  '<p hidden><p><a href="https://a.test/login">Sign in</a>',
  '<div hidden></div><br hidden><img hidden><a href="https://a.test/login">Sign in</a>',
  '<a style="color:red" style="display:none" href="https://a.test/login">Sign in</a>',
])('what only looks hidden is a link: %s', (html) => {
  expect(ofHtml(html)).toEqual([{ url: 'https://a.test/login', text: 'Sign in', kind: 'signin' }])
})

test('text gives its addresses when the HTML has none', () => {
  const { links } = linksOf('<p>no links</p>', 'See https://a.test/x, or (http://b.test/y).', undefined)
  expect(links).toEqual([
    { url: 'https://a.test/x', text: '', kind: 'other' },
    { url: 'http://b.test/y', text: '', kind: 'other' },
  ])
})

test('addresses that only the words have come after the anchors, each once', () => {
  const { links } = linksOf(
    '<p>Shop: <a href="https://a.test">a.test</a>, or https://b.test/x?y=1&amp;z=2 <b>now</b></p><script>"https://no.test/"</script>',
    'Verify your address: https://c.test/verify\nShop: https://a.test/\nor https://b.test/x?y=1&z=2',
    undefined,
  )
  expect(links).toEqual([
    { url: 'https://a.test', text: 'a.test', kind: 'other' },
    { url: 'https://b.test/x?y=1&z=2', text: '', kind: 'other' },
    { url: 'https://c.test/verify', text: '', kind: 'verify' },
  ])
})

test('the end of an address is found in any script', () => {
  expect(linksIn('点击https://a.test/verify?t=1，完成验证').map(({ url }) => url)).toEqual(['https://a.test/verify?t=1'])
  expect(linksIn('<https://a.test/a_(b)>').map(({ url }) => url)).toEqual(['https://a.test/a_(b)'])
})

test('List-Unsubscribe gives a link, and says what a link in the body is', () => {
  expect(linksOf(null, null, '<mailto:u@a.test>, <https://a.test/u>').links).toEqual([
    { url: 'https://a.test/u', text: '', kind: 'unsubscribe' },
  ])
  expect(linksOf('<a href="https://a.test/u">Here</a>', null, '<https://a.test/u>').links).toEqual([
    { url: 'https://a.test/u', text: 'Here', kind: 'unsubscribe' },
  ])
})

test('at most a hundred', () => {
  const html = Array.from({ length: 300 }, (_, index) => `<a href="https://a.test/${index}">x</a>`).join('')
  expect(ofHtml(html)).toHaveLength(100)
})

test.each([
  ['Verify email address', 'https://a.test/l/1', 'verify'],
  ['Confirm your account', 'https://a.test/l/1', 'verify'],
  ['E-Mail-Adresse bestätigen', 'https://a.test/l/1', 'verify'],
  ['Confirmer mon adresse', 'https://a.test/l/1', 'verify'],
  ['Verificar correo', 'https://a.test/l/1', 'verify'],
  ['验证邮箱', 'https://a.test/l/1', 'verify'],
  ['メールアドレスを確認する', 'https://a.test/l/1', 'verify'],
  ['이메일 인증하기', 'https://a.test/l/1', 'verify'],
  ['Подтвердить почту', 'https://a.test/l/1', 'verify'],
  ['Hesabımı doğrula', 'https://a.test/l/1', 'verify'],
  ['تأكيد البريد الإلكتروني', 'https://a.test/l/1', 'verify'],
  ['Reset password', 'https://a.test/l/1', 'reset'],
  ['Choose a new password', 'https://a.test/l/1', 'reset'],
  ['Passwort zurücksetzen', 'https://a.test/l/1', 'reset'],
  ['Réinitialiser le mot de passe', 'https://a.test/l/1', 'reset'],
  ['重置密码', 'https://a.test/l/1', 'reset'],
  ['Log in to Acme', 'https://a.test/l/1', 'signin'],
  ['Sign in', 'https://a.test/l/1', 'signin'],
  ['Jetzt anmelden', 'https://a.test/l/1', 'signin'],
  ['Войти', 'https://a.test/l/1', 'signin'],
  ['Unsubscribe', 'https://a.test/l/1', 'unsubscribe'],
  ['Newsletter abbestellen', 'https://a.test/l/1', 'unsubscribe'],
  ['Se désinscrire', 'https://a.test/l/1', 'unsubscribe'],
  ['退订', 'https://a.test/l/1', 'unsubscribe'],
  ['Get started', 'https://a.test/verify-email?token=1', 'verify'],
  ['Get started', 'https://a.test/users/confirmation?confirmation_token=1', 'verify'],
  ['Continue', 'https://a.test/password/reset?token=1', 'reset'],
  ['Open Acme', 'https://a.test/auth/magic-link?token=1', 'signin'],
  ['Privacy policy', 'https://a.test/privacy', 'other'],
  ['Help centre', 'https://a.test/help', 'other'],
  ['View in browser', 'https://a.test/view/123', 'other'],
])('%s %s is for %s', (text, url, kind) => {
  expect(ofHtml(`<p>Hello.</p><a href="${url}">${text}</a>`)[0]?.kind).toBe(kind)
})

test.each([
  ['<p>To reset your password, click <a href="https://a.test/1">here</a>.</p>', 'reset'],
  ['<p>Please confirm your e-mail address:</p><p><a href="https://a.test/1">https://a.test/1</a></p>', 'verify'],
  ['<p>Please confirm your e-mail address.</p><p>Questions? <a href="https://a.test/1">Contact us</a></p>', 'other'],
])('words around a link say what it is for: %s', (html, kind) => {
  expect(ofHtml(html)[0]?.kind).toBe(kind)
})

test.each([
  ['Click the link below to verify your address:\n\nhttps://a.test/1', 'verify'],
  ['Um Ihr Passwort zurückzusetzen, öffnen Sie https://a.test/1', 'reset'],
  ['Read more at https://a.test/1', 'other'],
  ['To stop receiving these mails: https://a.test/1', 'unsubscribe'],
])('words before an address in text say what it is for: %s', (text, kind) => {
  expect(linksIn(text)[0]?.kind).toBe(kind)
})

test.each([
  'example.com',
  'evil.md/path',
  'https://evil.md',
  'www.evil.js',
  'login.evil.io',
  'evil.xn--p1ai',
  'README.md',
  'EVIL.RS',
  'evil.co.uk',
])('what leaves may have a link: %s', (text) => {
  expect(mayHaveLink(`See ${text} for more.`, null)).toBe(true)
  expect(mayHaveLink('', `<p>See ${text} for more.</p>`)).toBe(true)
})

test.each(['index.ts', 'main.js', 'Node.js', 'app.go', 'dump.gz', 'lib.rb/x', 'src/data.db', 'ada@example.com'])(
  'no program makes a link of %s, as no domain ends so',
  (text) => {
    expect(mayHaveLink(`See ${text} for more.`, null)).toBe(false)
    expect(mayHaveLink('', `<p>See ${text} for more.</p>`)).toBe(false)
  },
)
