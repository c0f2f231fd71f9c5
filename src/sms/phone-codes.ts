import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

// loaded with the first number
const phones = (): typeof import('libphonenumber-js') => require('libphonenumber-js') as typeof import('libphonenumber-js')

/** True if an E.164 number is possible: it has as many digits as numbers of its country. */
export function isPossible(number: string): boolean {
  return phones().parsePhoneNumberFromString(number, { extract: false })?.isPossible() ?? false
}

/** True if the number is from one of these countries; with a shared calling code and no distinguishing area code, from any country of that code. */
export function isOf(number: string, countries: readonly string[]): boolean {
  const parsed = phones().parsePhoneNumberFromString(number, { extract: false })
  const possible: readonly string[] = parsed?.country ? [parsed.country] : (parsed?.getPossibleCountries() ?? [])
  return possible.some((country) => countries.includes(country))
}

/** The most digits of a short code: no subscriber number is as short without its area code. */
const shortCode = 6

/** Normalizes a number to E.164 as dialled from `country`, also without the plus; short codes and names are returned unchanged. */
export function normalized(number: string, country: string): string {
  const { getCountryCallingCode, isSupportedCountry, parsePhoneNumberFromString } = phones()
  if (!isSupportedCountry(country) || (!number.startsWith('+') && number.replace(/\D/g, '').length <= shortCode)) return number
  const national = parsePhoneNumberFromString(number, { defaultCountry: country, extract: false })
  const plusless = /^[1-9]\d+$/.test(number) ? parsePhoneNumberFromString(`+${number}`, { extract: false }) : undefined
  // shorter ones are more likely a domestic area code that equals the calling code
  const own = number.length > 10 && plusless?.countryCallingCode === getCountryCallingCode(country)
  const readings = own ? [plusless, national] : [national, plusless]
  return (readings.find((one) => one?.isValid()) ?? readings.find((one) => one?.isPossible()))?.number ?? number
}
