import { oneLine } from '../../core/text.ts'
import type { XmlHandler } from '../markup.ts'
import { type CollectedText, longestText } from './collected-text.ts'
import type { OfficeFile } from './office-file.ts'

/** The type of the main file of a workbook or template. */
export const sheetsType = /spreadsheetml\.(?:sheet|template)\.main\+xml$|ms-excel\.(?:sheet|template)\.macroenabled/i

interface Sheet {
  name: string
  relation: string
  isHidden: boolean
}

/** What all sheets of a workbook refer to. */
interface Workbook {
  strings: string[]
  /** For each style of cells whether it displays a number as a date. */
  dates: boolean[]
  /** Days that the calendar of the workbook begins after 1899-12-30. */
  firstDay: number
}

/** The text of an XLSX: `## ` and the name of each sheet, and a line for each row that has something, with tabs between its cells. */
export async function readSheets(file: OfficeFile, main: string, text: CollectedText): Promise<void> {
  const { sheets, firstDay } = await sheetsOf(file, main)
  const relations = await file.relationsOf(main)
  const folder = main.slice(0, main.lastIndexOf('/') + 1)
  const strings = await stringsOf(file, `${folder}sharedstrings.xml`)
  const dates = await datesOf(file, `${folder}styles.xml`)
  for (const { name, relation, isHidden } of sheets) {
    text.add(`${text.isEmpty ? '' : '\n'}## ${oneLine(name)}${isHidden ? ' (hidden)' : ''}\n`)
    const target = relations.get(relation)
    if (target !== undefined) await file.read(target, text, new SheetReader(text, { strings, dates, firstDay }))
  }
}

async function sheetsOf(file: OfficeFile, main: string): Promise<{ sheets: Sheet[]; firstDay: number }> {
  const sheets: Sheet[] = []
  let firstDay = 0
  await file.read(main, undefined, {
    open: (element, attributes) => {
      if (element === 'workbookpr' && /^(?:1|true)$/.test(attributes['date1904'] ?? '')) firstDay = 1462
      if (element !== 'sheet') return
      const key = Object.keys(attributes).find((name) => name.endsWith(':id'))
      const relation = key === undefined ? '' : attributes[key]!
      sheets.push({ name: attributes['name'] ?? '', relation, isHidden: /hidden/i.test(attributes['state'] ?? '') })
    },
    text: () => undefined,
    close: () => undefined,
  })
  return { sheets, firstDay }
}

/** The texts that cells refer to by their numbers; without the readings of East Asian characters (`rPh`). */
async function stringsOf(file: OfficeFile, name: string): Promise<string[]> {
  const strings: string[] = []
  let current = ''
  let isText = false
  let readings = 0
  await file.read(name, undefined, {
    open: (element) => {
      if (element === 'si') current = ''
      else if (element === 't') isText = true
      else if (element === 'rph') readings += 1
    },
    text: (piece) => {
      if (isText && readings === 0 && current.length < longestText) current += piece
    },
    close: (element) => {
      if (element === 'si') strings.push(oneLine(current))
      else if (element === 't') isText = false
      else if (element === 'rph') readings -= 1
    },
  })
  return strings
}

/** Formats of dates and times that every workbook has (ECMA-376 part 1, 18.8.30). */
const builtInDates = /^(?:1[4-9]|2[0-2]|2[7-9]|3[0-6]|4[5-7]|5[0-8])$/

async function datesOf(file: OfficeFile, name: string): Promise<boolean[]> {
  const own = new Map<string, boolean>()
  const dates: boolean[] = []
  let isInCells = false
  await file.read(name, undefined, {
    open: (element, { numFmtId = '', formatCode = '' }) => {
      if (element === 'numfmt') own.set(numFmtId, isDateFormat(formatCode))
      else if (element === 'cellxfs') isInCells = true
      else if (element === 'xf' && isInCells) dates.push(own.get(numFmtId) ?? builtInDates.test(numFmtId))
    },
    text: () => undefined,
    close: (element) => {
      if (element === 'cellxfs') isInCells = false
    },
  })
  return dates
}

/** True if a format has a letter of dates outside of quoted text, escapes, and colours and conditions in brackets. */
function isDateFormat(code: string): boolean {
  return /[ymdhs]/i.test(code.slice(0, 255).replace(/"[^"]*"|\\.|\[[^\]]*\]/g, ''))
}

class SheetReader implements XmlHandler {
  readonly #text: CollectedText
  readonly #workbook: Workbook
  #cell: { type: string; style: number; column: number } = { type: '', style: 0, column: 0 }
  #value = ''
  #isValue = false
  #readings = 0
  /** The next column, and how many of this row are written. */
  #next = 0
  #written = 0

  constructor(text: CollectedText, workbook: Workbook) {
    this.#text = text
    this.#workbook = workbook
  }

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    if (name === 'c') {
      const column = columnOf(attributes['r'])
      this.#cell = { type: attributes['t'] ?? 'n', style: Number(attributes['s'] ?? 0), column: column ?? this.#next }
      this.#next = this.#cell.column + 1
      this.#value = ''
    } else if (name === 'v' || name === 't') this.#isValue = true
    else if (name === 'rph') this.#readings += 1
    else if (name === 'row') [this.#next, this.#written] = [0, 0]
  }

  text(text: string): void {
    if (this.#isValue && this.#readings === 0 && this.#value.length < longestText) this.#value += text
  }

  close(name: string): void {
    if (name === 'v' || name === 't') this.#isValue = false
    else if (name === 'rph') this.#readings -= 1
    else if (name === 'c') this.#endCell()
    else if (name === 'row' && this.#written > 0) this.#text.add('\n')
  }

  #endCell(): void {
    const value = this.#shown()
    if (value === '') return
    const { column } = this.#cell
    const tabs = column - Math.max(0, this.#written - 1)
    if (tabs > 0) this.#text.add('\t'.repeat(tabs))
    this.#text.add(value)
    this.#written = Math.max(this.#written, column + 1)
  }

  #shown(): string {
    const { type, style } = this.#cell
    const { strings, dates, firstDay } = this.#workbook
    const value = this.#value
    if (type === 's') return strings[Number(value)] ?? ''
    if (type === 'b') return value === '1' ? 'TRUE' : 'FALSE'
    if (type !== 'n' || value.trim() === '' || !Number.isFinite(Number(value))) return oneLine(value)
    const number = Number(value)
    if (dates[style]) return dateOf(number, firstDay)
    // programs store 17 digits and display 15 at most
    return String(Number(number.toPrecision(15)))
  }
}

/** Excel has at most so many columns. */
const maxColumns = 16_384

/** The column of a reference such as `AB12`, from 0; undefined when there is none. */
function columnOf(reference: string | undefined): number | undefined {
  const letters = /^[A-Z]{1,3}(?=\d)/.exec(reference ?? '')?.[0]
  if (letters === undefined) return undefined
  let column = 0
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64
  return column <= maxColumns ? column - 1 : undefined
}

const day = 86_400_000

/** Days since 1899-12-30 as a date, a time, or both. */
function dateOf(number: number, firstDay: number): string {
  const time = new Date(Date.UTC(1899, 11, 30) + Math.round((number + firstDay) * (day / 1000)) * 1000)
  // up to the year 9999; a negative number is no date
  if (number < 0 || number > 2_958_466) return String(number)
  const iso = time.toISOString()
  const [date, clock] = [iso.slice(0, 10), iso.slice(11, 19)]
  return number < 1 ? clock : clock === '00:00:00' ? date : `${date} ${clock}`
}
