import type { Part } from '../part.ts'
import type { Keys } from './keys.ts'
import { routes } from './routes.ts'

export function accountPart(keys: Keys): Part {
  return {
    name: 'account',
    routes: routes(keys),
    jobs: [{ name: 'note-key-use', schedule: '*/20 * * * * *', run: () => keys.noteUse() }],
    reload: (config) => keys.reload(config.http.rate_limit),
    stop: () => keys.noteUse(),
  }
}
