const maxCodes = 5
const maxText = 200_000

/**
 * The one-time codes of a message, best first, at most 5: 4 to 8 digits, or letters and digits, in a place where a word
 * announces them. Grouping is removed (`123 456`, `123-456` and Google's `G-123456` are `123456`), other digits become ASCII;
 * letters keep their case, and the hyphen between groups of letters stays (`WDJB-MJHT`). Linear in the text.
 */
export function codesIn(subject: string, text: string): string[] {
  const best = new Map<string, number>()
  const note = (code: string, score: number) => {
    const known = best.get(code)
    best.set(code, known === undefined ? score : Math.max(known, score) + 10)
  }
  const lines = linesOf(subject, text)
  let tries = 0
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!
    if (line.length < 4) continue
    const [hasNumber, hasToken] = [mayHoldNumber.test(line), mayHoldToken.test(line)]
    if (!hasNumber && !hasToken) continue
    for (const candidate of candidatesIn(line, hasNumber, hasToken)) {
      if (++tries > 500) break
      const score = scoreOf(candidate, lines, at)
      if (score > 0) note(candidate.code, score + (at === 0 ? 15 : 0))
    }
  }
  return [...best.entries()]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, maxCodes)
    .map(([code]) => code)
}

interface Candidate {
  code: string
  start: number
  end: number
  kind: 'digits' | 'year' | 'mixed' | 'letters'
}

// The subject is line 0, alone; then the non-empty lines of the text, white space folded.
function linesOf(subject: string, text: string): string[] {
  const lines = [plainLine(subject.slice(0, 5000)), '']
  const start = text.slice(0, maxText)
  if (
    !/\d/.test(start) &&
    !/[A-Z]{3}-[A-Z]{3}|^[a-z]{4,6}-[a-z]{4,6}/m.test(start) &&
    !/[\u0660-\u06f9\uff10-\uff19]/.test(start)
  )
    return lines
  let digitLines = ''
  for (const row of start.split('\n')) {
    const line = needsNormalizing.test(row) ? plainLine(row.slice(0, 5000)) : row.trim()
    // One digit a line, as in boxes drawn below each other.
    if (/^\d$/.test(line)) {
      digitLines += line
      continue
    }
    if (line === '' && digitLines !== '') continue
    if (digitLines.length > 3) lines.push(digitLines)
    digitLines = ''
    if (line !== '' || lines.at(-1) !== '') lines.push(line)
  }
  if (digitLines.length > 3) lines.push(digitLines)
  return lines
}

// Lines of plain words need no normalization.
const needsNormalizing = /[^ A-Za-z.,;:'!?()-]/

function plainLine(row: string): string {
  let line = row
  if (/[^ -~]/.test(line)) {
    line = line
      .replace(/[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]/g, (char) => String.fromCharCode(char.charCodeAt(0) - 0xfee0))
      .replace(/[\u0660-\u0669]/g, (char) => String(char.charCodeAt(0) - 0x660))
      .replace(/[\u06f0-\u06f9]/g, (char) => String(char.charCodeAt(0) - 0x6f0))
      .replace(/[\u034f\u00ad\u200b-\u200f\u2060\ufeff]/g, '')
      .replace(/[\u2010-\u2013\u2212]/g, '-')
      .replace(/\s+/g, ' ')
  }
  // Numbers in URLs and addresses are not codes.
  if (line.includes('://') || line.includes('@'))
    line = line.replace(/https?:\/\/[^\s)\]>]+/gi, '\u0001').replace(/\S{0,64}@\S{1,255}/g, '\u0001')
  if (!/[*_`#|>\s]{2}|[*_`#|>\t\r]|^ | $/.test(line)) return line
  return line
    .replace(/(?<=(?:^|[^\w|])\d ?)\|(?= ?\d(?:\D|$))/g, ' ')
    .replace(/[*_`#|>\s]+/g, ' ')
    .trim()
}

const numbers = /(?<![\w.,/@+=&%€$£¥₹©~-]|\d:)(?:[A-Z]{1,2}-)?\d(?:[ .\-/:,]?\d)*(?![\w@%€$£¥₹°=&])/g
const tokens = /(?<![\w.,/@+=&%$#~-]|\d:)[A-Za-z0-9]{3,12}(?:-[A-Za-z0-9]{3,6}){0,3}(?![\w@%=&-]|[./]\w)/g

const mayHoldNumber = /\d{2}|\d[ -]\d/
const mayHoldToken = /\d[A-Za-z]|[A-Za-z]\d|[A-Z]{3}-[A-Z]{3}|^[a-z]{4,6}-[a-z]{4,6}/

function* candidatesIn(line: string, hasNumber: boolean, hasToken: boolean): Generator<Candidate> {
  if (hasNumber) {
    for (const match of line.matchAll(numbers)) {
      const code = digitsOf(match[0])
      if (code !== undefined)
        yield { code, start: match.index, end: match.index + match[0].length, kind: isYear(code) ? 'year' : 'digits' }
    }
  }
  if (!hasToken) return
  for (const match of line.matchAll(tokens)) {
    const code = match[0]
    const kind = tokenKind(code)
    if (kind !== undefined) yield { code, start: match.index, end: match.index + code.length, kind }
  }
}

function digitsOf(run: string): string | undefined {
  const bare = run.replace(/^[A-Z]{1,2}-/, '')
  const isCode =
    /^\d{4,8}$/.test(bare) ||
    /^\d{3}[ -]\d{3}$/.test(bare) ||
    /^\d{4}[ -]\d{4}$/.test(bare) ||
    /^\d{3}[ -]\d{2}[ -]\d{3}$/.test(bare) ||
    /^\d{2}([ -])\d{2}\1\d{2}$/.test(bare) ||
    /^\d(?:([ -])\d)(?:\1\d){2,6}$/.test(bare)
  return isCode ? bare.replace(/\D/g, '') : undefined
}

// A year, or a date without separators: a code only when it is explicitly announced as one.
function isYear(code: string): boolean {
  return /^(?:19|20)\d\d(?:(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))?$/.test(code)
}

function tokenKind(token: string): 'mixed' | 'letters' | undefined {
  if (/^(?:[A-Z]{3,5}(?:-[A-Z]{3,5}){1,3}|[a-z]{4,6}(?:-[a-z]{4,6}){1,3})$/.test(token)) {
    const groups = token.split('-')
    return groups.every((group) => group.length === groups[0]?.length) ? 'letters' : undefined
  }
  const size = token.replaceAll('-', '').length
  const looksGenerated =
    /\d/.test(token) &&
    /[A-Za-z]/.test(token) &&
    !/^\d+(?:st|nd|rd|th|min|hrs?|h|am|pm|px|mb|gb|kb|km|kg|eur|usd|k|x|d|days?)$/i.test(token)
  return looksGenerated && size >= 5 && size <= 16 && (!token.includes('-') || /^[A-Z0-9-]+$/.test(token)) ? 'mixed' : undefined
}

// The confidence that this is a code; 0 or less when nothing announces it.
function scoreOf({ start, end, kind }: Candidate, lines: readonly string[], at: number): number {
  const line = lines[at] ?? ''
  const before = line.slice(Math.max(0, start - 160), start)
  const after = line.slice(end, end + 80)
  if (namesOther(before.slice(-40), lines) || notAfter.test(after)) return 0

  const isAlone = /^[^\p{L}\d]*$/u.test(before) && /^[^\p{L}\d]*$/u.test(after)
  if (isAlone && at > 0) {
    const above = announcedAbove(lines, at)
    if (above > 0 && (kind !== 'letters' || /[A-Z]/.test(line) || /[:：]$/.test(nextAbove(lines, at))))
      return above + kindScore[kind]
    if (kind === 'digits' && isInSubject(line.slice(start, end), lines[0] ?? '')) return 50
    const below = lines[at + 1] || lines[at + 2] || ''
    return kind === 'digits' && !/[:：]$/.test(below) && startsWithAnnouncer(below) ? 60 : 0
  }

  // One line end may separate the announcement from the code; a blank line may not.
  const wrapped =
    before.length === start && at > 1 && lines[at - 1] !== '' ? `${(lines[at - 1] ?? '').slice(-120)} ${before}` : before
  const gap = gapAfterAnnouncer(wrapped)
  if (gap !== undefined && isGapAllowed(gap, kind) && (kind !== 'letters' || /[A-Z]/.test(line.slice(start, end))))
    return 90 - gap.length / 2 + kindScore[kind]
  if (gap?.trim() === '' && kind === 'mixed' && isAsked.test(before.replace(lastWord, '')) && signInPurpose.test(after)) return 70
  return kind === 'digits' ? announcedAfter(before, after) : 0
}

const kindScore = { digits: 20, year: -20, mixed: 0, letters: 0 }

// Allowed text between the announcement and the code: no end of a sentence, and no word that refers to something else.
function isGapAllowed(gap: string, kind: Candidate['kind']): boolean {
  if (/(?<!\b(?:Rs|No))[.!?;؛](?:\s|$)|[。！？；]/i.test(gap)) return false
  if (!/(?:[:：]|\b(?:is|ist))\s*$/iu.test(gap) && otherMeaning.test(gap.slice(-24))) return false
  if (kind === 'digits') return (gap.length <= 25 && !otherObject.test(gap)) || (gap.length <= 90 && connector.test(gap))
  if (kind === 'year') return gap.length <= 12 && /[:：]\s*$|\b(?:is|ist|es|est|è|é)\s*$|[是は]\s*$/u.test(gap)
  return (
    gap.length <= 50 &&
    /^[\s)\]"'»”]{0,3}[:：\-–—]|(?:^|[^\p{L}])(?:is|ist|lautet|es|est|è|é|jest|är|er|on|to|enter|use|code|below|:)[\s:："'«“([]*$|[是为為は:：]\s*[「"“]?$/iu.test(
      gap,
    )
  )
}

function gapAfterAnnouncer(before: string): string | undefined {
  let end = -1
  for (const match of before.matchAll(announcers)) end = match.index + match[0].length
  return end === -1 ? undefined : before.slice(end)
}

function announcedAbove(lines: readonly string[], at: number): number {
  let seen = 0
  let distance = 0
  for (let above = at - 1; above >= 0 && seen < 4 && distance < 400; above--) {
    const line = lines[above] ?? ''
    if (line === '') continue
    seen++
    distance += line.length
    // "Order number:" right above: the nearer label counts.
    if (seen === 1 && (otherLabelAlone.test(line) || (!/[.!?。]$/.test(line) && namesOther(line.slice(-60), lines)))) return 0
    if (gapAfterAnnouncer(line.slice(-240)) === undefined) continue
    return (/[:：]\s*$/.test(line) ? 110 : 95) - (above === 0 ? 30 : seen * 10)
  }
  return 0
}

// A number after "confirmation code" is that of a booking only where one is spoken of.
function namesOther(before: string, lines: readonly string[]): boolean {
  if (!notBefore.test(before)) return false
  return !/confirmation code\W{0,9}$/i.test(before) || booking.test(`${lines[0]} ${before}`)
}

// "482913 – Acme login" in the subject, and the number again on a line of its own.
function isInSubject(number: string, subject: string): boolean {
  return (subject.startsWith(number) || subject.endsWith(number)) && signIn.test(subject)
}

function nextAbove(lines: readonly string[], at: number): string {
  return lines[at - 1] || lines[at - 2] || ''
}

function startsWithAnnouncer(line: string): boolean {
  for (const match of line.slice(0, 80).matchAll(announcers)) return match.index < 40
  return false
}

const lastWord = /\p{L}{2,20}\s*$/u

// "123456 is your Acme code", "Use 123456 to sign in", "123456(登录验证码)".
function announcedAfter(before: string, after: string): number {
  const clause = /^[^.!?。！？;；\n]*/.exec(after)?.[0] ?? ''
  for (const match of clause.matchAll(announcers)) {
    const gap = clause.slice(0, match.index)
    const isAnnouncement =
      /^\s?(?:is|ist|es|est|è|é|jest|är|er|[-—–(（[【「:：]|as|als|como|comme|come|to|olan|—|は|が|是|为|為|님|이|를|을|,)/iu.test(
        gap,
      ) || gap.trim() === ''
    return isAnnouncement && gap.length <= 45 && !otherMeaning.test(gap) ? 80 - gap.length / 2 : 0
  }
  return isAsked.test(before) && signInPurpose.test(clause) ? 70 : 0
}

/** The words that announce a one-time code, in the languages services write in. Similar terms (promo code, ZIP code, QR code …) are not matched. */
export const announcers = new RegExp(
  [
    // Latin scripts. The end of a word is looked for, not its start: Bestätigungscode, engangskode, vahvistuskoodi.
    String.raw`(?=cod)(?<!\b(?:promo(?:tion(?:al)?)?|offer|price|deal|savings|campaign|discount|coupon|voucher|gift|zip|postal|post|area|country|qr|error|status|tracking|order|booking|reservation|referral|source|dress|sort|swift|product|item|tax|recovery|backup|building|door|of|voucher|rabatt|gutschein|fehler|buchungs|a|any|no|exit|response|http|color|colour|reason|plus)[\s-]?)(?<!bar|zip|post|en|de|uni|qr|rabatt|gutschein|aktions|fehler|buchungs|promo|länder|bank)co(?:de|digo|dice)(?:s|n)?(?! (?:of|coverage|freeze|quality|style|complete|point|page|owner|postal|promo(?!\p{L})|promotionnel|de descuento|civil|erreur|fiscale|sconto|de réduction|barre|review|base|snippet|changes))(?![\p{L}-])`,
    String.raw`(?=c[óo]d)(?<!\p{L})c[óo]digo(?! (?:postal|promocional|de (?:descuento|desconto|barras|seguimiento|rastreio|área)))(?:s)?(?!\p{L})`,
    String.raw`(?=k[oó]|cod)(?<!barko|\bpost|\bposta |promo |rabat)(?:kod|kode|koden|koodi|kodu|koda|kodunuz|kodunuzu|kodun|kód|kódja|kódot|codul)(?!\p{L})`,
    String.raw`(?=[opmt2cvsa])(?<!\p{L})(?:otp|pin|m?tan|2fa|passcode|pass code|passphrase|clave(?: dinámica| temporal)?|(?:verification|security|authentication) (?:number|token)|token|mã(?: xác (?:nhận|minh|thực))?)(?!\p{L})(?! (?:number|in|the|it)\b)`,
    String.raw`one[- ]time (?:password|pass|pin|login)|einmal(?:passwort|kennwort)|mot de passe (?:à usage unique|temporaire)|contraseña (?:de un solo uso|temporal)|senha (?:única|temporária|de uso único)|tek kullanımlık (?:şifre|parola)|hasło jednorazowe|engångs(?:kod|lösenord)|engangs(?:kode|kodeord|passord)`,
    String.raw`(?=[копκק])(?<!\p{L})(?:код(?:а|ом)?|пароль для входа|одноразовый пароль|κωδικός|κωδικό|קוד(?: אימות)?)(?! (?:товара|города|ошибки))(?!\p{L})`,
    String.raw`رمز|كود|الرمز|کد|कोड|ओटीपी|รหัส`,
    String.raw`验证码|驗證碼|校验码|校驗碼|动态码|动态密码|動態密碼|确认码|確認碼|安全码|安全碼|认证码|認證碼|登录码|登入碼|一次性密码|一次性密碼|口令`,
    String.raw`認証コード|確認コード|認証番号|確認番号|セキュリティコード|ワンタイムパスワード|ログインコード|検証コード|暗証番号|(?<!バー|QR|クーポン|郵便)コード`,
    String.raw`인증\s?번호|인증\s?코드|확인\s?코드|보안\s?코드|로그인\s?코드|일회용\s?(?:비밀번호|코드)|(?<!바|QR\s?)코드`,
  ].join('|'),
  'giu',
)

/** Text directly before a number that is something else: an order, a phone, a price, an account's last digits. */
const notBefore =
  /(?:(?:(?<!\p{L})(?:order|invoice|receipt|ticket|case|ref(?:erence)?|tracking|shipment|parcel|flight|booking|confirmation|customer|account|acct|member|policy|contract|article|item|sku|serial|suite|room|floor|apt|box|zip|plz|phone|tel|telephone|telefon|tél|fax|mobile|call|hotline|dial|sms to|text|ending|ends|endend|terminad[ao]|finissant|card|karte|konto|iban|bic|kunden|bestell|rechnungs?|auftrags?|vorgangs?|sendungs?|pedido|factura|fatura|commande|facture|ordine|fattura|sipariş|заказ[а-я]*|сч[её]т[а-я]*|телефон|тел|号码|单号|订单|訂單|注文|電話|전화|주문|رقم الطلب|هاتف|usd|eur|gbp|try|rub|inr|cny|jpy|rs|kr)(?:nummer|nr)?)[\s.:#-]{0,3}(?:(?:no|nr|num|number|nummer|numéro|número|numero|n°|nº|№|id|in|with|on|auf|mit|en|par|with the digits|code|号|番号|번호)[\s.:#°-]{0,3}){0,2}|[#№©]\s?|copyright\s?|\(c\)\s?|[$€£¥₹₽₩]\s?|\+\s?\d{0,4}\s?|\(\d{1,5}\)\s?)$/iu

/** Words of mail about a booking or an order. */
const booking =
  /(?<!\p{L})(?:book(?:ing|ed)?|reserv(?:ation|ed)|flight|itinerary|hotel|trip|stay|travel|check-?in|tickets?|boarding|order|purchase|delivery|parcel)(?!\p{L})/iu

/** Words between an announcement and a number that make the number something else. */
const otherMeaning =
  /(?<!\p{L})(?:expires?|expiring|valid (?:for|until)|within|sent (?:to|at|on)|ending|ends in|order|invoice|phone|call|number ending|account|gültig (?:bis|für)|läuft|innerhalb|válido|expira|caduca|valable|expire|scade|действител|истекает|有效|on (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))(?!\p{L})/iu

/** Words after an announcement without "is" or a colon that turn to something else: "pushed code to branch 48213". */
const otherObject =
  /(?<!\p{L})(?:to|in|on|at|of|with|by|from|line|branch|case|version|has|have|been|was|were|page|section|for order)(?!\p{L})/iu

/** Text after a number that is a price, a time, a count or a discount. */
const notAfter =
  /^(?:\.\d| ?(?:%|€|\$|£|usd|eur|gbp|円|元|₽|руб|원|tl\b|kr\b|uhr\b|км|km\b|:\d\d)|,\d\d\b| (?:times|users|people|characters|customers|points|words|lines|steps|orders|items|downloads|views|seconds|minutes|hours|days|weeks|months|years|mal|fois|veces|volte|раз|次|回|main st|market st|at checkout|for \d{1,3} ?%|to (?:get|save|receive|claim|redeem)|and (?:get|save))(?!\p{L}))/iu

/** Text that joins an announcement to its code: "… code for your transfer is", "… code: ". */
const connector =
  /(?:[:：=(（[【「—-]|(?<!\p{L})(?:is|are|ist|sind|lautet|es|est|è|é|e['’]|to|jest|är|er|on|olan|είναι|это|היא|הוא|هو|هي|it)|[是为為は이은])[\s"'“«([（「【]*$/iu

/** A subject about signing in: "482913 – Acme login". */
const signIn =
  /log[ -]?in|sign[ -]?in|verif|authenticat|anmeld|connexion|acceso|accesso|вход|登录|登錄|登入|ログイン|로그인|giriş/iu

/** A line that is the label of another number: "Order number:". */
const otherLabelAlone =
  /^(?:[\p{L} ]{0,20})(?:order|invoice|bestell|rechnung|pedido|factura|commande|facture)[\p{L} ]{0,20}[:：]?$/iu

/** The reader is asked to enter what follows: "Enter", "Use the". */
const isAsked =
  /(?:^|\s)(?:use|enter|type|input|verwenden sie|nutze|gib|geben sie|introduce|ingresa|usa|utilisez|entrez|saisissez|inserisci|введите|используйте|请输入|輸入|输入|入力)(?: (?:the|this|den|el|le|il))?(?:\s*[:：])?\s*$/iu

/** … and what for: "to sign in". */
const signInPurpose =
  /^\s?(?:(?:in|on|into|at|auf|en|dans)\s.{0,40}?\s)?(?:to|um|para|pour|per|чтобы|для|进行|完成)\s.{0,30}(?:verif|confirm|continue|proceed|finish|activat|sign|log ?in|log ?on|authenticat|anmeld|bestätig|ident|iniciar|acceder|connect|acced|войти|вход|подтверд|验证|登录)/iu
