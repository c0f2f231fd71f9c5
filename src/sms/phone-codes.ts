import { getCountryCallingCode, isSupportedCountry, parsePhoneNumberFromString } from 'libphonenumber-js'

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

/** Digits that a short code has at most: no subscriber’s number is as short without its area. */
const shortCode = 6

/**
 * A number as a phone or modem writes it, in E.164 form as seen from `country`, also when it lacks the plus; what is none (a short code, a
 * name) as it is.
 */
export function normalized(number: string, country: string): string {
  if (!isSupportedCountry(country) || (!number.startsWith('+') && number.replace(/\D/g, '').length <= shortCode)) return number
  const national = parsePhoneNumberFromString(number, { defaultCountry: country, extract: false })
  const plusless = /^[1-9]\d+$/.test(number) ? parsePhoneNumberFromString(`+${number}`, { extract: false }) : undefined
  // shorter ones are rather an area of ours that looks like our calling code
  const own = number.length > 10 && plusless?.countryCallingCode === getCountryCallingCode(country)
  const readings = own ? [plusless, national] : [national, plusless]
  return (readings.find((one) => one?.isValid()) ?? readings.find((one) => one?.isPossible()))?.number ?? number
}
