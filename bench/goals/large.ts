import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Finding } from '../finding.ts'
import { largeMessages } from '../large/messages.ts'
import { manyDomains } from '../large/domains.ts'
import { manyIdentities } from '../large/identities.ts'
import { manyWebhooks } from '../large/webhooks.ts'

/** What is large, each once and in a box of its own: messages of 25 MB (P28), and many domains (P29), webhooks (P30) and identities (P31). */
export const large: Bench = {
  name: 'large',
  goals: ['P22', 'P28', 'P29', 'P30', 'P31'],
  async run({ directory, scale }) {
    const findings: Finding[] = []
    for (const [name, measure] of Object.entries({ largeMessages, manyDomains, manyWebhooks, manyIdentities })) {
      const own = join(directory, name)
      mkdirSync(own)
      const found = await measure(own, scale)
      for (const { what, reached, figures } of found) process.stderr.write(`  ${what}: ${reached}; ${figures.join('; ')}\n`)
      findings.push(...found)
    }
    return findings
  },
}
