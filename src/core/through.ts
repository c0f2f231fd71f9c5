import { Readable } from 'node:stream'
import type { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** What a stream makes of octets, as it makes them: whoever stops reading stops the source, and what the source throws comes out here. */
export async function* through(octets: AsyncIterable<Uint8Array>, stream: Transform): AsyncGenerator<Buffer> {
  // its failure is the stream's, and thrown by the loop
  pipeline(Readable.from(octets), stream).catch(() => undefined)
  yield* stream as AsyncIterable<Buffer>
}
