import { createConnection } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * Runs in the network of a bare Debian, which has nothing to send mail with. `deliver KEY PORT` makes an identity if there is none, sends one message
 * to it and prints the last reply; `read KEY` prints the e-mail of the first identity, by the API.
 */
const [, , what, key, port] = process.argv
const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }

async function call(method: string, path: string, body?: unknown): Promise<string> {
  const options = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
  const answer = await fetch(`http://127.0.0.1:8080/v1${path}`, options)
  if (!answer.ok) throw new Error(await answer.text())
  return answer.text()
}

async function deliver(to: string): Promise<string> {
  const socket = createConnection(Number(port), '127.0.0.1')
  const lines = createInterface(socket)[Symbol.asyncIterator]()
  const reply = async (): Promise<string> => {
    for (;;) {
      const { value } = (await lines.next()) as { value: string }
      if (value[3] !== '-') return value
    }
  }
  await reply()
  const text = `From: ada@sender.test\r\nTo: ${to}\r\nSubject: From nothing\r\n\r\nYour code is 493817.\r\n`
  let said = ''
  for (const line of ['EHLO sender.test', 'MAIL FROM:<ada@sender.test>', `RCPT TO:<${to}>`, 'DATA', `${text}.`]) {
    socket.write(`${line}\r\n`)
    said = await reply()
  }
  socket.end()
  return said
}

if (what === 'deliver') {
  const { data } = JSON.parse(await call('GET', '/identities')) as { data: { email: string }[] }
  const { email } = data[0] ?? (JSON.parse(await call('POST', '/identities', { name: 'Ada' })) as { email: string })
  process.stdout.write(await deliver(email))
} else {
  const { data } = JSON.parse(await call('GET', '/identities')) as { data: { id: string }[] }
  process.stdout.write(await call('GET', `/identities/${data[0]!.id}/emails`))
}
