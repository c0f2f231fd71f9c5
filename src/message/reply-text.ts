/**
 * The new text of a message: without the quoted message, its attribution (`On … wrote:`, Outlook's header block,
 * `-----Original Message-----`) and the signature (RFC 3676 4.3). A forwarded message is kept. So is what looks like a quote in a message that is
 * no answer, as itineraries, web forms and comments in HTML have it: only lines of plain text with quote marks go. The whole text is kept when nothing
 * else would be left, or when nothing is quoted in the first 512 Ki characters. Linear in the text.
 */
export function stripReply(text: string, subject = '', origin: TextOrigin = { refers: true, isHtml: false }): string {
  if (text.length > maxSearched) {
    const start = text.slice(0, maxSearched)
    const part = stripReply(start, subject, origin)
    return part === collapseBlankLines(start) ? collapseBlankLines(text) : part
  }
  if (!mayQuote(text)) return collapseBlankLines(text)
  const kept = withoutSignature(withoutQuotes(text.split('\n'), subject, origin))
  return collapseBlankLines(kept.join('\n')) || collapseBlankLines(text)
}

interface TextOrigin {
  /** True if the header names another message. */
  refers: boolean
  isHtml: boolean
}

// Characters that are searched for a quote.
const maxSearched = 512 * 1024

// A cheap test before the text is split: a quote, a dashed line, or the colon that ends an attribution or follows From.
function mayQuote(text: string): boolean {
  return beginsQuote.test(text) || endsInColon.test(text) || mailProgram.test(text)
}

const beginsQuote =
  /^(?:>|--[ \t]*$|[-_*]{4,}|[ *]{0,8}(?:from|von|de|da|van|fra|från|od|lähettäjä|kimden|от|відправник|发件人|寄件者|差出人|보낸))/im
const endsInColon = /[:：][* ]{0,8}$/m
const mailProgram = /iphone|ipad|outlook|android/i

const forwarded = /^\s*(?:fwd?|wg|tr|rv|enc|i|doorst|vs|vb|pd|転送|转发|轉寄|전달|переслано|ilt)\s*[:：]/i

/** Behind a ticket's number too: `[4711] Re: …`. */
const replied =
  /(?:^|[\s\])])(?:re|r|aw|sv|vs|antw|odp|rif|res|ynt|vá|απ|回复|回覆|答复|답장|返信|ответ)(?:\[\d{1,4}\])?\s?[:：]/iu

const forwardedMessage =
  /^[-_\s*]{0,60}(?:begin forwarded message|forwarded message|weitergeleitete nachricht|message (?:transféré|réexpédié)|mensaje reenviado|messaggio inoltrato|mensagem (?:encaminhada|reencaminhada)|doorgestuurd bericht|vidarebefordrat meddelande|videresendt (?:besked|melding)|przekazana wiadomość|пересылаемое сообщение|转发的邮件|轉寄的郵件|転送メッセージ)[-_\s*:：]{0,60}$/iu

const originalMessage =
  /^[-_\s*]{2,60}(?:original message|original appointment|reply message|ursprüngliche nachricht|mensaje original|message d['’]origine|messaggio originale|oorspronkelijk bericht|mensagem original|ursprungligt meddelande|oprindelig meddelelse|opprinnelig melding|alkuperäinen viesti|wiadomość oryginalna|původní zpráva|eredeti üzenet|özgün ileti|orijinal mesaj|исходное сообщение|原始邮件|原始郵件|元のメッセージ|원본 메시지|원본 메일)[-_\s*]{2,60}$/i

const attribution =
  /(?:\bwrote|\bschrieb(?:\s.{1,120})?|\ba\s[ée]crit|\bescribi[óo]|\bha\s+scritto|\bescreveu|\bschreef(?:\s.{1,120})?|\bskrev(?:\s.{1,120})?|\bnapisał(?:\(a\)|a)?|\bpisze|\bkirjoitti|\bnapsala?\(?a?\)?|\bírta|\bşunu yazdı|\byazdı|\ba scris|έγραψε|писал\(?а?\)?|написала?\(?а?\)?|пишет|כתב\/?ה?|كتب|写道|寫道|のメール|さんは書きました|のメッセージ|님이 작성|작성)\s*[:：]\s*$/iu

// Gmail in languages that need no verb: "2026年11月19日(木) 16:12 Robin <robin@box.example>:"
const namedSender = /^[^<]{0,300}\d[^<]{0,300}<[^<>\s]{1,200}@[^<>\s]{1,200}>\)?\s?[:：]$/u

const fieldNames = [
  'from|sent|date|to|subject|cc',
  'von|gesendet|datum|an|betreff',
  'de|envoyé|date|à|objet|cc',
  'de|enviado(?: el)?|fecha|para|asunto',
  'da|inviato|data|a|oggetto',
  'de|enviada em|enviado|data|para|assunto',
  'van|verzonden|datum|aan|onderwerp',
  'från|skickat|datum|till|ämne',
  'fra|sendt|dato|til|emne',
  'od|wysłano|data|do|temat',
  'kimden|gönderildi|gönderme tarihi|tarih|kime|konu',
  'от|отправлено|дата|кому|тема',
  '发件人|发送时间|日期|收件人|主题',
  '寄件者|寄件日期|收件者|主旨',
  '差出人|送信日時|日付|宛先|件名',
  '보낸 사람|보낸 날짜|날짜|받는 사람|제목',
]
const sender = /^[\s*]*(?:from|von|de|da|van|från|fra|od|kimden|от|发件人|寄件者|差出人|보낸 사람)\s?\**[:：]/iu
const headerLine = new RegExp(`^[\\s*]*(?:${fieldNames.join('|')})\\s?\\**[:：]`, 'iu')

const sentFrom =
  /^(?:sent from (?:my|mail|outlook|yahoo|proton|samsung)\b.{0,80}|get outlook for .{1,80}|von meinem .{1,40} gesendet|gesendet (?:von|mit|aus) .{1,80}|envoyé (?:de|depuis|à partir de) .{1,80}|enviado (?:desde|do meu|a partir do) .{1,80}|inviato da .{1,80}|verzonden (?:vanaf|met) .{1,80}|verstuurd vanaf .{1,80}|skickat från .{1,80}|sendt fra .{1,80}|wysłane z .{1,80}|отправлено (?:с|из) .{1,80}|发自我的.{1,40}|從我的.{1,40}傳送|.{0,40}から送信|나의 .{1,40}에서 보냄|.{1,40}['’]?(?:dan|den|mdan|mden) gönderildi)\.?$/iu

function withoutQuotes(lines: readonly string[], subject: string, { refers, isHtml }: TextOrigin): string[] {
  const kept: string[] = []
  let isForward = forwarded.test(subject)
  const isTitledReply = !isForward && replied.test(subject)
  const isReply = refers || isTitledReply
  let keepsQuotes = isHtml && !isReply
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const isQuoted = line.startsWith('>') && !/^>From[ \t]/.test(line)
    if (line.length < 200 && forwardedMessage.test(isQuoted ? line.slice(1) : line)) {
      isForward ||= !isQuoted
      // some mail programs forward a message with quote marks
      keepsQuotes ||= !isTitledReply && (isQuoted || nextWords(lines, at + 1)?.startsWith('>') === true)
    }
    if (isQuoted) {
      if (keepsQuotes) kept.push(line)
      continue
    }
    if (isReply && line.length < 200 && originalMessage.test(line)) {
      if (hasWords(kept)) return kept
    } else if (isReply && !isForward && line.length < 400 && sender.test(line) && isHeaderBlock(lines, at)) {
      if (hasWords(kept)) return kept
    } else if (!keepsQuotes) {
      const length = attributionLength(lines, at)
      if (length > 0) {
        const next = nextWords(lines, at + length)
        // Above quoted lines only the attribution is removed: an answer may follow below them.
        if (next?.startsWith('>') === true || next === undefined) {
          at += length - 1
          continue
        }
        if (isReply && hasWords(kept)) return kept
      }
    }
    kept.push(line)
  }
  return kept
}

function isHeaderBlock(lines: readonly string[], at: number): boolean {
  let fields = 0
  for (const line of lines.slice(at + 1, at + 8)) if (line.length < 2000 && headerLine.test(line)) fields++
  return fields >= 2
}

// How many lines from here make up an attribution; mail programs wrap it over up to three.
function attributionLength(lines: readonly string[], at: number): number {
  const first = lines[at] ?? ''
  if (first.trim() === '') return 0
  let joined = ''
  for (let count = 1; count <= 3; count++) {
    const line = lines[at + count - 1]
    if (line === undefined || line.trim() === '' || line.length > 300) return 0
    joined = joined === '' ? line : `${joined} ${line}`
    if (/[:：]\s*$/.test(line)) {
      // An attribution has a date or an address; ordinary text that mentions what another wrote has neither.
      return joined.length < 500 && /[\d@]/.test(joined) && (attribution.test(joined.trim()) || namedSender.test(joined.trim()))
        ? count
        : 0
    }
    if (count === 1 && !startsAttribution.test(line)) return 0
  }
  return 0
}

const startsAttribution =
  /^\s*(?:on|am|le|el|il|em|op|den|w dniu|dnia|pe|ma|ti|ke|to|la|su|dne|în|la|στις|в|at|\p{L}{2,4}[.,]|\d|在|["'<\p{Lu}])/iu

/** Lines of a signature including its delimiter; a longer text is not a signature. */
const longestSignature = 12

// `-- ` (RFC 3676 4.3). A relaxed DKIM signature does not cover trailing blanks (RFC 6376 3.4.4), so that adding one must not hide text.
const signatureMark = /^--[ \t]*$/

function withoutSignature(lines: readonly string[]): string[] {
  const kept = [...lines]
  for (let at = 0; at < kept.length; at++) {
    const line = kept[at]
    if (kept.length - at <= longestSignature && signatureMark.test(line ?? '')) {
      if (hasWords(kept.slice(0, at))) kept.length = at
      break
    }
  }
  dropEmptyEnd(kept)
  const last = kept.at(-1)?.trim() ?? ''
  if (last.length < 140 && sentFrom.test(last) && hasWords(kept.slice(0, -1))) kept.pop()
  dropEmptyEnd(kept)
  return kept
}

function dropEmptyEnd(lines: string[]): void {
  while (lines.length > 0 && /^[\s_*-]*$/.test(lines.at(-1) ?? '')) lines.pop()
}

function hasWords(lines: readonly string[]): boolean {
  return lines.some((line) => /[\p{L}\p{N}]/u.test(line))
}

function nextWords(lines: readonly string[], from: number): string | undefined {
  for (let at = from; at < lines.length; at++) {
    const line = lines[at] ?? ''
    if (line.trim() !== '') return line
  }
  return undefined
}

function collapseBlankLines(text: string): string {
  const trimmed = text.trim()
  return trimmed.includes('\n\n\n') ? trimmed.replace(/\n{3,}/g, '\n\n') : trimmed
}

const maxSnippet = 200

/** At most 200 characters in one line: white space folded, invisible padding removed. */
export function snippetOf(text: string): string {
  const beginning = text.slice(0, 600)
  // More is read only when the beginning is padding.
  const start = padded.test(beginning) || /\s{9}/.test(beginning) ? text.slice(0, 6000) : beginning
  const visible = padded.test(start) ? start.replace(padding, '').replace(looseJoiners, '') : start
  const line = visible.replace(/\s+/g, ' ').trim()
  if (line.length <= maxSnippet) return line
  return line
    .slice(0, maxSnippet)
    .toWellFormed()
    .replace(/\uFFFD$/, '')
    .trimEnd()
}

/** Markdown without its markup, for one line of plain text. */
export function stripMarkdown(markdown: string): string {
  return markdown
    .slice(0, 8000)
    .replace(/\[([^[\]\n]{0,200})\]\(https?:[^()\s]{0,8192}\)/g, '$1')
    .replace(/^(?:#{1,6} |- |> )/gm, '')
    .replace(/^---$/gm, '')
    .replace(/ \| /g, ' ')
}

const padded = /[\u034f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u2800\u3164\ufeff]/
const padding = /[\u034f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\u2800\u3164\ufeff]/g
// Joiners have a meaning between letters (Persian, emoji); beside a space they are padding.
const looseJoiners = /(?<=^|\s)[\u200c\u200d]|[\u200c\u200d](?=[\s\u200c\u200d]|$)/g
