import { isSupportedCountry, parsePhoneNumberFromString } from 'libphonenumber-js'

/** Whether a number in E.164 form can exist: its country's numbers have as many digits. */
export function isPossible(number: string): boolean {
  return parsePhoneNumberFromString(number, { extract: false })?.isPossible() ?? false
}

/** Whether the number is from one of these countries; one that tells its country by nothing but a shared calling code is from any of those. */
export function isOf(number: string, countries: readonly string[]): boolean {
  const parsed = parsePhoneNumberFromString(number, { extract: false })
  const possible: readonly string[] = parsed?.country ? [parsed.country] : (parsed?.getPossibleCountries() ?? [])
  return possible.some((country) => countries.includes(country))
}

/** A number as a phone shows it, in E.164 form as seen from `country`; what is none (a short code, a name) as it is. */
export function normalized(number: string, country: string): string {
  if (!isSupportedCountry(country)) return number
  const parsed = parsePhoneNumberFromString(number, { defaultCountry: country, extract: false })
  return parsed?.isPossible() ? parsed.number : number
}
