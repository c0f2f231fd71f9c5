import { Agent, request } from 'undici'
import { answerQuestions } from '../program.ts'

// undici alone: posts the same octets to each endpoint, so many at once, unsigned, nothing written down.

interface Round {
  urls: string[]
  /** Times that each is posted to. */
  times: number
  body: string
  together: number
}

const agent = new Agent({ keepAliveTimeout: 60_000 })
const headers = { 'Content-Type': 'application/json', 'User-Agent': 'bare' }

answerQuestions({
  post: async ({ urls, times, body, together }: Round) => {
    let next = 0
    const octets = Buffer.from(body)
    const work = async (): Promise<void> => {
      for (let number = next++; number < urls.length * times; number = next++) {
        const url = urls[number % urls.length]!
        const answer = await request(url, { method: 'POST', headers, body: octets, dispatcher: agent })
        await answer.body.dump()
      }
    }
    await Promise.all(Array.from({ length: together }, work))
  },
})
