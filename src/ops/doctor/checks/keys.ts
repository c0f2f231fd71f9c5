import { about, type Check } from '../check.ts'

interface Deps {
  /** True if the settings contain a bootstrap key. */
  bootstrap: boolean
  /** The id of the key it is, if that is still valid. */
  opens: () => Promise<string | undefined>
}

/** Checks for a valid bootstrap key in the settings, which has every scope. */
export function bootstrapKey({ bootstrap, opens }: Deps): Check {
  return {
    name: 'bootstrap_key',
    pace: 'usual',
    async run() {
      if (!bootstrap) return []
      const line = about('bootstrap_key', 'settings')
      const id = await opens()
      const remove = 'remove bootstrap_key (PILLARBOX_BOOTSTRAP_KEY) from the settings'
      if (id === undefined) return [line.pass('It has been revoked.')]
      const fix = `Create another key (POST /v1/api-keys), then DELETE /v1/api-keys/${id}?keep=true, and ${remove}.`
      return [line.warn('The bootstrap key is still valid with every scope, and stored in the settings.', fix)]
    },
  }
}
