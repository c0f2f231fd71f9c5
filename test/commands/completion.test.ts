import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'
import { pillarbox } from '../support/pillarbox.ts'
import { run, succeed } from '../support/program.ts'

/** A directory with the completion script of a shell, and two files to complete. */
async function scriptOf(shell: string): Promise<{ directory: string; file: string }> {
  const directory = folder()
  const { status, output } = await pillarbox({ env: {}, directory }, ['completion', shell])
  expect(status).toBe(0)
  const file = join(directory, '_pillarbox')
  writeFileSync(file, output)
  for (const name of ['settings.yaml', 'other.txt']) writeFileSync(join(directory, name), '')
  return { directory, file }
}

/** What is typed up to the cursor, and what the shell must offer. */
const cases: [string, string[]][] = [
  ['pillarbox dom', ['domain']],
  ['pillarbox domain che', ['check']],
  ['pillarbox domain check --js', ['--json']],
  ['pillarbox --vers', ['--version']],
  ['pillarbox completion ', ['bash', 'fish', 'zsh']],
  ['pillarbox serve --config sett', ['settings.yaml']],
]

function lines(output: Buffer): string[] {
  return output.toString().trim().split('\n').toSorted()
}

test('bash completes commands, options and files', async () => {
  const { directory, file } = await scriptOf('bash')
  for (const [line, expected] of cases) {
    const words = line.split(' ')
    const typed = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}) COMP_CWORD=${words.length - 1}`
    // compopt works only in a completion that a key began
    const program = `compopt() { :; }; source ${file}; ${typed}; _pillarbox; printf '%s\\n' "\${COMPREPLY[@]}"`
    const offered = lines(await succeed('bash', ['--norc', '-c', program], { cwd: directory }))
    expect([line, offered]).toEqual([line, expected])
  }
})

test('fish completes commands, options and files', async () => {
  const fish = peer('fish')
  if (fish === undefined) return
  const { directory, file } = await scriptOf('fish')
  for (const [line, expected] of cases) {
    const said = await succeed(fish, ['--no-config', '-c', `source ${file}; complete -C '${line}'`], { cwd: directory })
    const offered = lines(said).map((one) => one.split('\t')[0]!)
    expect([line, offered]).toEqual([line, expected])
  }
})

test('zsh completes commands, options and files', async () => {
  const zsh = peer('zsh')
  if (zsh === undefined) return
  const { directory } = await scriptOf('zsh')
  for (const [line, expected] of cases) {
    // zsh completes in a terminal only; what it is about to offer is read where its functions hand it over
    const program = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PROMPT= ; stty -echo; unsetopt zle_bracketed_paste; fpath=(${directory} $fpath); autoload -Uz compinit; compinit -u -D; cd ${directory}'
zpty -w shell 'compadd() { if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi; local -a found; builtin compadd -A found "$@"; (( $#found )) && print -l -- OFFER:$^found; builtin compadd "$@"; }'
zpty -w shell 'end-of-offers() { print END; }; zle -N end-of-offers; bindkey "^X" end-of-offers; print BEG""IN'
zpty -r shell text '*BEGIN*'
zpty -n -w shell '${line}'$'\\t'$'\\x18'
zpty -r shell text '*END*'
print -r -- $text
`
    const { code, output, errors } = await run(zsh, ['-f', '-c', program], { cwd: directory })
    expect([code, errors]).toEqual([0, ''])
    const offered = [...output.toString().matchAll(/OFFER:(\S+)/g)].map(([, word]) => word!)
    expect([line, [...new Set(offered)].toSorted()]).toEqual([line, expected])
  }
})

test('a shell that has no completion is refused, and those that have are named', async () => {
  const { status, errors } = await pillarbox({ env: {}, directory: folder() }, ['completion', 'tcsh'])
  expect([status, errors]).toEqual([2, expect.stringContaining('bash, zsh, fish')])
})

test('docs/pillarbox.1 is what the commands say of themselves (npm run docs writes it)', async () => {
  const directory = folder()
  const file = join(directory, 'pillarbox.1')
  const page = new URL('../../docs/pillarbox.1', import.meta.url)
  expect(await pillarbox({ env: {}, directory }, ['docs', '--man', file])).toMatchObject({ status: 0, errors: '' })
  expect(readFileSync(file, 'utf8')).toBe(readFileSync(page, 'utf8'))
})

test('man shows the manual page without a warning, and mandoc finds only that it has no date', async () => {
  const page = new URL('../../docs/pillarbox.1', import.meta.url).pathname
  const man = peer('man', 'apt-get install man-db')
  const mandoc = peer('mandoc')
  if (man === undefined || mandoc === undefined) return
  const shown = await run(man, ['--warnings', '--encoding=UTF-8', '--local-file', page], { env: { MANWIDTH: '100' } })
  expect([shown.code, shown.errors]).toEqual([0, ''])
  expect(shown.output.toString()).toContain('pillarbox - mail server and API that give software agents their own identities')
  const { output } = await run(mandoc, ['-T', 'lint', '-W', 'warning', page])
  expect(lines(output).filter((line) => !line.includes('missing date'))).toEqual([])
})
