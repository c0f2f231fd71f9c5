import type { Page } from '../../core/shapes.ts'
import { AnswerText } from '../answer-text.ts'
import type { ToolAnswer } from '../tool.ts'

/** A page of at most `limit` rows; of fewer where these do not fit, so that its cursor goes on after the last that is shown. */
export async function listed<Row extends { id: string }>(
  read: (limit: number) => Promise<Page<Row>>,
  limit: number,
  lines: (text: AnswerText, number: number, row: Row) => boolean,
  none = 'No messages.',
): Promise<ToolAnswer> {
  const { data, next_cursor } = await read(limit)
  const text = new AnswerText()
  const shown: string[] = []
  for (const [index, row] of data.entries()) {
    // a line of the box takes as much again
    if (text.left < 700 || !lines(text, index + 1, row)) return listed(read, index, lines, none)
    shown.push(row.id)
  }
  if (data.length === 0) text.line(none)
  return { text: text.toString(next_cursor === null ? [] : [`More: cursor ${next_cursor}`]), data: { ids: shown, next_cursor } }
}
