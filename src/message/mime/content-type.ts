/** A value with parameters, such as that of Content-Type (RFC 2045 5.1). */
export interface ParameterizedValue {
  /** `text/plain`, `attachment`; lower case. */
  name: string
  /** By names in lower case. */
  params: ReadonlyMap<string, string>
}

export const plainText: ParameterizedValue = { name: 'text/plain', params: new Map() }

const token = String.raw`[A-Za-z0-9!#$%&'+._^{|}~-]`
// Without comments, escapes, encoded words and continuations, which software reads differently.
const parameter = String.raw`\s*;\s*(${token}+)=(?:(${token}[A-Za-z0-9!#$%&'+._^{|}~=/:-]*)|"((?:(?!=\?)[^"\\()\x00-\x1f\x7f-\uffff])*)")`
const mediaType = new RegExp(String.raw`^(${token}+/${token}+)((?:${parameter})*)\s*(?:;\s*)?$`)
const disposition = new RegExp(String.raw`^(${token}+)((?:${parameter})*)\s*(?:;\s*)?$`)
const longestValue = 2000

/** A Content-Type that all software reads in the same way; null for any other. */
export function mediaTypeIn(value: string): ParameterizedValue | null {
  return parameterized(value, mediaType)
}

/** A Content-Disposition (RFC 2183) that all software reads in the same way; null for any other. */
export function dispositionIn(value: string): ParameterizedValue | null {
  return parameterized(value, disposition)
}

function parameterized(value: string, pattern: RegExp): ParameterizedValue | null {
  const [, name, rest = ''] = value.length > longestValue ? [] : (pattern.exec(value) ?? [])
  if (name === undefined) return null
  const params = new Map<string, string>()
  for (const [, key = '', plain, quoted] of rest.matchAll(new RegExp(parameter, 'gy'))) {
    if (params.has(key.toLowerCase())) return null
    params.set(key.toLowerCase(), plain ?? quoted ?? '')
  }
  return { name: name.toLowerCase(), params }
}
