import type { Address, Screening } from '../../mail/model.ts'
import { displayLine, withoutControls } from '../../core/text.ts'
import { maxCompared, ShownText } from './alternative.ts'
import { comparable, type Instruction, instructionsIn } from './instructions.ts'
import { invisibleIn, withoutInvisible } from './invisible.ts'
import type { SeenText } from './seen.ts'

type Reason = Screening['reasons'][number]

/** What is screened of a message. */
interface Screened {
  subject: string
  from: Address | null
  /** The text part; null for none. */
  text: string | null
  /** What is seen of the HTML; null for none. */
  seen: SeenText | null
  /** True if the text part is an alternative of the HTML, which is displayed in its place. */
  isAlternative: boolean
}

/** What was found, and which of two alternatives says what a person sees. */
interface ScreeningResult {
  screening: Screening
  /** The text part says something that the HTML, which is displayed in its place, does not, or says less of it: a sentence without what stands around it. */
  isOtherText: boolean
}

/** The part of the letters of the HTML that a text part with the same content has at least. */
const wholeShare = 0.8

/** Points of an instruction that is seen; with two kinds of them a message is suspicious. */
const seenPoints: Readonly<Record<Instruction, number>> = { override: 40, marker: 40, secrecy: 30, disclosure: 30, role: 20 }

/** Points of an instruction that is not seen, and of each further kind. */
const unseenPoints = 70
const morePoints = 10

/** Points of a long text that is not seen. */
const longPoints = 15

/** So many unseen letters that are not seen elsewhere either are more than the preview of a newsletter. */
const longPreview = 1000

/** Joiners and spaces of no width in words; a word or two may have some to be broken. */
const fewInWords = 8

const maxReasons = 20
const maxExcerpt = 80

/**
 * Looks for what is hidden from a person who looks at a message but not from a program that reads it, and for text that instructs its reader. The
 * score is the sum of the points of all reasons, at most 100.
 */
export function screen({ subject, from, text, seen, isAlternative }: Screened): ScreeningResult {
  const reasons: Reason[] = []
  let score = 0
  const add = (points: number, kind: Reason['kind'], where: Reason['where'], excerpt: string) => {
    score = Math.min(100, score + points)
    if (reasons.length < maxReasons) reasons.push({ kind, where, excerpt: excerptOf(excerpt) })
  }
  let unseenKinds = 0
  const addUnseen = (where: Reason['where'], hidden: string): boolean => {
    const found = instructionsIn(comparable(hidden))
    for (const { excerpt } of found) add(unseenKinds++ === 0 ? unseenPoints : morePoints, 'instruction', where, excerpt)
    return found.length > 0
  }
  const addInvisible = (where: Reason['where'], whole: string) => {
    const found = invisibleIn(whole)
    if (found.tags > 0) add(unseenPoints, 'invisible_characters', where, found.said)
    if (found.inWords >= fewInWords) add(seenPoints.secrecy, 'invisible_characters', where, whole)
    if (found.reversed !== '') {
      add(seenPoints.secrecy, 'bidi', where, found.reversed)
      addUnseen(where, found.reversed)
    }
    if (found.said !== '') addUnseen(where, found.said)
  }
  const isSeparate = seen !== null && isAlternative && text !== null
  const shown = seen !== null && (isSeparate || seen.unseen.size > 0) ? new ShownText(seen.text, seen.html) : null
  const missing = isSeparate && shown !== null ? shown.missingLines(text) : []
  const isTextUnseen = isSeparate && (seen.isCut || text.length > maxCompared || missing.length > 0)

  let omitted = 0
  for (const [where, hidden] of seen?.unseen ?? []) {
    const letters = where === 'comment' || where === 'attribute' ? 0 : lettersIn(hidden)
    omitted += letters
    const isLong = letters > longPreview && lettersIn(shown!.missingLines(hidden).join('')) > longPreview
    const instructs = addUnseen(where, hidden)
    if (isLong || (letters > 0 && !instructs)) add(isLong ? longPoints : 0, 'hidden_text', where, hidden)
    addInvisible(where, hidden)
  }
  if (isTextUnseen) {
    omitted += lettersIn(missing.join(''))
    addUnseen('text_part', missing.join('\n'))
    // it is in the list whatever else was found
    if (reasons.length === maxReasons) reasons.pop()
    add(0, 'alternative_differs', 'text_part', missing.join(' '))
  }
  // what was said above of the text part is not said again
  const read = seen === null ? (text ?? '') : isAlternative ? seen.text : `${seen.text}\n${text ?? ''}`
  addInvisible('subject', subject)
  addInvisible('sender', from?.name ?? '')
  addInvisible('text', read)
  if (isSeparate) addInvisible('text_part', text)
  for (const { kind, excerpt } of instructionsIn(comparable(`${subject}\n\n${from?.name ?? ''}\n\n${read}`)))
    add(seenPoints[kind], 'instruction', 'text', excerpt)
  const isOtherText = isTextUnseen || (isSeparate && lettersIn(text) < wholeShare * lettersIn(seen.text))
  return { screening: { score, reasons, hidden_text_omitted: omitted }, isOtherText }
}

function excerptOf(text: string): string {
  return withoutControls(displayLine(withoutInvisible(text.slice(0, 1000))))
    .slice(0, maxExcerpt)
    .toWellFormed()
}

function lettersIn(text: string): number {
  return text.match(/[\p{L}\p{N}]/gu)?.length ?? 0
}
