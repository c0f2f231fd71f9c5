/** Minor digits of the currencies that do not have two (ISO 4217, list one); Intl has those of common use, which are others for many currencies. */
const minorDigitsBy: readonly (readonly [digits: number, currencies: string])[] = [
  [0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'],
  [3, 'BHD IQD JOD KWD LYD OMR TND'],
  [4, 'CLF UYW'],
]

const unusual = new Map(minorDigitsBy.flatMap(([digits, codes]) => codes.split(' ').map((code) => [code, digits] as const)))

/** How many digits the minor unit of a currency has (ISO 4217), in either case: 2 of `usd`, 0 of `jpy`, 3 of `kwd`. */
export function minorDigits(currency: string): number {
  return unusual.get(currency.toUpperCase()) ?? 2
}

/** An amount in minor units of a currency, for people: `$12.50`; null is any. */
export function moneyText(minor: number | null, currency: string): string {
  if (minor === null) return 'any amount'
  const digits = minorDigits(currency)
  const shown = { minimumFractionDigits: digits, maximumFractionDigits: digits }
  return new Intl.NumberFormat('en', { style: 'currency', currency, ...shown }).format(minor / 10 ** digits)
}
