import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from './answer.ts'

/** Pages for people, beside the API: what is asked of none of its calls may be one of theirs. */
export interface Site {
  /** What a GET of this path is answered; undefined where there is no such page. */
  answer(path: string, headers: IncomingHttpHeaders): Promise<Answer> | undefined
}
