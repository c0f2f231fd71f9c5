/** Elements whose words no reader of mail sees. */
export const hiddenElements = 'style script title svg select object template noscript textarea'.split(' ')

// the property itself, not backface-visibility
const starts = ['display', ';visibility', ' visibility', '^visibility']

/**
 * What a style holds that hides its element, in lower case; behind `^`: what it begins with. Colours, sizes, places and classes are not looked at:
 * builders of mail set a size of 0 on columns whose words are shown.
 */
export const hiddenStyles = starts.flatMap((name) =>
  [':', ': ', ' :', ' : '].map((colon) => `${name}${colon}${name === 'display' ? 'none' : 'hidden'}`),
)

/** Whether a style hides its element. */
export function isHiddenStyle(style: string): boolean {
  const text = style.toLowerCase()
  return hiddenStyles.some((part) => (part.startsWith('^') ? text.startsWith(part.slice(1)) : text.includes(part)))
}
