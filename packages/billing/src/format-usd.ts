const SIGNIFICANT_DIGITS = 3
const MOST_DECIMALS = 15

/**
 * An amount for people: cents from one dollar on, and below that as many decimals as three digits take, but at least two:
 * `$1,234.50`, `$0.50`, `$0.000023`.
 */
export function formatUsd(amount: number): string {
  const decimals = amount > 0 && amount < 1 ? SIGNIFICANT_DIGITS - 1 - Math.floor(Math.log10(amount)) : 2
  return dollars(amount, Math.min(decimals, MOST_DECIMALS))
}

/** A price as it was stated, with all its digits: `$0.0000166667`. */
export function formatPrice(usd: number): string {
  return dollars(usd, MOST_DECIMALS)
}

function dollars(amount: number, maximumFractionDigits: number): string {
  const format = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits })
  return `$${format.format(amount)}`
}
