/** Characters that nobody sees, other than white space. */
const any = /[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/u

/**
 * Those that are not needed to read a text: all but selectors behind characters that have variants, joiners behind letters and digits that are joined or emoji, and
 * marks of direction. The flags of England, Scotland and Wales are a black flag with tags (UTS 51): these are matched to be kept.
 */
const needless =
  /\u{1f3f4}\u{e0067}\u{e0062}[\u{e0061}-\u{e007a}]{3}\u{e007f}|(?!\p{Join_Control}|\p{Variation_Selector}|\p{Bidi_Control})\p{Default_Ignorable_Code_Point}|[\u202d\u202e\ufff9-\ufffb]|(?<![0-9#*])(?<![\p{Emoji}\p{S}\p{sc=Han}\p{sc=Mongolian}\p{sc=Phags_Pa}\p{sc=Myanmar}\p{sc=Manichaean}])\p{Variation_Selector}|(?<=[0-9#*])\p{Variation_Selector}(?!\u20e3)|(?<!\p{sc=Han})[\u{e0100}-\u{e01ef}]|(?<!(?![0-9\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{sc=Han}])[\p{L}\p{M}\p{Nd}\p{Extended_Pictographic}\p{Emoji_Modifier}])\p{Join_Control}|(?<=[a-z])\p{Bidi_Control}(?=[a-z])/giu

/** A letter that is written from the right. */
const fromTheRight = /[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u

const flag = '\u{1f3f4}'

/** A text without the characters that nobody sees and no script needs. Flags, emoji, Persian, Hebrew and Arabic stay as they are. */
export function withoutInvisible(text: string): string {
  if (!any.test(text)) return text
  const directed = fromTheRight.test(text) ? text : text.replace(/\p{Bidi_Control}/gu, '')
  // a joiner may follow a selector that is left out
  return withoutNeedless(withoutNeedless(directed))
}

/** The same of the name of an address. */
export function withSeenName<Named extends { name: string }>(address: Named): Named {
  return { ...address, name: withoutInvisible(address.name) }
}

function withoutNeedless(text: string): string {
  return text.replace(needless, (found) => (found.startsWith(flag) ? found : ''))
}

/** What is written with characters that nobody sees. */
interface Invisible {
  /** Characters in runs of tags, or of selectors of variants. */
  tags: number
  /** What the tags say in ASCII; the start. */
  said: string
  /** Characters of no width between letters that need none. */
  inWords: number
  /** What is displayed in another order than it is written, as it is displayed; the start. */
  reversed: string
}

/** The longest text that is searched; most of what is hidden in a longer one is found all the same, as it is in what is searched. */
const maxLength = 128 * 1024
const maxSaid = 2000

/** Looks for text in characters that nobody sees, and for text that is displayed backwards. */
export function invisibleIn(whole: string): Invisible {
  const text = whole.length > maxLength ? whole.slice(0, maxLength) : whole
  const found: Invisible = { tags: 0, said: '', inWords: 0, reversed: '' }
  if (!any.test(text)) return found
  for (const [run] of text.matchAll(
    /\u{1f3f4}\u{e0067}\u{e0062}[\u{e0061}-\u{e007a}]{3}\u{e007f}|[\u{e0001}-\u{e007f}]{3,2000}|\p{Variation_Selector}{3,2000}/gu,
  )) {
    if (run.startsWith(flag)) continue
    const codes = Array.from(run, (character) => character.codePointAt(0)!)
    found.tags += codes.length
    if (found.said.length < maxSaid) found.said += `${String.fromCharCode(...codes.flatMap(byteOf))} `
  }
  for (const [run] of text.matchAll(between)) found.inWords += run.length
  for (const [, run = ''] of text.matchAll(/[\u202e\u202d]([^\u202c\n]{1,500})/gu)) {
    // Hebrew and Arabic are displayed from the right without it
    if (/[\u0590-\u08ff]/.test(run) || found.reversed.length > maxSaid) continue
    found.reversed += `${Array.from(run).toReversed().join('')} `
  }
  return found
}

/** The byte for which a tag or a selector stands: two ways by which text is hidden. */
function byteOf(code: number): number[] {
  if (code >= 0xe0020 && code < 0xe007f) return [code - 0xe0000]
  const byte = code >= 0xe0100 ? code - 0xe0100 + 16 : code - 0xfe00
  return byte >= 0x20 && byte < 0x7f ? [byte] : []
}

// soft hyphens and spaces of no width say where a long word may break: those are few
const between =
  /(?<=[a-z\u00c0-\u024f\u0400-\u04ff])(?:\p{Join_Control}|\p{Variation_Selector}|\p{Bidi_Control}|[\u034f\u180e\u200b\u2060-\u2064\ufeff]){1,100}(?=[a-z\u00c0-\u024f\u0400-\u04ff])/giu
