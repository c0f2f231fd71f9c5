import { getServers } from 'node:dns'
import { about, type Check } from '../check.ts'
import type { ExternalView } from '../external-view.ts'

interface Deps {
  externalView: ExternalView
  /** The domain of new addresses. */
  domain: string
  /** The configured name servers; empty: those of the system. */
  servers: readonly string[]
}

/** Checks that the DNS answers, without which mail is neither sent nor verified. */
export function resolver({ externalView, domain, servers }: Deps): Check {
  return {
    name: 'dns',
    pace: 'often',
    run: () =>
      externalView.ask(async (ask) => {
        const asked = servers.length > 0 ? servers : getServers()
        const line = about('dns', asked.length > 0 ? asked.join(', ') : 'no name server')
        const { hostname } = externalView.settings
        const names = [...new Set([hostname, domain])]
        const answers = await Promise.all(names.map((name) => ask(name, 'A')))
        if (answers.some((answer) => answer !== 'unknown')) return [line.pass('It answers.')]
        const message = `The DNS lookup of ${names.join(' and ')} failed: mail can be neither sent nor checked.`
        return [line.fail(message, 'Set dns.servers to a resolver that answers, then: systemctl reload pillarbox')]
      }),
  }
}
