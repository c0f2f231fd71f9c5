import { chownSync, cpSync, existsSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { folder } from '../support/folder.ts'
import { absent } from '../support/peer.ts'
import { run, succeed } from '../support/program.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A checkout with its packages as Debian's npm 9 leaves them: no link to the Node.js among them. `without` names packages that are missing. */
function checkout(without: (name: string) => boolean = () => false): string {
  const place = folder()
  for (const name of ['bin', 'config', 'package.json', 'src', 'systemd', 'tsconfig.json']) {
    cpSync(join(root, name), join(place, name), { recursive: true })
  }
  mkdirSync(join(place, 'node_modules'))
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name.startsWith('.') || without(name)) continue
    symlinkSync(join(root, 'node_modules', name), join(place, 'node_modules', name))
  }
  return place
}

/** The environment of a system whose own Node.js is one of before. */
function oldSystem(): Record<string, string> {
  const programs = folder()
  writeFileSync(join(programs, 'node'), '#!/bin/sh\n[ "$1" = --version ] && echo v18.20.4 && exit\necho too old >&2; exit 9\n', {
    mode: 0o755,
  })
  return { PATH: `${programs}:/usr/bin:/bin` }
}

test('it runs by the Node.js of its packages where npm made no link to it, whatever the system has', async () => {
  const env = oldSystem()
  const place = checkout()
  expect((await succeed(join(place, 'bin/pillarbox'), ['--version'], { env })).toString()).toMatch(/^\d+\.\d+\.\d+\n$/)
  const said = await succeed(join(place, 'bin/with-node'), ['sh', '-c', 'node --version'], { env })
  expect(said.toString()).toMatch(/^v24\./)
})

test('without that Node.js it says what is missing and what brings it', async () => {
  const place = checkout((name) => name.startsWith('node-linux-'))
  const { code, errors } = await run(join(place, 'bin/pillarbox'), ['serve'], { env: oldSystem() })
  expect(code).toBe(78)
  expect(errors).toMatch(/^Pillarbox needs Node\.js 24, .*node_modules\/node-linux-\w+ is missing\. Run: cd \S+ && npm ci /)
  expect(errors.trimEnd()).not.toContain('\n')
})

test('what npm ci ends with builds the page, without a link to Node.js and with an older one in the system', async () => {
  const place = checkout()
  await succeed(join(place, 'bin/prepare'), [], { env: oldSystem() })
  expect(existsSync(join(place, 'dist/page/index.html'))).toBe(true)
  // a second time in place of the first, with nothing left beside it
  await succeed(join(place, 'bin/prepare'), [], { env: oldSystem() })
  expect(readdirSync(join(place, 'dist'))).toEqual(['page'])
})

test('a page that cannot be built fails the install, with a sentence, and the last one stays', async () => {
  const place = checkout()
  await succeed(join(place, 'bin/prepare'), [], { env: oldSystem() })
  const before = readdirSync(join(place, 'dist/page/assets'))
  writeFileSync(join(place, 'src/web/browser/start.tsx'), "import './nothing.ts'\n")
  const { code, errors } = await run(join(place, 'bin/prepare'), [], { env: oldSystem() })
  expect(code).toBe(1)
  expect(errors).toContain('src/web/browser/start.tsx:1:')
  expect(errors).toContain('The page was not built')
  expect(readdirSync(join(place, 'dist'))).toEqual(['page'])
  expect(readdirSync(join(place, 'dist/page/assets'))).toEqual(before)
  const bare = checkout((name) => name === 'esbuild')
  const told = await run(join(bare, 'bin/prepare'), [], { env: oldSystem() })
  expect(told.code).not.toBe(0)
  expect(told.errors).toContain('esbuild')
})

test('what root installs belongs to the owner of the checkout', async () => {
  if (process.getuid?.() !== 0) {
    absent('files of others', 'only root can give files away')
    return
  }
  const place = checkout()
  const foreign = join(place, 'node_modules/foreign')
  mkdirSync(foreign)
  writeFileSync(join(foreign, 'index.js'), '')
  chownSync(foreign, 501, 20)
  chownSync(join(foreign, 'index.js'), 501, 20)
  for (const owner of [0, 4711]) {
    chownSync(place, owner, owner)
    await succeed(join(place, 'bin/prepare'), [], { env: oldSystem() })
    for (const path of ['node_modules', 'node_modules/foreign', 'node_modules/foreign/index.js', 'dist/page/index.html']) {
      const { uid, gid } = lstatSync(join(place, path))
      expect([path, uid, gid]).toEqual([path, owner, owner])
    }
  }
  // and nothing outside of it, where packages are links
  expect(lstatSync(join(root, 'node_modules/koa/package.json')).uid).not.toBe(4711)
})
