import { randomBytes } from 'node:crypto'
import { chmod, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** Replaces a file: a reader meets the old one or the new one, never a part; after a power cut too. */
export async function write(path: string, text: string, mode: number): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`)
  try {
    await using file = await open(temporary, 'wx', mode)
    await file.writeFile(text)
    await file.sync()
    // whatever the umask, which takes from the mode at the opening
    await chmod(temporary, mode)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await using entry = await open(dirname(path), 'r')
  await entry.sync()
}
