import { expect, onTestFinished, test } from 'vitest'
import { type UnsentClient, UnsentFrames, UnsentLimiter } from '../../src/realtime/unsent.ts'

const mebibyte = 1024 * 1024

/** Contents that are never looked at take no memory. */
const contents = (bytes = mebibyte): Buffer => Buffer.alloc(bytes)

/** Sockets that note in which order they are closed, and cut. */
function box() {
  const limiter = new UnsentLimiter()
  const ends: string[] = []
  return {
    ends,
    socket: (owner: string, name: string) => {
      const client: UnsentClient & { waiting: number } = {
        waiting: 0,
        tooSlow: () => {
          ends.push(`${name} closed`)
          frames.closing()
        },
        cut: () => void ends.push(`${name} cut`),
      }
      const frames = new UnsentFrames(client, limiter, () => `acct_${owner}`)
      // they count with the memory of all boxes in this process
      onTestFinished(() => frames.clear())
      return {
        frames,
        send: (...parts: Buffer[]): void => {
          client.waiting += parts.reduce((sum, { length }) => sum + length, 0)
          frames.add(parts)
        },
      }
    },
  }
}

test('contents that many sockets of an account wait for count once', () => {
  const { socket, ends } = box()
  const shared = contents()
  const sockets = Array.from({ length: 2500 }, (_, index) => socket('ada', `${index}`))
  for (const one of sockets) one.send(contents(100), shared)
  expect(ends).toEqual([])
})

test('above 32 MiB of an account its socket with the most is closed, and no other', () => {
  const { socket, ends } = box()
  const [few, most, other] = [socket('ada', 'few'), socket('ada', 'most'), socket('bob', 'other')]
  for (let count = 0; count < 10; count += 1) other.send(contents())
  for (let count = 0; count < 16; count += 1) most.send(contents())
  for (let count = 0; count < 15; count += 1) few.send(contents())
  expect(ends).toEqual([])
  few.send(contents())
  expect(ends).toEqual(['most closed'])
  for (let count = 0; count < 15; count += 1) few.send(contents())
  expect(ends).toEqual(['most closed'])
})

test('frames that were written do not count, and many short ones do with what each takes besides its contents', () => {
  const { socket, ends } = box()
  const [reader, stuck] = [socket('ada', 'reader'), socket('ada', 'stuck')]
  for (let count = 0; count < 100; count += 1) {
    reader.send(contents())
    reader.frames.sent()
  }
  const short = contents(1)
  for (let count = 0; count < 31 * 1024; count += 1) stuck.send(short)
  expect(ends).toEqual([])
  for (let count = 0; count < 1024; count += 1) stuck.send(short)
  expect(ends).toEqual(['stuck closed'])
})

test('above 64 MiB in all those that are being closed are cut, the oldest first, then the largest of the account with the most', () => {
  const { socket, ends } = box()
  const accounts = ['ada', 'bob', 'carol', 'dan'].map((name) => socket(name, name))
  for (const one of accounts.slice(0, 2)) for (let count = 0; count < 10; count += 1) one.send(contents())
  for (const one of accounts.slice(0, 2)) one.frames.closing()
  for (let count = 0; count < 25; count += 1) accounts[2]!.send(contents())
  for (let count = 0; count < 18; count += 1) accounts[3]!.send(contents())
  expect(ends).toEqual([])
  accounts[3]!.send(contents())
  expect(ends).toEqual(['ada cut'])
  accounts[1]!.frames.clear()
  const more = ['eve', 'fay'].map((name) => socket(name, name))
  for (const one of more) for (let count = 0; count < 10; count += 1) one.send(contents())
  expect(ends).toEqual(['ada cut', 'carol closed', 'carol cut'])
})
