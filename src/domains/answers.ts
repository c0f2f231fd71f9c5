import { isAbsent } from '../net/resolve.ts'
import type { Lookup } from '../net/dns.ts'
import { Unanswered } from './verdict.ts'

/** The answer of a DNS query, and the names of the CNAMEs that were followed. */
interface Answered<Value> {
  values: Value[]
  aliases: string[]
}

const longestChain = 8

/** The TXT records of a name. Like all queries here: empty when there is none; rejects with Unanswered when no server answers. */
export async function texts(lookup: Lookup, name: string): Promise<Answered<string>> {
  const { values, aliases } = await follow<string[]>(lookup, name, 'TXT')
  return { values: values.map((strings) => strings.join('')), aliases }
}

/** The MX records of a name, by preference. */
export async function exchanges(lookup: Lookup, name: string): Promise<{ priority: number; exchange: string }[]> {
  const { values } = await follow<{ priority: number; exchange: string }>(lookup, name, 'MX')
  return values
    .map(({ priority, exchange }) => ({ priority, exchange: exchange.toLowerCase().replace(/\.$/, '') }))
    .toSorted((one, other) => one.priority - other.priority || one.exchange.localeCompare(other.exchange, 'en'))
}

/** The addresses of a host, with IPv6 on request. */
export async function addresses(lookup: Lookup, name: string, ipv6 = true): Promise<Answered<string>> {
  const [four, six] = await Promise.all([
    follow<string>(lookup, name, 'A'),
    ipv6 ? follow<string>(lookup, name, 'AAAA') : { values: [], aliases: [] },
  ])
  return { values: [...four.values, ...six.values], aliases: [...new Set([...four.aliases, ...six.aliases])] }
}

export async function alias(lookup: Lookup, name: string): Promise<string | undefined> {
  const [target] = await ask<string>(lookup, name, 'CNAME')
  return target?.toLowerCase().replace(/\.$/, '')
}

/** An authoritative server may leave it to the client to follow CNAMEs. */
async function follow<Value>(lookup: Lookup, name: string, type: string): Promise<Answered<Value>> {
  const aliases: string[] = []
  for (let at: string | undefined = name; at !== undefined && aliases.length <= longestChain;) {
    const values = await ask<Value>(lookup, at, type)
    if (values.length > 0) return { values, aliases }
    at = await alias(lookup, at)
    if (at !== undefined) aliases.push(at)
  }
  return { values: [], aliases }
}

async function ask<Value>(lookup: Lookup, name: string, type: string): Promise<Value[]> {
  try {
    return (await lookup(name, type)) as Value[]
  } catch (error) {
    if (isAbsent(error)) return []
    if (error instanceof Error && 'code' in error) throw new Unanswered(String(error.code))
    throw error
  }
}
