import { createWriteStream, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createZstdDecompress } from 'node:zlib'
import { syncPath } from '../../store/files.ts'
import type { BackupArchive } from './archive/archive.ts'
import { damaged, diskFault, requireSpace } from './faults.ts'
import { entryNames } from './archive/manifest.ts'

/** The free space required in addition to the unpacked size, in bytes. */
const margin = 16 * 1024 * 1024

/** Writes the database and state.json of a backup into an empty directory, and syncs them; returns the path of the database. */
export async function unpack(archive: BackupArchive, directory: string, signal?: AbortSignal): Promise<string> {
  const file = join(directory, 'pillarbox.db')
  const size = archive.manifest.database_size
  requireSpace(directory, size + margin)
  const target = createWriteStream(file, { flags: 'wx', mode: 0o600 })
  try {
    const bounded = atMost(archive.stream(entryNames.database).pipe(createZstdDecompress()), size)
    await pipeline(bounded, target, signal ? { signal } : {})
  } catch (error) {
    signal?.throwIfAborted()
    if (String((error as { code?: unknown }).code).startsWith('ZSTD_'))
      throw damaged(archive.file, `its ${entryNames.database} cannot be unpacked`, error)
    throw diskFault(error, `${file} could not be written`)
  }
  if (target.bytesWritten !== size)
    throw damaged(archive.file, `its database has ${target.bytesWritten} bytes, but must have ${size}`)
  syncPath(file)
  const state = join(directory, 'state.json')
  writeFileSync(state, await archive.text(entryNames.state), { mode: 0o600, flag: 'wx', flush: true })
  return file
}

/** A small archive must not fill the disk. */
async function* atMost(chunks: AsyncIterable<Buffer>, size: number): AsyncIterable<Buffer> {
  let seen = 0
  for await (const chunk of chunks) {
    seen += chunk.length
    yield chunk
    // the caller notices a chunk above the size
    if (seen > size) return
  }
}
