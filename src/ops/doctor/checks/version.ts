import { about, newCheck, type Check } from '../check.ts'
import type { OuterContext } from '../context.ts'
import type { Line } from '../model.ts'

/** The oldest version of each Node line without known vulnerabilities (the security release of 21 October 2026). */
const safeNode: Record<string, string> = { 24: '24.22.1' }

/** Node.js comes with the packages, each version of Pillarbox with its own. */
const upgrade =
  'Upgrade Pillarbox to its newest version, which brings its own Node.js (docs/install.md), and start it with bin/pillarbox.'

/** Earlier versions could damage a database when the WAL restarts. */
const soundSqlite = '3.51.3'

/** Checks Node.js and SQLite against the newest security releases that this version knows. */
export function version({ version: box, testing }: OuterContext): Check {
  const versions: Record<string, string | undefined> = testing?.versions ?? process.versions
  return newCheck('version', 'seldom', async () => [
    about('version', 'pillarbox').pass(`${box}.`),
    ofNode(versions['node'] ?? ''),
    ofSqlite(versions['sqlite'] ?? ''),
  ])
}

function ofNode(node: string): Line {
  const line = about('version', 'node')
  const safe = safeNode[node.split('.')[0] ?? '']
  if (safe !== undefined && isBefore(node, safe)) {
    const message = `${node} has known vulnerabilities, fixed in ${safe} (CVE-2026-111497 and others).`
    return line.warn(message, upgrade)
  }
  return line.pass(`${node}.`)
}

function ofSqlite(sqlite: string): Line {
  const line = about('version', 'sqlite')
  if (!isBefore(sqlite, soundSqlite)) return line.pass(`${sqlite}.`)
  return line.fail(`${sqlite} can damage a database; ${soundSqlite} does not.`, upgrade)
}

function isBefore(one: string, other: string): boolean {
  const [left, right] = [one, other].map((text) => text.split('.').map(Number))
  const differing = left!.findIndex((part, index) => part !== right![index])
  return differing >= 0 && (left![differing] ?? 0) < (right![differing] ?? 0)
}
