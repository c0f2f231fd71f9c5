import { read } from '../../docs/pages.ts'

/** The indented blocks of one section of a page, each as the lines of a shell; throws where there is no such section. */
export function printed(page: string, heading: string): string[][] {
  const text = read(page)
  const start = new RegExp(`^(#+) ${heading.replaceAll(/[.()]/g, '\\$&')}$`, 'm').exec(text)
  if (start === null) throw new Error(`${page} has no section “${heading}”.`)
  const rest = text.slice(start.index + start[0].length)
  const end = new RegExp(`^#{1,${start[1]!.length}} `, 'm').exec(rest)
  const blocks: string[][] = []
  let open = false
  for (const line of rest.slice(0, end?.index).split('\n')) {
    const code = /^ {4}(.*)$/.exec(line)?.[1]
    if (code === undefined) open = false
    else if (open) blocks.at(-1)!.push(code)
    else {
      blocks.push([code])
      open = true
    }
  }
  return blocks
}

/** The block of a section that has this in it. */
export function printedWith(page: string, heading: string, part: string): string[] {
  const block = printed(page, heading).find((lines) => lines.some((line) => line.includes(part)))
  if (block === undefined) throw new Error(`${page}, “${heading}”, prints no “${part}”.`)
  return block
}
