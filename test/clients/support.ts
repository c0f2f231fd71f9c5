import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { Pillarbox, type PillarboxOptions } from '../../clients/typescript/src/index.ts'
import type { Appliance } from '../support/appliance.ts'

export function clientOf(box: Pick<Appliance, 'url' | 'key'>, options: Partial<PillarboxOptions> = {}): Pillarbox {
  return new Pillarbox({ baseUrl: box.url, apiKey: box.key, ...options })
}

/** A network between a client and a box, which can be cut. */
export class Network {
  readonly #connections = new Set<Socket>()
  /** The port of the box; 0 while there is none. */
  target = 0
  /** Bytes that still go to the client before its connections are cut. */
  allowance = Infinity
  readonly #server = createServer((client) => this.#join(client))

  static async start(): Promise<Network> {
    const network = new Network()
    network.#server.listen(0, '127.0.0.1')
    await once(network.#server, 'listening')
    onTestFinished(() => {
      network.cut()
      network.#server.close()
    })
    return network
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Cuts every connection, without a word to either side. */
  cut(): void {
    for (const one of this.#connections) one.destroy()
  }

  #join(client: Socket): void {
    const server = connect(this.target, '127.0.0.1')
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#connections.add(one)
      one.on('error', () => undefined)
      one.on('close', () => {
        this.#connections.delete(one)
        other.destroy()
      })
    }
    client.on('data', (bytes) => server.write(bytes))
    server.on('data', (bytes) => {
      this.allowance -= bytes.length
      // what is in the middle of a frame is cut there
      client.write(this.allowance < 0 ? bytes.subarray(0, Math.max(0, bytes.length + this.allowance)) : bytes)
      if (this.allowance < 0) this.cut()
    })
  }
}
