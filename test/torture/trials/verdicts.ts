import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { checkMessage, confirmAuthor } from '../../../src/mailauth/verdict.ts'
import type { headerOnly } from '../../../src/message/header-only.ts'
import type { Verdict } from '../../../src/mail/model.ts'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { envelope } from '../../support/signed-mail.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'
import { chainTry } from '../verdicts/chains.ts'
import { compare, type Comparison } from '../verdicts/compare.ts'
import type { Difference } from '../verdicts/differences.ts'
import { type Arbitration, missingOracle, Oracle } from '../verdicts/oracle.ts'
import { policyTry } from '../verdicts/policies.ts'
import { type Keys, signedTry } from '../verdicts/signed.ts'
import { ed25519Key, rsaKey } from '../verdicts/signer.ts'
import { spfTry } from '../verdicts/spf.ts'
import type { Try } from '../verdicts/try.ts'
import { lookupIn } from '../verdicts/zone.ts'

const triesOfCase = 250
const makers = [spfTry, signedTry, signedTry, chainTry, policyTry]
const settings = { hostname: 'mx.test', dmarc: 'reject' as const, deadline: 100_000, trusted_sealers: [] }

export const verdicts: Trial = {
  name: 'verdicts',
  about:
    'Records of SPF, DKIM and DMARC, signatures and ARC chains are made in all forms and changed afterwards, and judged by the code of the box as its ' +
    'worker threads call it, with the DNS in memory. pyspf, dkimpy and authheaders judge the same, and an implementation of the tree walk of RFC 9989; ' +
    'Mail::DKIM decides where the box passes what dkimpy does not. Where they disagree, the reason is one of ' +
    'test/torture/verdicts/differences.ts, each with its section of an RFC; so it is where the box passes what none of them passes, as they cannot read a few forms: the ' +
    'notes count these, and of SPF such a pass must be one of pyspf too once names are in lower case, or an error of pyspf. RSA keys are made anew by each run. Of RFC 9989 there is no other implementation: that walk is written for this trial, ' +
    'and counts against authheaders (RFC 7489) only where the tree and the list of public suffixes say different domains or records. Two suites of others ' +
    'are in the tests: of RFC 7208 (SPF), 203 tests (test/mailauth/spf-suite.test.ts), and of ARC, 174 tests (test/mailauth/arc-suite.test.ts), in six of ' +
    'which the box is stricter, as RFC 8617, 8301 and 6376 came later or say so; a message of that suite that has a second MIME-Version, which no signature ' +
    'covers and the box therefore refuses, is judged without it as well.',
  goal: { tries: 500_000, unit: 'verdicts', faults: '0 false passes, every disagreement explained' },
  short: 1000,
  hours: 0.5,
  broken: {
    'no-alignment': {
      what: 'any domain that passes is aligned with the author',
      file: 'src/mailauth/verdict.ts',
      find: "if (authorPolicy.result === 'fail' && spf.every(same) && dkim.every(same))",
      replace: "if (authorPolicy.result === 'fail')",
    },
    'body-hash': {
      what: 'the hash of the body is not compared',
      file: 'src/mailauth/checks.ts',
      find: 'const verified = resultOf(status.result)',
      replace: "const verified = status.comment === 'body hash did not verify' ? 'pass' : resultOf(status.result)",
    },
    'expired-signature': {
      what: 'a signature counts after x=',
      file: 'src/mailauth/checks.ts',
      find: 'const verified = resultOf(status.result)',
      replace: "const verified = status.comment === 'expired' ? 'pass' : resultOf(status.result)",
    },
    'test-key': {
      what: 'a key in testing counts',
      file: 'src/mailauth/checks.ts',
      find: 'if (row.status.testing === true)',
      replace: "if (row.status.testing === true && row.status.result !== 'pass')",
    },
    'soft-pass': {
      what: 'a softfail of SPF is a pass',
      file: 'src/mailauth/checks.ts',
      find: '    result: resultOf(status.result),\n    domain,\n',
      replace: "    result: status.result === 'softfail' ? 'pass' : resultOf(status.result),\n    domain,\n",
    },
    'broken-chain': {
      what: 'the seals of an ARC chain are not verified',
      file: 'src/mailauth/checks.ts',
      find: "result: unknown ? 'temperror' : resultOf(status.result),",
      replace: "result: unknown ? 'temperror' : status.comment?.includes('seal') ? 'pass' : resultOf(status.result),",
    },
  },
  missing: missingOracle,
  async open({ program, seed }: Setting): Promise<Cases> {
    const load = (file: string): Promise<unknown> => import(pathToFileURL(join(program, 'src', file)).href)
    // the code of the build that is tried
    const checks = (await load('mailauth/verdict.ts')) as Checks
    const reader = (await load('message/header-only.ts')) as Reader
    const keys: Keys = { k: rsaKey(1024), long: rsaKey(2048), short: rsaKey(768), ed: ed25519Key() }
    const trial = new VerdictsTrial({ checks, reader, keys, oracle: new Oracle(), seed })
    return {
      run: (number) => trial.run(number),
      notes: () => trial.notes(),
      async close() {
        trial.close()
      },
    }
  },
}

interface Checks {
  checkMessage: typeof checkMessage
  confirmAuthor: typeof confirmAuthor
}

interface Reader {
  headerOnly: typeof headerOnly
}

interface Deps {
  checks: Checks
  reader: Reader
  keys: Keys
  oracle: Oracle
  seed: number
}

class VerdictsTrial {
  readonly #deps: Deps
  readonly #differences = new Map<Difference, number>()
  #agreed = 0

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async run(number: number): Promise<CaseResult> {
    const { seed } = this.#deps
    const random = randomFrom(caseSeed(seed, number))
    const compared: Promise<Comparison>[] = []
    const tries: Try[] = []
    // others judge one while the box judges the next
    for (let index = 0; index < triesOfCase; index++) {
      const tried = this.#make(random)
      const verdict = await this.#judge(tried)
      tries.push(tried)
      compared.push(this.#compare(tried, verdict))
    }
    const faults: string[] = []
    for (const [index, found] of (await Promise.all(compared)).entries()) {
      this.#agreed += found.agreed
      for (const difference of found.differences) this.#differences.set(difference, (this.#differences.get(difference) ?? 0) + 1)
      if (found.faults.length === 0) continue
      const file = join(tmpdir(), `torture-verdicts-${seed}-${number}-${index}.json`)
      writeFileSync(file, JSON.stringify({ ...tries[index], raw: tries[index]!.raw.toString('latin1') }, null, 2))
      faults.push(...found.faults.map((fault) => `try ${index}: ${fault}; in ${file}`))
    }
    return { tries: triesOfCase, faults }
  }

  notes(): string[] {
    const lines = [...this.#differences]
      .toSorted(([, one], [, other]) => other - one)
      .map(([{ name, rfc, why }, count]) => `${count.toLocaleString('en')} ${name}: ${why} (${rfc})`)
    return [`${this.#agreed.toLocaleString('en')} results were a pass of the box and of another implementation.`, ...lines]
  }

  close(): void {
    this.#deps.oracle.close()
  }

  #make(random: Random): Try {
    const { envelope: change, ...made } = pick(makers, random)(this.#deps.keys, random)
    return { ...made, envelope: envelope({ mail_from: 'x@none.test', helo: 'none.test', ...change }) }
  }

  async #judge({ raw, envelope: received, zone }: Try): Promise<Verdict> {
    const { checks, reader } = this.#deps
    const verdict = await checks.checkMessage(raw, received, lookupIn(zone), settings)
    return checks.confirmAuthor(verdict, reader.headerOnly(raw, '').from, received, settings)
  }

  async #compare(tried: Try, verdict: Verdict): Promise<Comparison> {
    const { oracle } = this.#deps
    const { spf, dkim } = verdict.authentication
    const signers = dkim.filter(({ result, aligned }) => result === 'pass' || aligned).map(({ domain }) => domain)
    const opinion = await oracle.judge(tried, spf.result === 'pass' ? spf.domain : null, signers)
    let asked: Promise<Arbitration> | undefined
    return compare({
      tried,
      verdict,
      opinion,
      arbitrate: () => (asked ??= oracle.arbitrate(tried)),
      again: (zone) => oracle.judge({ ...tried, zone }, null, []),
    })
  }
}
