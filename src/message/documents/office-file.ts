import { posix } from 'node:path'
import { TextDecoder } from 'node:util'
import { Fault } from '../../core/fault.ts'
import { type ZipEntry, ZipFile } from '../../core/zip/unzip.ts'
import { type XmlHandler, xmlReader } from '../markup.ts'
import { type CollectedText, TextIsFull, tooLargeForText, unreadable } from './collected-text.ts'

/** Files in a document, and bytes of all that are read of it, unpacked. */
const maxFiles = 10_000
const maxUnpacked = 96 * 1024 * 1024

/** How many elements there may be follows from the bytes. */
const xmlLimits = { depth: 256, elements: Infinity }

/** An Office Open XML document (ECMA-376): a ZIP of XML files. Names are in lower case, as they are compared without case. */
export class OfficeFile {
  readonly #zip: ZipFile
  readonly #entries: ReadonlyMap<string, ZipEntry>
  #left = maxUnpacked

  private constructor(zip: ZipFile, entries: ReadonlyMap<string, ZipEntry>) {
    this.#zip = zip
    this.#entries = entries
  }

  /** Throws Fault, code `attachment_unreadable` or `attachment_too_large_for_text`, for what is no ZIP or has too many files. */
  static async open(bytes: Buffer): Promise<OfficeFile> {
    const zip = await ZipFile.within(bytes).catch((error: unknown) => {
      throw badArchive(error)
    })
    const entries = new Map<string, ZipEntry>()
    for await (const entry of zip.entries()) {
      if (entries.size >= maxFiles) throw tooLargeForText(`it is an archive of more than ${maxFiles} files`)
      entries.set(entry.name.toLowerCase(), entry)
    }
    return new OfficeFile(zip, entries)
  }

  /** The name of the file with this type (of several, the first), by `[Content_Types].xml`; undefined for none. */
  async mainOf(type: RegExp): Promise<string | undefined> {
    let name: string | undefined
    await this.read('[content_types].xml', undefined, {
      open: (element, { ContentType, PartName }) => {
        if (element !== 'override' || ContentType === undefined || PartName === undefined) return
        if (name === undefined && type.test(ContentType)) name = PartName.replace(/^\//, '').toLowerCase()
      },
      text: () => undefined,
      close: () => undefined,
    })
    return name
  }

  /** Files that a file refers to, by the ids of the relationships. Those outside of the document are left out. */
  async relationsOf(name: string): Promise<Map<string, string>> {
    const { dir, base } = posix.parse(name)
    const found = new Map<string, string>()
    await this.read(`${posix.join(dir, '_rels', base)}.rels`, undefined, {
      open: (element, { Id, Target, TargetMode }) => {
        if (element !== 'relationship' || Id === undefined || Target === undefined || TargetMode === 'External') return
        found.set(Id, posix.resolve('/', dir, Target).slice(1).toLowerCase())
      },
      text: () => undefined,
      close: () => undefined,
    })
    return found
  }

  /** The names of files, in order. */
  names(pattern: RegExp): string[] {
    return [...this.#entries.keys()].filter((name) => pattern.test(name)).toSorted()
  }

  /**
   * Reads an XML file, if there is one. Throws TextIsFull when too much has been read of the document and there is some text, Fault
   * `attachment_too_large_for_text` when there is none.
   */
  async read(name: string, text: CollectedText | undefined, handler: XmlHandler): Promise<void> {
    const entry = this.#entries.get(name)
    if (!entry) return
    const reader = xmlReader(handler, xmlLimits)
    let decoder: TextDecoder | undefined
    try {
      for await (const chunk of this.#zip.read(entry, Infinity)) {
        this.#left -= chunk.length
        if (this.#left < 0) throw (text?.isEmpty ?? true) ? tooLargeForText('too much is packed into it') : new TextIsFull()
        decoder ??= new TextDecoder(encodingOf(chunk))
        reader.write(decoder.decode(chunk, { stream: true }))
      }
    } catch (error) {
      throw badArchive(error)
    }
    reader.end()
  }
}

/** XML is UTF-8 unless it begins with the byte order mark of UTF-16. */
function encodingOf(start: Buffer): string {
  return start[0] === 0xff && start[1] === 0xfe ? 'utf-16le' : start[0] === 0xfe && start[1] === 0xff ? 'utf-16be' : 'utf-8'
}

function badArchive(error: unknown): unknown {
  return error instanceof Fault && error.code === 'bad_archive' ? unreadable('its ZIP archive is damaged', error) : error
}
