import { Agent, request } from 'undici'
import { answerQuestions } from '../program.ts'
import { atRate } from './pace.ts'

// A bare undici client that posts at a fixed rate: to our API, or to the sink itself.

interface Posting {
  url: string
  headers: Record<string, string>
  /** `#` is the number. */
  body: string
  perSecond: number
  count: number
  first: number
}

const agent = new Agent({ connections: 64 })

answerQuestions({
  post: ({ url, headers, body, ...pace }: Posting) =>
    atRate(pace, async (number) => {
      const answer = await request(url, { method: 'POST', headers, body: body.replace('#', String(number)), dispatcher: agent })
      if (answer.statusCode >= 300) throw new Error(`${answer.statusCode}: ${await answer.body.text()}`)
      await answer.body.dump()
    }),
})
