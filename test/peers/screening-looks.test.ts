import { readFileSync } from 'node:fs'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pageOf } from '../../src/mail/html-view.ts'
import { parse } from '../../src/message/parse.ts'
import { sanitize } from '../../src/message/sanitize.ts'
import { mailOf } from '../message/screening/hostile.ts'
import { leftOut, place, shown, unseen, unseenByNesting, unseenBySeldom, unseenBySheets } from '../message/screening/looks.ts'
import { randomFrom } from '../support/random.ts'
import { chromiumBrowser } from '../support/screen.ts'

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

/** Two texts of the same letters, so that they take the same place; what differs in a picture are the letters that are seen. */
const texts = ['Marked wording', 'gnidrow dekraM'] as const

/** Parts of a colour that differ by more can be told apart; so many dots are a text that can be read. */
const visibleDifference = 24
const leastDots = 200

type Display = (html: string) => string | Promise<string>

const asItIs: Display = (html) => `<!DOCTYPE html><html><body>${html}</body></html>`

/** As the page of the box displays a message. */
const onPage: Display = async (html) => pageOf(await sanitize(html, () => undefined))

/** A page, and where its pictures are compared. */
interface Screens {
  page: Page
  session: CDPSession
  pictures: Page
  close(): Promise<void>
}

async function openScreens(within: Browser): Promise<Screens> {
  const context = await within.newContext({ viewport: { width: 1000, height: 800 }, javaScriptEnabled: false })
  const others = await within.newContext()
  const page = await context.newPage()
  const close = async (): Promise<void> => void (await Promise.all([context.close(), others.close()]))
  return { page, session: await context.newCDPSession(page), pictures: await others.newPage(), close }
}

/** A picture of the whole page as PNG in base64, in a third of the time that Playwright takes. */
async function pictureOf({ session }: Screens): Promise<string> {
  const { cssContentSize: size } = await session.send('Page.getLayoutMetrics')
  const clip = { x: 0, y: 0, width: Math.min(size.width, 4000), height: Math.min(size.height, 8000), scale: 1 }
  const options = { format: 'png', optimizeForSpeed: true, captureBeyondViewport: true, clip } as const
  return (await session.send('Page.captureScreenshot', options)).data
}

/** The dots of a page that differ between the two texts. */
async function dotsOf(
  screens: Screens,
  html: string,
  { display = asItIs, wait = 0 }: { display?: Display; wait?: number } = {},
): Promise<number> {
  const shots: string[] = []
  for (const text of texts) {
    await screens.page.setContent(await display(html.replaceAll(place, text)))
    await screens.page.waitForTimeout(wait)
    shots.push(await pictureOf(screens))
  }
  // to compare dots takes as long as to draw them
  if (shots[0] === shots[1]) return 0
  return screens.pictures.evaluate<number>(`(async ([one, other], least) => {
    const dots = async (base64) => {
      const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + base64)).blob())
      const context = new OffscreenCanvas(image.width, image.height).getContext('2d')
      context.drawImage(image, 0, 0)
      return context.getImageData(0, 0, image.width, image.height).data
    }
    const [first, second] = [await dots(one), await dots(other)]
    const differs = (at) => Math.abs(first[at] - second[at]) > least
    let found = 0
    for (let at = 0; at < first.length; at += 4) if (differs(at) || differs(at + 1) || differs(at + 2)) found += 1
    return found
  })(${JSON.stringify(shots)}, ${visibleDifference})`)
}

test('Chromium shows what the table says is seen, and nothing of what it says is not', { timeout: 900_000 }, async () => {
  if (browser === undefined) return
  const screens = await openScreens(browser)
  const wrong: string[] = []
  for (const [snippets, isShown] of [
    [shown, true],
    [leftOut, true],
    [unseen, false],
    [unseenBySheets, false],
    [unseenByNesting, false],
    [unseenBySeldom, false],
  ] as const)
    for (const html of snippets) {
      let dots = await dotsOf(screens, html)
      // further looks at what a busy machine may have drawn late
      for (let look = 1; look <= 5 && dots >= leastDots !== isShown; look++) {
        dots = await dotsOf(screens, html, { wait: 200 * look })
      }
      if (dots >= leastDots !== isShown) wrong.push(`${isShown ? 'not seen' : 'seen'} (${dots} dots): ${html}`)
    }
  await screens.close()
  expect(wrong).toEqual([])
})

const evasions = readFileSync(new URL('../message/screening/evasions.txt', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')

const tags = ['p', 'div', 'span', 'b', 'table', 'td', 'sub', 'ul', 'details', 'h1', 'font', 'center']
const declarations = [
  'color:white',
  'color:#eee',
  'background:black',
  'background:#000 url(x)',
  'color:var(--a)',
  '--a:white',
  'background:white',
  'position:absolute',
  'position:fixed',
  'left:-999px',
  'top:-999px',
  'inset:0',
  'z-index:9',
  'float:left',
  'display:flex',
  'display:grid',
  'height:0',
  'width:0',
  'overflow:hidden',
  'max-height:0',
  'margin:-99px',
  'margin-top:-60px',
  'padding:9999px',
  'text-indent:-999px',
  'font-size:1px',
  'font-size:.5em',
  'font:1px/1 a',
  'line-height:0',
  'opacity:.3',
  'transform:scale(.4)',
  'letter-spacing:-9px',
  'zoom:.4',
  'filter:contrast(0)',
  'mix-blend-mode:screen',
  'clip-path:inset(49%)',
  'mask:linear-gradient(#0000,#0000)',
  'display:none',
  'visibility:hidden',
]

/** Elements in one another with a few declarations each, and others beside them. */
function mixed(roll: (sides: number) => number): string {
  const one = (): string => {
    const style = Array.from({ length: roll(4) }, () => declarations[roll(declarations.length)]!).join(';')
    return `<${tags[roll(tags.length)]!} style="${style}">`
  }
  const before = Array.from({ length: roll(3) }, () => `${one()}x`).join('')
  return `${before}${Array.from({ length: 1 + roll(4) }, one).join('')}${place}`
}

test('what agents are given of a message is shown on its page', { timeout: 900_000 }, async () => {
  if (browser === undefined) return
  const screens = await openScreens(browser)
  const roll = randomFrom(20_261_128)
  const random = Array.from({ length: 400 }, () => mixed(roll))
  const wrong: string[] = []
  let given = 0
  for (const html of [...evasions, ...unseen, ...leftOut, ...random]) {
    const { text } = await parse(mailOf({ html: html.replaceAll(place, texts[0]) }))
    if (!text.toLowerCase().includes(texts[0].toLowerCase())) continue
    given += 1
    const dots = await dotsOf(screens, html, { display: onPage })
    if (dots < leastDots && (await dotsOf(screens, html, { display: onPage })) < leastDots) wrong.push(`(${dots} dots) ${html}`)
  }
  await screens.close()
  expect(wrong).toEqual([])
  expect(given).toBeGreaterThan(100)
})
