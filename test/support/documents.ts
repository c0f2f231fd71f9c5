import { buffer } from 'node:stream/consumers'
import { deflateSync } from 'node:zlib'
import { zip } from '../../src/core/zip/zip.ts'
import { message } from './appliance.ts'

/** A file to be attached. */
export interface Enclosed {
  name: string
  type: string
  content: Buffer | string
}

/** A message with these files attached. */
export function withFiles(...files: Enclosed[]): string {
  const parts = files.map(({ name, type, content }) => {
    const base64 = Buffer.from(content).toString('base64').replace(/.{76}/g, '$&\r\n')
    const fields = `Content-Type: ${type}\r\nContent-Disposition: attachment; filename="${name}"\r\nContent-Transfer-Encoding: base64`
    return `--b\r\n${fields}\r\n\r\n${base64}\r\n`
  })
  const text = '--b\r\nContent-Type: text/plain\r\n\r\nSee attached.\r\n'
  return message({ Subject: 'Files', 'Content-Type': 'multipart/mixed; boundary=b' }, `${text}${parts.join('')}--b--\r\n`)
}

/** A ZIP of these files. */
export function packed(files: Record<string, string | Buffer | AsyncIterable<Uint8Array>>): Promise<Buffer> {
  async function* each() {
    for (const [name, content] of Object.entries(files)) {
      yield { name, modified: 0, content: typeof content === 'string' ? Buffer.from(content) : content }
    }
  }
  return buffer(zip(each()))
}

const office = 'application/vnd.openxmlformats-officedocument'

export function typesOf(main: string, type: string): string {
  return (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">' +
    `<Override PartName="/${main}" ContentType="${office}.${type}.main+xml"/></Types>`
  )
}

/** A DOCX with this in its body; `others` are more files in it. */
export function docx(body: string | AsyncIterable<Uint8Array>, others: Record<string, string> = {}): Promise<Buffer> {
  const start =
    '<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
  return packed({
    '[Content_Types].xml': typesOf('word/document.xml', 'wordprocessingml.document'),
    'word/document.xml': typeof body === 'string' ? `${start}${body}</w:body></w:document>` : body,
    ...others,
  })
}

function relation(number: number): string {
  return `<Relationship Id="r${number}" Type="worksheet" Target="worksheets/sheet${number}.xml"/>`
}

/** An XLSX with these sheets: the XML of the rows of each. `others` are more files in it. */
export function xlsx(
  sheets: Record<string, string | AsyncIterable<Uint8Array>>,
  others: Record<string, string | AsyncIterable<Uint8Array>> = {},
): Promise<Buffer> {
  const names = Object.keys(sheets)
  return packed({
    '[Content_Types].xml': typesOf('xl/workbook.xml', 'spreadsheetml.sheet'),
    'xl/workbook.xml': `<workbook xmlns:r="r"><sheets>${names.map((name, at) => `<sheet name="${name}" sheetId="${at + 1}" r:id="r${at}"/>`).join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships>${names.map((_, at) => relation(at)).join('')}</Relationships>`,
    ...Object.fromEntries(
      Object.values(sheets).map((rows, at) => [
        `xl/worksheets/sheet${at}.xml`,
        typeof rows === 'string' ? `<worksheet><sheetData>${rows}</sheetData></worksheet>` : rows,
      ]),
    ),
    ...others,
  })
}

/** A PDF of these objects, from 1; the first is its catalog. */
export function pdfOf(objects: (string | Buffer)[], trailer = ''): Buffer {
  const pieces = [Buffer.from('%PDF-1.7\n')]
  const places: number[] = []
  let length = pieces[0]!.length
  const add = (piece: string | Buffer): void => {
    const bytes = Buffer.from(piece)
    pieces.push(bytes)
    length += bytes.length
  }
  for (const [at, object] of objects.entries()) {
    places.push(length)
    add(`${at + 1} 0 obj\n`)
    add(object)
    add('\nendobj\n')
  }
  const start = length
  const rows = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`).join('')
  add(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}`)
  add(`trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`)
  return Buffer.concat(pieces)
}

/** A stream of a PDF, deflated. */
export function stream(content: Buffer | string, deflated = deflateSync(content), more = ''): Buffer {
  const head = Buffer.from(`<< /Length ${deflated.length} /Filter /FlateDecode ${more} >>\nstream\n`)
  return Buffer.concat([head, deflated, Buffer.from('\nendstream')])
}

/** A PDF with these pages, each the operators that draw it (or their stream). */
export function pdf(pages: (string | Buffer)[], more: { catalog?: string; trailer?: string } = {}): Buffer {
  const first = 4
  const kids = pages.map((_, at) => `${first + 2 * at} 0 R`).join(' ')
  const objects = pages.flatMap((page, at) => [
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${first + 2 * at + 1} 0 R /Resources << /Font << /F 3 0 R >> >> >>`,
    typeof page === 'string' ? stream(page) : page,
  ])
  return pdfOf(
    [
      `<< /Type /Catalog /Pages 2 0 R ${more.catalog ?? ''} >>`,
      `<< /Type /Pages /Count ${pages.length} /Kids [${kids}] >>`,
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
      ...objects,
    ],
    more.trailer,
  )
}

/** Draws lines of text. */
export function lines(...texts: string[]): string {
  const shown = texts.map((text) => `(${text.replace(/[()\\]/g, String.raw`\$&`)}) Tj T*`).join(' ')
  return `BT /F 12 Tf 14 TL 72 720 Td ${shown} ET`
}
