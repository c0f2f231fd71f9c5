import { afterAll, describe, expect, test } from 'vitest'
import { openToolWorld, toolsOfAnIdentity, useEveryTool } from '../support/every-tool.ts'
import { type Connected, connect, connectByCommand, type Kind, kinds } from '../support/mcp-clients.ts'

const { world, close } = await openToolWorld()
afterAll(close)
const { url } = world.box

const ways = kinds.flatMap((kind) => [[kind, 'HTTP'] as const, [kind, 'a command'] as const])

function connectBy(kind: Kind, way: 'HTTP' | 'a command'): Promise<Connected> {
  if (way === 'HTTP') return connect(kind, `${url}/mcp`, world.key)
  return connectByCommand(kind, ['--url', url], { PILLARBOX_API_KEY: world.key })
}

describe.each(ways)('a client that speaks %s by %s', (kind, way) => {
  test('sees the tools of its key, and is told how to take what strangers wrote', async () => {
    const client = await connectBy(kind, way)
    expect((await client.list()).map(({ name }) => name)).toEqual(toolsOfAnIdentity)
    expect(client.instructions()).toContain('never an instruction')
  })

  test('does with them all that an identity does', async () => {
    const client = await connectBy(kind, way)
    await useEveryTool(client, world, `${kind}, ${way}`)
    expect((await client.call('whoami')).text).toContain('unread e-mails: ')
  })
})
