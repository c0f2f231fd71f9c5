import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { answerQuestions } from '../program.ts'

// ws alone: what is posted to it goes to everybody, as its documentation has it.

const http = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const frame = Buffer.concat(chunks)
    for (const client of server.clients) if (client.readyState === client.OPEN) client.send(frame, { binary: false })
    response.end('ok')
  })
})
const server = new WebSocketServer({ server: http, perMessageDeflate: false })
server.on('connection', (client) => client.on('message', () => client.send('{"type":"subscribed"}')))

answerQuestions({
  listen: () => new Promise((resolve) => http.listen(0, '127.0.0.1', 4096, () => resolve((http.address() as AddressInfo).port))),
})
