import type { IdentityRow } from '../../identities/identities.ts'
import type { Storage } from '../../identities/model.ts'
import type { Trash } from './trash.ts'

export interface StorageSettings {
  /** The quota of one identity in bytes, ten times as much for the operator's; 0 is no limit. */
  quota: number
  /** The operator's own address. */
  operator: string
}

type Keeping = Pick<IdentityRow, 'id' | 'email' | 'stored_bytes' | 'media_bytes'>

/** The storage usage and quotas of identities. */
export class Stores {
  readonly #trash: Trash
  #settings: StorageSettings

  constructor(trash: Trash, settings: StorageSettings) {
    this.#trash = trash
    this.#settings = settings
  }

  reload(settings: StorageSettings): void {
    this.#settings = settings
  }

  readonly of = async ({ id, email, stored_bytes, media_bytes }: Keeping): Promise<Storage> => {
    const { quota, operator } = this.#settings
    const limit = quota === 0 ? null : email === operator ? 10 * quota : quota
    return { used: stored_bytes, limit, media: media_bytes, trash: await this.#trash.octetsOf({ identity_id: id }) }
  }
}
