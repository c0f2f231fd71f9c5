import { about, type Check } from '../check.ts'

interface Deps {
  /** Whether the settings contain a bootstrap key. */
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
      const remove = 'take bootstrap_key (PILLARBOX_BOOTSTRAP_KEY) out of the settings'
      if (id === undefined) return [line.pass('It opens nothing any more.')]
      const fix = `Make a key of your own (POST /v1/api-keys), then DELETE /v1/api-keys/${id}?keep=true, and ${remove}.`
      return [line.warn('The key for the first steps still opens everything, and lies in the settings.', fix)]
    },
  }
}
