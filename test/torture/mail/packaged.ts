import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Messages that the tests of another package have. */
export interface Corpus {
  name: string
  messages: Buffer[]
}

/** Where a Python, and its package, have the messages of their tests. */
const places = [
  { name: 'the tests of Python’s email package', module: 'test.test_email', ends: /^msg_\w+\.txt$/ },
  { name: 'the tests of dkimpy', module: 'dkim.tests', ends: /\.(?:msg|mbox)$/ },
]

/** The messages of packages that are installed here, with line ends as they are sent. */
export function packagedMessages(): Corpus[] {
  return places.flatMap(({ name, module, ends }) => {
    const folder = folderOf(module)
    if (folder === undefined) return []
    const files = readdirSync(folder).filter((file) => ends.test(file))
    return [{ name, messages: files.toSorted().map((file) => asSent(readFileSync(join(folder, file)))) }]
  })
}

/** The data of a module, by the first Python that has it. */
function folderOf(module: string): string | undefined {
  const ask = `import importlib, os; print(os.path.join(os.path.dirname(importlib.import_module('${module}').__file__), 'data'))`
  // the one of Debian, whose packages are its own, and the one that is found first
  for (const python of ['/usr/bin/python3', 'python3']) {
    const { status, stdout } = spawnSync(python, ['-c', ask], { encoding: 'utf8' })
    if (status === 0) return stdout.trim()
  }
  return undefined
}

function asSent(raw: Buffer): Buffer {
  return Buffer.from(raw.toString('latin1').replaceAll(/\r?\n/g, '\r\n'), 'latin1')
}
