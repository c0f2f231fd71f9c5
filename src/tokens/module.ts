import type { AgentDirectory } from '../agents/model.ts'
import type { Config } from '../config.ts'
import type { CronJob } from '../core/cron.ts'
import { Outside, type OutsideDial, type OutsideSettings } from '../net/outside.ts'
import { resolver } from '../net/resolve.ts'
import type { EventType } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Identities } from '../identities/identities.ts'
import type { ModuleBasis, Module } from '../module.ts'
import type { ReputationSource } from '../trust/model.ts'
import { Bearers } from './bearers.ts'
import { Issuers, resolveDid } from './issuers.ts'
import { Issuing } from './issuing.ts'
import { type DidResolver, tokenIssued, type TokenJudge, tokenRevoked } from './model.ts'
import { routes } from './routes.ts'
import { sealedKeys, SigningKeys } from './signing-keys.ts'
import { judgeToken, verifyToken } from './verifying.ts'

interface Deps extends ModuleBasis {
  identities: Identities
  agents: AgentDirectory
  testing?: { outsideDial?: OutsideDial | undefined } | undefined
}

/** Verifiable identity: the keys of the box, identity tokens, and their verification. */
export class TokensModule implements Module {
  readonly name = 'tokens'
  readonly routes: AnyRoute[]
  readonly jobs: CronJob[]
  readonly events: EventType[] = [tokenIssued, tokenRevoked]
  readonly sealed = [sealedKeys]
  readonly keys: SigningKeys
  readonly judge: TokenJudge
  readonly resolver: DidResolver
  readonly #outside: Outside
  readonly #issuers: Issuers
  #settings: Config['tokens']
  #reputations: ReputationSource | undefined

  constructor(deps: Deps) {
    const { config, database, clock, identities, testing } = deps
    this.#settings = config.tokens
    this.keys = new SigningKeys({ ...deps, rotateEvery: () => this.#settings.rotate_every })
    this.#outside = new Outside(outsideSettings(config), testing?.outsideDial)
    this.#issuers = new Issuers({ outside: this.#outside, clock })
    this.resolver = (account, did) => resolveDid(this.#issuers, account, did)
    const bearers = new Bearers(database, clock)
    const reputations = (): ReputationSource => this.#known
    const shared = { ...deps, reputations, bearers, keys: this.keys, signer: this.keys, issuers: this.#issuers }
    this.judge = (account, token, audience) => judgeToken(shared, account, token, audience)
    this.routes = routes({
      keys: this.keys,
      issuing: new Issuing(shared),
      verify: (caller, question) => verifyToken(shared, caller, question),
    })
    this.jobs = [{ name: 'tend-signing-keys', schedule: '29 * * * *', run: () => this.keys.tend() }]
    identities.onRemove((tx, id) => bearers.forget(tx, id))
  }

  /** Connects the reputations, which depend on the signing keys; before the start. */
  equip(reputations: ReputationSource): void {
    this.#reputations = reputations
  }

  start(): Promise<void> {
    return this.keys.ensure()
  }

  stop(): Promise<void> {
    return this.#outside.close()
  }

  reload(config: Config): void {
    this.#settings = config.tokens
    this.#outside.reload(outsideSettings(config))
    this.#issuers.forget()
  }

  get #known(): ReputationSource {
    if (!this.#reputations) throw new Error('No trust module is registered.')
    return this.#reputations
  }
}

function outsideSettings({ fetch, dns }: Config): OutsideSettings {
  return { ...fetch, allow_http: false, resolve: resolver(dns) }
}
