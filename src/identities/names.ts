import { randomInt } from 'node:crypto'
import anyAscii from 'any-ascii'
import { trimEnd } from '../core/text.ts'
import { invalid } from '../core/fault.ts'

const qualities =
  `amber brisk calm candid clear clever cosy crisp deft eager fair fleet gentle glad golden hardy humble keen kind lively lucid
  mellow merry mild nimble noble patient plain polite prime proud quick quiet ready rosy sage sharp silver smart snug solid spry steady
  sunny swift tidy true vivid warm wise witty`.split(/\s+/)
const things =
  `acorn alder anchor aspen badger beacon birch brook cedar comet coral crane dune ember falcon fern finch fjord gable grove harbor
  hazel heron holly island ivy juniper kestrel lantern larch linden lotus maple marten meadow mesa mill otter pebble pine plover quill raven
  reed ridge robin rowan sparrow spruce thistle tulip wren`.split(/\s+/)

/** A generated name, such as `Quiet Heron 4821`; unique enough to try directly. */
export function generatedName(): string {
  return `${anyOf(qualities)} ${anyOf(things)} ${randomInt(1000, 10_000)}`
}

function anyOf(list: string[]): string {
  const word = list[randomInt(list.length)]!
  return word[0]!.toUpperCase() + word.slice(1)
}

/** Characters of a local part; below the 64 of RFC 5321 4.5.3.1.1, so that a tag can follow. */
export const longestLocalPart = 56

/** A name as a local part: lower-case ASCII with dots and hyphens, at most 56 characters; empty when nothing is left. */
export function localPartOf(name: string): string {
  const plain = anyAscii(name)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/([._-])[._-]+/g, '$1')
    .replace(/^[._-]+/, '')
  return trimEnd(plain.slice(0, longestLocalPart), '._-')
}

/** The key by which names are unique in an account: case-folded and normalized. */
export function nameKey(name: string): string {
  return name.normalize('NFKC').toLowerCase()
}

/** A date of birth of an age between 21 and 60. */
export function adultDate(now: number): string {
  const day = 86_400_000
  return new Date(now - randomInt(21 * 366, 60 * 365) * day).toISOString().slice(0, 10)
}

/** The name in a request that may use either field. */
export function oneName(input: { name?: string | undefined; display_name?: string | undefined }): string | undefined {
  if (input.name !== undefined && input.display_name !== undefined && input.name !== input.display_name) {
    throw invalid('display_name', 'Send name or display_name, not two different values.')
  }
  return input.name ?? input.display_name
}
