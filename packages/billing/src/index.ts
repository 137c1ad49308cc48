export { formatPrice, formatUsd } from './format-usd.ts'
export { METERS, type Meter, type MeterName } from './meter.ts'
export { addBills, priceUsage, sumUsage, type Bill, type BillLine } from './price-usage.ts'
export {
  checkRateCard,
  isRateCardName,
  RATE_CARD_NAMES,
  rateCard,
  readRateCard,
  type Price,
  type RateCard,
  type RateCardName,
} from './rate-card.ts'
