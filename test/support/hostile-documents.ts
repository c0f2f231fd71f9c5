import { deflateSync } from 'node:zlib'
import { docx, lines, pdf, pdfOf, stream, xlsx } from './documents.ts'

const mebibyte = 1024 * 1024

/** The same text so often, in pieces. */
async function* repeated(start: string, text: string, times: number, end = ''): AsyncGenerator<Uint8Array> {
  yield Buffer.from(start)
  const each = Math.max(1, Math.floor(mebibyte / text.length))
  for (let left = times; left > 0; left -= each) yield Buffer.from(text.repeat(Math.min(each, left)))
  yield Buffer.from(end)
}

/** So many attributes of different names. */
async function* distinct(start: string, times: number, end: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(start)
  for (let first = 0; first < times; first += 10_000)
    yield Buffer.from(Array.from({ length: 10_000 }, (_, at) => ` a${(first + at).toString(36)}=""`).join(''))
  yield Buffer.from(end)
}

/** Deflated zeros or text of so many bytes, deflated so often. */
function bomb(bytes: number, times = 1, fill = '\0'): NonSharedBuffer {
  let content = deflateSync(Buffer.alloc(bytes, fill), { level: 9 })
  for (let round = 1; round < times; round += 1) content = deflateSync(content, { level: 9 })
  return content
}

const word = '<w:document xmlns:w="w"><w:body>'

/** Entities that refer to ten others each: a billion words. */
const laughs = `<!DOCTYPE x [<!ENTITY a0 "lol">${Array.from({ length: 9 }, (_, at) => `<!ENTITY a${at + 1} "${`&a${at};`.repeat(10)}">`).join('')}]>`

function resources(next: string): string {
  return `/Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> /XObject << /X ${next} 0 R /Y ${next} 0 R >> >>`
}

/** A PDF with this in its font, and this map of its codes to characters. */
function pdfWithFont(font: string, map: string): Buffer {
  const descendant = `<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Y /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> ${font} >>`
  return pdfOf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Count 1 /Kids [3 0 R] >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>',
    stream('BT /F 12 Tf <00410042> Tj ET'),
    `<< /Type /Font /Subtype /Type0 /BaseFont /Y /Encoding /Identity-H /ToUnicode 6 0 R /DescendantFonts [${descendant}] >>`,
    stream(map),
  ])
}

interface Hostile {
  name: string
  content: () => Promise<Buffer> | Buffer
  /** The code of the refusal, or the format if the beginning of it can be read. */
  answer: string
  /** Takes seconds of CPU until it is refused: tried by `test:abuse` alone. */
  isLong?: true
}

/** Files that choose how much time and memory their reader takes. */
export const hostile: Hostile[] = [
  {
    name: 'a DOCX of 256 MiB of blanks',
    isLong: true,
    content: () => docx(repeated(word, ' ', 256 * mebibyte)),
    answer: 'attachment_too_large_for_text',
  },
  {
    name: 'a DOCX of 256 MiB of words',
    isLong: true,
    content: () => docx(repeated(`${word}<w:p><w:r><w:t>`, 'words ', 43 * mebibyte)),
    answer: 'docx',
  },
  {
    name: 'a DOCX whose elements nest a million deep',
    content: () => docx(repeated(word, '<w:p>', 1_000_000)),
    answer: 'attachment_unreadable',
  },
  {
    name: 'a DOCX with one tag of 90 MB',
    isLong: true,
    content: () => docx(repeated(`${word}<w:p `, 'a', 90_000_000, '/></w:body></w:document>')),
    answer: 'attachment_unreadable',
  },
  {
    name: 'a DOCX with an element of five million attributes',
    isLong: true,
    content: () => docx(distinct(`${word}<w:p`, 5_000_000, '/></w:body></w:document>')),
    answer: 'attachment_unreadable',
  },
  {
    name: 'a DOCX with entities that expand to a billion words',
    content: () =>
      docx(repeated(`${laughs}${word}<w:p><w:r><w:t>before &a9; after`, '', 1, '</w:t></w:r></w:p></w:body></w:document>')),
    answer: 'docx',
  },
  {
    name: 'a DOCX with an external entity',
    content: () =>
      docx(
        repeated(
          `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>${word}<w:p><w:r><w:t>see &e;`,
          '',
          1,
          '</w:t></w:r></w:p></w:body></w:document>',
        ),
      ),
    answer: 'docx',
  },
  {
    name: 'an XLSX of ten million cells',
    isLong: true,
    content: () => xlsx({ Big: repeated('<worksheet><sheetData><row>', '<c><v>1</v></c>', 10_000_000) }),
    answer: 'xlsx',
  },
  {
    name: 'an XLSX of thirty million empty cells',
    isLong: true,
    content: () => xlsx({ Big: repeated('<worksheet><sheetData><row>', '<c/>', 30_000_000) }),
    answer: 'xlsx',
  },
  {
    name: 'an XLSX with a cell of 90 MB',
    isLong: true,
    content: () => xlsx({ Big: repeated('<worksheet><sheetData><row><c t="str"><v>\u20ac', 'a', 90_000_000) }),
    answer: 'xlsx',
  },
  {
    name: 'an XLSX with a name of 90 MB',
    isLong: true,
    content: () =>
      xlsx({ Big: '' }, { 'xl/workbook.xml': repeated('<workbook><sheets><sheet name="\u20ac', 'a', 90_000_000, '"/>') }),
    answer: 'attachment_unreadable',
  },
  {
    name: 'an XLSX of ten million shared strings',
    isLong: true,
    content: () => xlsx({ Big: '' }, { 'xl/sharedStrings.xml': repeated('<sst>', '<si><t>a</t></si>', 10_000_000) }),
    answer: 'attachment_too_large_for_text',
  },
  {
    name: 'a PDF whose pages are 512 MiB of zeros each',
    isLong: true,
    content: () => pdf([stream('', bomb(512 * mebibyte)), stream('', bomb(512 * mebibyte))]),
    answer: 'attachment_too_large_for_text',
  },
  {
    name: 'a PDF whose page was deflated twice',
    isLong: true,
    content: () => {
      const twice = bomb(768 * mebibyte, 2)
      const head = `<< /Length ${twice.length} /Filter [/FlateDecode /FlateDecode] >>\nstream\n`
      return pdf([Buffer.concat([Buffer.from(head), twice, Buffer.from('\nendstream')])])
    },
    answer: 'attachment_too_large_for_text',
  },
  {
    name: 'a PDF whose page draws eighty million empty texts',
    isLong: true,
    content: () => pdf([stream('', bomb(400 * mebibyte, 1, '()Tj '))]),
    answer: 'attachment_too_large_for_text',
  },
  {
    name: 'a PDF whose page draws words without end',
    content: () => pdf([stream('', deflateSync(`BT /F 12 Tf ${'(word word word word) Tj T* '.repeat(100_000)}`))]),
    answer: 'pdf',
  },
  {
    name: 'a PDF that says it has two billion pages',
    content: () => pdfOf(['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Count 2000000000 /Kids [2 0 R 2 0 R] >>']),
    answer: 'attachment_unreadable',
  },
  {
    name: 'a PDF that has one page two million times',
    isLong: true,
    content: () =>
      pdfOf([
        '<< /Type /Catalog /Pages 2 0 R >>',
        `<< /Type /Pages /Count 2000000 /Kids [${'3 0 R '.repeat(2_000_000)}] >>`,
        '<< /Type /Page /Parent 2 0 R >>',
      ]),
    answer: 'attachment_too_large_for_text',
  },
  {
    name: 'a PDF whose font has four billion widths',
    content: () => pdfWithFont('/DW 1000 /W [0 4000000000 500]', ''),
    answer: 'attachment_too_large_for_text',
  },
  {
    name: 'a PDF whose font maps sixteen million codes to characters',
    content: () =>
      pdfWithFont(
        '',
        'begincmap 1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange 1 beginbfrange <00000000> <00FFFFF0> <0020> endbfrange endcmap',
      ),
    answer: 'attachment_too_large_for_text',
  },
  {
    name: 'a PDF whose forms draw one another',
    isLong: true,
    content: () => {
      const form = (next: string): Buffer =>
        stream('BT /F 9 Tf (ab) Tj ET /X Do /Y Do', undefined, `/Type /XObject /Subtype /Form /BBox [0 0 9 9] ${resources(next)}`)
      const page = '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R ' + resources('5') + ' >>'
      const forms = Array.from({ length: 30 }, (_, at) => form(String(at === 29 ? 34 : 6 + at)))
      const catalog = '<< /Type /Catalog /Pages 2 0 R >>'
      return pdfOf([catalog, '<< /Type /Pages /Count 1 /Kids [3 0 R] >>', page, stream('/X Do /Y Do'), ...forms])
    },
    answer: 'attachment_too_large_for_text',
  },
  {
    name: 'a PDF of 400,000 objects without a table',
    isLong: true,
    content: () => {
      const objects = Array.from({ length: 400_000 }, (_, at) => `${at + 1} 0 obj\n<< /A ${at + 2} 0 R >>\nendobj\n`).join('')
      return Buffer.from(`%PDF-1.7\n${objects}trailer\n<< /Root 1 0 R >>\n`)
    },
    answer: 'attachment_unreadable',
  },
  {
    name: 'a PDF whose arrays nest a million deep',
    content: () => pdfOf([`<< /Type /Catalog /Pages ${'['.repeat(1_000_000)} >>`]),
    answer: 'attachment_unreadable',
  },
  {
    name: 'a PDF that needs a password',
    content: () =>
      pdf([lines('secret')], {
        trailer: `/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <${'11'.repeat(32)}> /U <${'22'.repeat(32)}> >>`,
      }),
    answer: 'attachment_unreadable',
  },
]
