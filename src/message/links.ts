import { LinkifyIt } from 'linkify-it'
import { type Anchor, anchorsOf } from './anchors.ts'
import { asInBrowsers } from './browser-html.ts'
import { strippedOf } from './markdown.ts'
import { withoutEscapes } from './markup.ts'
import { withoutControls } from '../core/text.ts'
import type { Link } from '../mail/model.ts'
import type { SeenText } from './screening/seen.ts'

const maxLinks = 100
const longestUrl = 8192

/**
 * The `http` and `https` links of a message in order, each once, at most 100: the anchors of the HTML, then the URLs in its text or in the text
 * part (with an empty `text`), last those in List-Unsubscribe (RFC 2369 3.2). Also returns the depth and the number of the HTML elements, and what
 * a person sees of the HTML.
 */
export function linksOf(
  html: string | null,
  text: string | null,
  unsubscribe: string | undefined,
): { links: Link[]; depth: number; tags: number; seen: SeenText | null } {
  const found = new Map<string, Link>()
  let [depth, tags] = [0, 0]
  let seen: SeenText | null = null
  if (html !== null) {
    const collected = anchorsOf(asInBrowsers(html), maxLinks * 5)
    depth = collected.depth
    tags = collected.tags
    seen = collected.seen
    for (const anchor of collected.anchors) add(found, anchor)
    for (const run of collected.textRuns) for (const address of addressesIn(run)) addAddress(found, address)
  }
  if (text !== null) for (const address of addressesIn(text)) addAddress(found, address)
  if (unsubscribe !== undefined) addUnsubscribe(found, unsubscribe)
  // a character reference of HTML may be a control character
  const links = [...found.values()].map((link) => ({
    ...link,
    url: withoutControls(link.url),
    text: withoutControls(link.text),
  }))
  return { links, depth, tags, seen }
}

/** The `http` and `https` links of plain text, e.g. of an SMS. */
export function linksIn(text: string): Link[] {
  return linksOf(null, text, undefined).links
}

/**
 * True if a message may have a link, also of a kind that `linksOf` leaves out, such as those of forms and images, of long URLs, without a scheme, and
 * names of servers of which programs make one: what leaves is held rather for too many.
 */
export function mayHaveLink(text: string, html: string | null): boolean {
  if (urlStart.test(text) || serverName.test(text)) return true
  if (html === null) return false
  const decoded = html.replace(namedLanguage, '').replaceAll(namespaces, '').replaceAll(references, characterOf)
  const joined = decoded.replaceAll(/\\?[\t\r\n]/g, '')
  // as it is written, without what browsers leave out of URLs and before them, and with the characters for which escapes of CSS stand
  // eslint-disable-next-line no-control-regex -- these are left out before a URL
  const forms = [decoded, joined, decoded.replaceAll(/[\0-\x20]+/g, ' '), withoutEscapes(joined)]
  return serverName.test(strippedOf(decoded)) || forms.some((form) => urlStart.test(form) || valueStart.test(form))
}

export function hasUrl(text: string): boolean {
  return urlStart.test(text)
}

const urlStart = /\b(?:https?|ftp):[\\/]|\bwww\.[a-z\d]/i

/** A URL at the start of an attribute's value, or in a style: of the scheme of the page, or without slashes. */
const valueStart = /[=("',;][\s"'\0]{0,9}(?:(?:https?|ftp):\S|[\\/]{2})/i

/**
 * The name of a server, with an end that domains have, of two letters those of countries; not the domain of a mail address. A name of a file with such an
 * end is one too: programs make a link of `README.md`, but not of `index.ts`.
 */
const serverName =
  /(?<![@\w.-])(?:[a-z\d][a-z\d-]{0,62}\.){1,9}(?:a[cdefgilmnoqrstuwxz]|b[abdefghijmnorstvwyz]|c[acdfghiklmnoruvwxyz]|d[ejkmoz]|e[cegrstu]|f[ijkmor]|g[abdefghilmnpqrstuwy]|h[kmnrtu]|i[delmnoqrst]|j[emop]|k[eghimnprwyz]|l[abcikrstuvy]|m[acdeghklmnopqrstuvwxyz]|n[acefgilopruz]|om|p[aefghklmnrstwy]|qa|r[eosuw]|s[abcdeghijklmnortuvxyz]|t[cdfghjklmnortvwz]|u[agksyz]|v[aceginu]|w[fs]|y[et]|z[amw]|com|net|org|info|biz|app|dev|xyz|top|site|online|link|click|shop|live|club|page|icu|vip|cloud|store|space|website|xn--[a-z\d-]{2,59})(?![\w@-]|\.[a-z\d])/i

/** Where HTML says its language. */
const namedLanguage = /^\s{0,99}<!doctype[^<>]{0,300}>/i
const namespaces =
  /\bxmlns(?::[a-z]{1,20})?\s{0,9}=\s{0,9}(["']?)https?:\/\/(?:www\.w3\.org|schemas\.(?:microsoft|openxmlformats)\.(?:com|org))\/[\w./-]{0,100}\1/gi

/** Character references of what a URL begins with. */
const references = /&(?:#0*(\d{1,7})|#x0*([\da-f]{1,6})|(colon|sol|bsol|tab|newline|period));?/gi
const named: ReadonlyMap<string, string> = new Map(
  Object.entries({ colon: ':', sol: '/', bsol: '\\', tab: '\t', newline: '\n', period: '.' }),
)

function characterOf(_whole: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) return named.get(name.toLowerCase())!
  const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal)
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}

const linkify = new LinkifyIt({ fuzzyLink: false, fuzzyEmail: false, maxLength: longestUrl })

function add(found: Map<string, Link>, { href, text, before }: Anchor): void {
  const key = keyOf(href)
  if (key === undefined) return
  const kind = kindOf(href, text, before)
  const known = found.get(key)
  if (known === undefined) {
    if (found.size < maxLinks) found.set(key, { url: href, text, kind })
    return
  }
  if (known.text === '') known.text = text
  if (known.kind === 'other') known.kind = kind
}

// The first occurrence of a link determines its text and kind.
function addAddress(found: Map<string, Link>, address: Anchor): void {
  const key = keyOf(address.href)
  if (key !== undefined && !found.has(key)) add(found, address)
}

// `https://a.test` and `https://A.test/` are the same link.
function keyOf(url: string): string | undefined {
  return url.length > longestUrl ? undefined : (URL.parse(url)?.href ?? undefined)
}

function addressesIn(text: string): Anchor[] {
  const anchors: Anchor[] = []
  const scheme = /https?:\/\//gi
  // Real messages have at most a few hundred links. The limit bounds the time for hostile ones.
  for (let tries = 0; tries < maxLinks * 5; tries++) {
    const at = scheme.exec(text)?.index
    if (at === undefined) break
    const run = /^\S+/.exec(text.slice(at, at + longestUrl))?.[0] ?? ''
    const url = isCostly(run) ? undefined : linkify.matchAtStart(run)?.url
    if (url === undefined) continue
    scheme.lastIndex = at + url.length
    anchors.push({ href: url, text: '', before: text.slice(Math.max(0, at - 160), at) })
  }
  return anchors
}

// Matching a host backtracks over its labels: no real host has more than ten.
function isCostly(url: string): boolean {
  const host = url.slice(0, 400).split(/[/?#]/, 3)[2] ?? ''
  return host.length > 260 || host.split('.').length > 10
}

function addUnsubscribe(found: Map<string, Link>, value: string): void {
  for (const [, url] of value.slice(0, 20_000).matchAll(/<\s*(https?:\/\/[^<>\s]+)\s*>/gi)) {
    const key = url === undefined ? undefined : keyOf(url)
    if (url === undefined || key === undefined) continue
    const known = found.get(key)
    if (known !== undefined) known.kind = 'unsubscribe'
    else if (found.size < maxLinks) found.set(key, { url, text: '', kind: 'unsubscribe' })
  }
}

type Kind = Link['kind']

/** The likely purpose of a link: by its text, else by its URL, else by the sentence before it. */
function kindOf(url: string, text: string, before: string): Kind {
  const own = /^https?:/i.test(text) ? 'other' : byWords(text)
  if (own !== 'other') return own
  const path = byPath(url)
  if (path !== 'other') return path
  // The sentence before does not describe a link with an unrelated text of its own ("Help", "Privacy").
  return text === '' || /^https?:/i.test(text) || vague.test(text) ? byWords(lastSentence(before)) : 'other'
}

const vague =
  /^\W*(?:(?:click|tap|press)?\s?(?:on\s)?(?:here|this link|link|the (?:link|button)(?: below)?)|hier(?: klicken)?|diesen link|aquí|(?:haz|haga) clic aquí|ici|cliquez ici|qui|clicca qui|aqui|clique aqui|continue|weiter|continuer|continuar|yes|ok|buraya|buraya tıklayın|здесь|по ссылке|ссылк[аеу]|нажмите здесь|点击这里|点击此处|此处|這裡|こちら|ここ|여기|여기를 클릭|هنا|اضغط هنا|tutaj|tu)\W*$/iu

function byWords(words: string): Kind {
  if (words === '') return 'other'
  for (const [kind, pattern] of wordsOfKind) if (pattern.test(words)) return kind
  return 'other'
}

const wordsOfKind: [Kind, RegExp][] = [
  [
    'unsubscribe',
    /unsubscribe|opt[- ]?out|stop receiving|abmelden|abbestellen|abmeldung|désabonner|désinscri|se désinscrire|darse de baja|cancelar (?:la |tu |su )?suscripci|anular suscripci|dar de baja|disiscri|annulla (?:l')?iscrizione|cancelar (?:a )?(?:inscrição|assinatura)|descadastrar|uitschrijven|afmelden|avregistrera|avprenumerera|afmeld|meld deg av|wypisz|rezygnuj|отписат|отказаться от|退订|取消订阅|取消訂閱|配信停止|購読解除|수신거부|수신 거부|구독 취소|إلغاء الاشتراك|aboneliğ?[^ ]* (?:iptal|sonlan)|abonelikten (?:çık|ayrıl)|listeden çık/iu,
  ],
  [
    'reset',
    /(?:reset|change|set|choose|create|forgot|recover)\b.{0,30}\bpassword|password reset|zurück(?:zu)?setz|neues passwort|kennwort|réinitialiser|mot de passe|(?:restablecer|cambiar|recuperar|crear)\b.{0,20}contraseña|restablec|redefinir (?:a |sua )?senha|redefinir|reimposta|(?:nuova )?password dimenticata|wachtwoord|återställ|nulstil|tilbakestill|resetuj|zresetuj|сбро(?:сить|с) парол|(?:восстанов|измен|смен).{0,20}парол|重置密码|重設密碼|重设密码|修改密码|パスワード.{0,6}(?:再設定|リセット|変更)|비밀번호.{0,6}(?:재설정|변경|초기화)|إعادة تعيين|كلمة المرور|şifre.{0,20}(?:sıfırla|yenile|değiştir)|parola.{0,20}sıfırla/iu,
  ],
  [
    'verify',
    /verif(?:y|ication|ied)|confirm|activate|activation|validate|complete (?:your )?(?:registration|sign[- ]?up)|finish (?:signing up|registration)|bestätig|verifizier|aktivier|freischalt|confirmer|vérifi|activer|valider|verifica|confirma|activar|ativar|conferma|attiva|bevestig|verifieer|activeer|bekräfta|verifiera|aktivera|bekræft|bekreft|vahvista|potwierdź|potwierdz|aktywuj|zweryfikuj|подтверд|активир|подтверждени|验证|驗證|确认|確認|激活|啟用|認証|有効化|本登録|登録を完了|인증|확인하기|이메일 확인|확인|تأكيد|تحقق|تفعيل|doğrula|onayla|etkinleştir/iu,
  ],
  [
    'signin',
    /(?:sign|log)[- ]?(?:me )?in\b|sign you in|magic link|login|anmelden|einloggen|se connecter|connectez|connexion|iniciar sesión|inicia sesión|acceder a|entrar|fazer login|acessar|accedi|inloggen|logga in|log ind|logg inn|kirjaudu|zaloguj|войти|вход|登录|登入|登錄|ログイン|サインイン|로그인|تسجيل الدخول|giriş yap|oturum aç/iu,
  ],
]

function byPath(url: string): Kind {
  const path = url.slice(url.indexOf('/', 8)).slice(0, 300)
  if (/unsub(?:scribe)?\b|opt[-_]?out\b|abmelden|desuscribir|\/preferences\/off/i.test(path)) return 'unsubscribe'
  if (
    /(?:password|passwd|pwd)[-_/]?(?:reset|recover|change|new)|reset[-_/]?(?:your[-_])?(?:password|pwd)|\/reset\b|forgot/i.test(
      path,
    )
  )
    return 'reset'
  if (/verif(?:y|ication)|confirm(?:ation)?\b|confirm[-_/]|activat(?:e|ion)|validate[-_]?email|\boptin\b/i.test(path))
    return 'verify'
  if (/magic[-_]?(?:link|login|sign)|sign[-_]?in\b|log[-_]?in\b|\/auth\/(?:email|token|callback)|passwordless/i.test(path))
    return 'signin'
  return 'other'
}

function lastSentence(before: string): string {
  const sentences = before.trim().split(/(?<=[.!?。！？])\s+|\n\s*\n/)
  return sentences.at(-1) ?? ''
}
