import { randomUUID } from 'node:crypto'

/**
 * Marks what strangers wrote, so that a model can tell it from what the box says. The marks carry a number that is random for each answer: a text
 * cannot end its own fence. What looks like a mark within is broken all the same, for models that do not compare numbers.
 */
export class Fence {
  // of a UUID the first twelve digits are random
  readonly #nonce = randomUUID().slice(0, 13).replace('-', '')

  wrap(text: string): string {
    return `<<untrusted ${this.#nonce}\n${withoutMarks(text)}\nuntrusted ${this.#nonce}>>`
  }

  /** Characters that the marks add. */
  static readonly overhead = 2 * ('<<untrusted \n'.length + 12)
}

/** Characters that are not seen and hide what a text says; joiners stay, as scripts and emoji need them. */
const unseen = /[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu

// the word of the marks, with joiners between its letters
const opening =
  /[<＜«≪《](?=[<＜\s]{0,8}u[\u200c\u200d]?n[\u200c\u200d]?t[\u200c\u200d]?r[\u200c\u200d]?u[\u200c\u200d]?s[\u200c\u200d]?t[\u200c\u200d]?e[\u200c\u200d]?d)/giu
const closing =
  /(u[\u200c\u200d]?n[\u200c\u200d]?t[\u200c\u200d]?r[\u200c\u200d]?u[\u200c\u200d]?s[\u200c\u200d]?t[\u200c\u200d]?e[\u200c\u200d]?d[\s\w]{0,40})[>＞»≫》]/giu

/** Text without unseen characters, and without what looks like a mark. */
export function withoutMarks(text: string): string {
  return text.replace(unseen, '').replace(opening, '(').replace(closing, '$1)')
}
