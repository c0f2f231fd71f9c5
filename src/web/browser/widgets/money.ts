/** How many digits the minor unit of a currency has (ISO 4217): 2 of `usd`, 0 of `jpy`. */
export function minorDigits(currency: string): number {
  return formatOf(currency).resolvedOptions().maximumFractionDigits ?? 2
}

/** An amount in minor units for people: `$12.50`. */
export function money(minor: number, currency: string): string {
  return formatOf(currency).format(minor / 10 ** minorDigits(currency))
}

/** A typed amount, `12.50`, in minor units; NaN for an invalid one. */
export function minorUnits(text: string, currency: string): number {
  return text.trim() === '' ? Number.NaN : Math.round(Number(text) * 10 ** minorDigits(currency))
}

/** An amount in minor units as typed in a form. */
export function typedAmount(minor: number, currency: string): string {
  const digits = minorDigits(currency)
  return (minor / 10 ** digits).toFixed(digits)
}

function formatOf(currency: string): Intl.NumberFormat {
  return new Intl.NumberFormat('en', { style: 'currency', currency })
}
