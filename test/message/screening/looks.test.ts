import { expect, test } from 'vitest'
import { parse } from '../../../src/message/parse.ts'
import { mailOf } from './hostile.ts'
import { leftOut, place, shown, unseen, unseenByNesting, unseenBySeldom, unseenBySheets } from './looks.ts'

const marked = 'Marked wording'

async function has(html: string): Promise<boolean> {
  const { text } = await parse(mailOf({ html: html.replaceAll(place, marked) }))
  return text.toLowerCase().includes(marked.toLowerCase())
}

test('the text has what a browser shows, and nothing that it does not', async () => {
  expect(shown.length + unseen.length).toBeGreaterThanOrEqual(150)
  const lacking: string[] = []
  for (const html of shown) if (!(await has(html))) lacking.push(html)
  const hidden: string[] = []
  for (const html of [...unseen, ...unseenBySheets, ...unseenByNesting, ...unseenBySeldom, ...leftOut])
    if (await has(html)) hidden.push(html)
  expect({ lacking, hidden }).toEqual({ lacking: [], hidden: [] })
})
