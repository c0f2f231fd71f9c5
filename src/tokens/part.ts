import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import type { Job } from '../core/cron.ts'
import type { Log } from '../core/log.ts'
import type { Seal } from '../core/seal.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Part } from '../part.ts'
import type { Database } from '../store/database.ts'
import { routes } from './routes.ts'
import { sealedKeys } from './sealed.ts'
import { SigningKeys } from './signing-keys.ts'

interface Needs {
  database: Database
  clock: Clock
  seal: Seal
  log: Log
  config: Config
}

/** Who an identity is, said so that others can check it: the keys of the box, tokens, and what looks at tokens. */
export class TokensPart implements Part {
  readonly name = 'tokens'
  readonly routes: AnyRoute[]
  readonly jobs: Job[]
  readonly sealed = [sealedKeys]
  readonly keys: SigningKeys
  #settings: Config['tokens']

  constructor(needs: Needs) {
    this.#settings = needs.config.tokens
    this.keys = new SigningKeys({ ...needs, rotateEvery: () => this.#settings.rotate_every })
    this.routes = routes(this.keys)
    this.jobs = [{ name: 'tend-signing-keys', schedule: '29 * * * *', run: () => this.keys.tend() }]
  }

  start(): Promise<void> {
    return this.keys.ensure()
  }

  reload(config: Config): void {
    this.#settings = config.tokens
  }
}
