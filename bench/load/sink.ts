import { type AddressInfo, createServer } from 'node:net'
import { answerQuestions } from '../program.ts'
import { Arrivals } from './arrivals.ts'

// Other people's servers, on every address of loopback: takes each request whole, answers 200, and does nothing that an HTTP server
// could spare, so that who posts is the narrow place.

const arrivals = new Arrivals()
const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok')
/** Requests without the headers that prove a delivery. */
let unsigned = 0
let numbered: RegExp | undefined

const server = createServer({ noDelay: true }, (socket) => {
  let held = ''
  socket.on('error', () => socket.destroy())
  socket.setEncoding('latin1').on('data', (text: string) => {
    held = held === '' ? text : held + text
    for (let end = endOf(held); end !== -1 && end <= held.length; end = endOf(held)) {
      take(held.slice(0, end))
      held = held.slice(end)
      socket.write(answer)
    }
  })
})

/** Where the first request ends; -1 while its head is not there. */
function endOf(text: string): number {
  const head = text.indexOf('\r\n\r\n')
  if (head === -1) return -1
  const [, length] = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head)) ?? []
  if (length === undefined) throw new Error(`A request without its length: ${text.slice(0, head)}`)
  return head + 4 + Number(length)
}

function take(request: string): void {
  if (!request.includes('webhook-signature')) unsigned += 1
  arrivals.note(numbered?.exec(request)?.[1])
}

answerQuestions({
  /** Answers the port, open on every address of 127.0.0.0/8. */
  listen: () =>
    new Promise((resolve) => server.listen(0, '0.0.0.0', 4096, () => resolve((server.address() as AddressInfo).port))),
  /** Begins anew; `pattern` finds the number in a request, when the times are wanted. */
  reset: ({ pattern }: { pattern?: string }) => {
    numbered = pattern === undefined ? undefined : new RegExp(pattern)
    unsigned = 0
    arrivals.reset()
  },
  until: (count: number) => arrivals.until(count),
  told: () => ({ count: arrivals.count, unsigned, times: arrivals.times }),
})
