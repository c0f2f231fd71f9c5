import { describe, expect, test } from 'vitest'
import { prepareRaw } from '../../src/outbound/compose/prepare-raw.ts'

const head = 'From: a@pillarbox.test\r\nDate: Fri, 20 Nov 2026 10:05:00 +0000\r\nMessage-ID: <1@pillarbox.test>\r\n\r\n'
const place = { now: Date.UTC(2026, 10, 20, 10, 5), domain: 'pillarbox.test' }

describe('a message composed elsewhere', () => {
  test('that is as it should be stays so, to the octet', async () => {
    const raw = Buffer.from(`${head}Grüße\r\n.\r\n`)
    expect((await prepareRaw(raw, place)).equals(raw)).toBe(true)
  })

  test.each(['\n.\n', '\n.\r\n', '\r\n.\n', '\r.\r', '\r.\r\n', '\n.\r', '\r\r\n\n'])(
    'has no lone CR or LF left: %j',
    async (end) => {
      const octets = (await prepareRaw(Buffer.from(`${head}body${end}MAIL FROM:<evil@a.test>\r\n`), place)).toString('latin1')
      expect(octets).not.toMatch(/\r(?!\n)|(?<!\r)\n/)
      expect(octets).toContain('MAIL FROM:<evil@a.test>')
    },
  )

  test('has no Bcc, folded or not, and no Return-Path', async () => {
    const secret =
      'Bcc: one@x.test,\r\n two@x.test\r\nBCC : three@x.test\r\nBcc\r\n : five@x.test\r\nReturn-Path: <four@x.test>\r\n'
    expect((await prepareRaw(Buffer.from(`${secret}${head}Bcc: in the body\r\n`), place)).toString()).toBe(
      `${head}Bcc: in the body\r\n`,
    )
  })

  test('is given a Date and a Message-ID when it has none', async () => {
    const octets = (await prepareRaw(Buffer.from('From: a@pillarbox.test\n\nx'), place)).toString()
    expect(octets).toMatch(
      /^Message-ID: <[\w-]+@pillarbox\.test>\r\nDate: Fri, 20 Nov 2026 10:05:00 \+0000\r\nFrom: a@pillarbox\.test\r\n\r\nx$/,
    )
  })

  test('keeps the Date and Message-ID it has, however they are written', async () => {
    const raw = head.replace('Date:', 'DATE :').replace('Message-ID:', 'message-id\t:')
    expect((await prepareRaw(Buffer.from(raw), place)).toString()).toBe(raw)
  })

  test('is refused with a line that is too long, or a NUL', async () => {
    await expect(prepareRaw(Buffer.from(`${head}${'x'.repeat(998)}\r\n${'y'.repeat(998)}`), place)).resolves.toBeDefined()
    await expect(prepareRaw(Buffer.from(`${head}${'x'.repeat(999)}\r\n`), place)).rejects.toThrow(/998/)
    await expect(prepareRaw(Buffer.from(`${head}${'x'.repeat(999)}`), place)).rejects.toThrow(/998/)
    await expect(prepareRaw(Buffer.from(`${head}a\0b`), place)).rejects.toThrow(/NUL/)
  })
})
