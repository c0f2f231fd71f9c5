import type { Finding } from '../core/policy.ts'
import { codesIn } from './codes.ts'

/** A text that is scanned, and where it is: `subject`, `body_text`, an attachment's name. */
export interface ScannedText {
  place: string
  text: string
  /** True for a text of ids, in which only keys and tokens of a known form are looked for: ids have random characters. */
  isOfIds?: boolean
}

/** What was found where, with the beginning of it. */
export interface Found {
  kind: Finding
  place: string
  /** Its first characters, the others as dots. */
  sample: string
}

/** Findings of each kind that are told; more change nothing. Those of one kind take no place of another, which a rule may look for. */
const maxOfKind = 20

/** Keys and tokens whose form is known. */
const secretForms: readonly RegExp[] = [
  /-----BEGIN (?:[A-Z]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----/,
  /\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b/,
  /\bgh[oprsu]_[A-Za-z\d]{36,255}\b/,
  /\bgithub_pat_\w{50,255}/,
  /\bglpat-[\w-]{20,64}/,
  /\bxox[abeoprs]-[\w-]{10,255}/,
  /\b[rs]k_(?:live|test)_[A-Za-z\d]{16,255}\b/,
  /\bsk-(?:ant-|proj-)?[\w-]{20,255}/,
  /\bAIza[\w-]{35}/,
  /\bya29\.[\w-]{20,255}/,
  /\bSG\.[\w-]{16,64}\.[\w-]{16,64}/,
  /\bnpm_[A-Za-z\d]{36}\b/,
  /\bpypi-[\w-]{32,255}/,
  /\bdop_v1_[a-f\d]{64}\b/,
  /\bhf_[A-Za-z\d]{30,64}\b/,
  /(?<![\w-])eyJ[\w-]{8,2048}\.eyJ[\w-]{8,4096}\.[\w-]{8,1024}/,
]

/** An API key of a box (`accounts/secret.ts`). */
const keyForm = /\bpbx_[A-Za-z\d]{49}\b/

/** Runs that may be a random secret: of one alphabet, and no word of a language is as long. */
const runs = /[A-Za-z\d+/_-]{24,512}/g

/** Digits that may be a card number (ISO/IEC 7812), with single blanks, dots or hyphens between. */
const digits = /(?<![\d.])\d(?:[ .-]?\d){12,18}(?![\d.]?\d)/g

/** Digits in the groups in which card numbers are written, whatever other digits stand before and behind them, such as those of a date. */
const groups = /(?<![\d.])(?=((?:\d{4}[\s_-]{0,3}){3}\d{4}|\d{4}[\s_-]{0,3}\d{6}[\s_-]{0,3}\d{4,5}|\d{13,19})(?!\d|\.\d))\d+/g

/** Numbers as the networks of cards issue them. */
const issued = /^(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[0689]\d{12}|35\d{14}|6\d{15,18})$/

/** What is found in these texts, the worst first of each text. Every pattern is linear in the length of a text. */
export function findingsIn(texts: readonly ScannedText[]): Found[] {
  const found: Found[] = []
  const isFull = (kind: Found['kind']): boolean => found.filter((one) => one.kind === kind).length >= maxOfKind
  const add = (kind: Found['kind'], place: string, match: string): void => {
    const sample = `${match.slice(0, 4)}${'•'.repeat(Math.min(8, Math.max(0, match.length - 4)))}`
    if (isFull(kind) || found.some((one) => one.kind === kind && one.place === place && one.sample === sample)) return
    found.push({ kind, place, sample })
  }
  for (const { place, text: written, isOfIds = false } of texts) {
    const text = displayed(written)
    const key = keyForm.exec(text)
    if (key) add('key', place, key[0])
    for (const form of secretForms) {
      const match = form.exec(text)
      if (match) add('secret', place, match[0])
    }
    if (isOfIds) continue
    for (const [run] of text.matchAll(runs)) {
      if (isFull('secret')) break
      if (isRandom(run)) add('secret', place, run)
    }
    for (const number of cardsIn(text)) {
      if (isFull('card')) break
      add('card', place, number)
    }
    for (const code of codesIn('', text)) add('code', place, code)
  }
  return found
}

/** A text with one sort of blanks, hyphens and digits, and without characters that nobody sees: what is displayed alike is found alike. */
function displayed(text: string): string {
  // eslint-disable-next-line no-control-regex -- every character beyond ASCII is looked for
  if (!/[^\0-\x7f]/.test(text)) return text
  return text
    .replace(/[\p{Cf}\p{Variation_Selector}\u034f]+/gu, '')
    .replace(/\p{Zs}/gu, ' ')
    .replace(/[\p{Pd}\u2212]/gu, '-')
    .replace(/[\u0660-\u0669\u06f0-\u06f9\uff10-\uff19]/g, (digit) => String(digit.charCodeAt(0) & 0xf))
}

function* cardsIn(text: string): Generator<string> {
  for (const [number] of text.matchAll(digits)) if (isCardNumber(number.replaceAll(/\D/g, ''))) yield number
  for (const [, number = ''] of text.matchAll(groups)) {
    const bare = number.replaceAll(/\D/g, '')
    if (issued.test(bare) && isCardNumber(bare)) yield number
  }
}

/** True for a card number: the check digit of Luhn, and a first digit that networks issue. */
function isCardNumber(number: string): boolean {
  if (!/^[2-6]/.test(number) || /^(\d)\1+$/.test(number)) return false
  let sum = 0
  for (let at = 0; at < number.length; at += 1) {
    const digit = number.charCodeAt(number.length - 1 - at) - 48
    const doubled = at % 2 === 1 ? 2 * digit : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/**
 * True for characters that look chosen at random: with digits and letters of both cases (or hexadecimal), and about as many bits a character as
 * that gives (Shannon entropy). Words with hyphens, paths and numbers have fewer.
 */
function isRandom(run: string): boolean {
  const isHex = /^[\da-f]+$/i.test(run) && /\d/.test(run) && /[a-f]/i.test(run)
  if (isHex) return run.length >= 32 && entropyOf(run.toLowerCase()) > 3.2
  if (!/\d/.test(run) || !/[a-z]/.test(run) || !/[A-Z]/.test(run)) return false
  return entropyOf(run) > (run.length >= 40 ? 4.3 : 3.9)
}

/** Bits a character. */
function entropyOf(run: string): number {
  const counts = new Map<string, number>()
  for (const character of run) counts.set(character, (counts.get(character) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= (count / run.length) * Math.log2(count / run.length)
  return bits
}
