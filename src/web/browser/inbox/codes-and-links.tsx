import type { JSX } from 'preact'
import type { Email, Link } from '../../../mail/model.ts'
import { CopyButton } from '../widgets/copy-button.tsx'

const purposes: Record<Link['kind'], string> = {
  verify: 'Confirm',
  reset: 'Reset a password',
  signin: 'Sign in',
  unsubscribe: 'Unsubscribe',
  other: 'Link',
}

const maxLinks = 20

/** The codes and links of a message, as agents get them. */
export function CodesAndLinks({ codes, links }: Pick<Email, 'codes' | 'links'>): JSX.Element | null {
  const first = links.toSorted((one, other) => Number(one.kind === 'other') - Number(other.kind === 'other'))
  if (codes.length === 0 && links.length === 0) return null
  return (
    <div class="finds">
      <Codes codes={codes} />
      {links.length > 0 && (
        <details>
          <summary>{links.length === 1 ? '1 link' : `${links.length} links`}</summary>
          <ul class="links">
            {first.slice(0, maxLinks).map(({ url, text, kind }, index) => (
              <li key={index}>
                <span class="faint">{purposes[kind]}:</span> {text !== '' && <span>{text} </span>}
                <a class="mono" href={url} target="_blank" rel="noopener noreferrer">
                  {url}
                </a>{' '}
                <CopyButton text={url} what="the link" />
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

export function Codes({ codes }: { codes: readonly string[] }): JSX.Element | null {
  if (codes.length === 0) return null
  return (
    <ul class="codes" aria-label="Codes">
      {codes.map((code) => (
        <li key={code}>
          <strong class="mono">{code}</strong> <CopyButton text={code} what={`the code ${code}`} />
        </li>
      ))}
    </ul>
  )
}
