/** Elements whose words no reader of mail sees. */
export const hiddenElements: ReadonlySet<string> = new Set(
  'style script title svg select object template noscript textarea'.split(' '),
)

/**
 * What hides the element of a style, as selectors. Colours, sizes, places and classes are not looked at: builders of mail set a size of 0 on columns whose
 * words are shown. Of visibility the property itself counts, not backface-visibility.
 */
export const hiddenStyles: readonly string[] = [
  ...['display:none', 'display: none', 'display :none', 'display : none'].map((style) => `[style*="${style}" i]`),
  ...['visibility:hidden', 'visibility: hidden'].flatMap((style) => [
    `[style^="${style}" i]`,
    `[style*=" ${style}" i]`,
    `[style*=";${style}" i]`,
  ]),
]

/** Whether a style hides its element; by the same rule. */
export function isHiddenStyle(style: string): boolean {
  return /display ?: ?none|(?:^|[ ;])visibility: ?hidden/i.test(style)
}
