// Ticks of axes and ends of colour bars: positions, and labels that neither repeat nor hide digits.
//
// A label has as many digits as the spacing of its axis needs. Where a range is tiny against its
// magnitude, the common part of the numbers is the offset of the axis ("2.63") and the labels are what
// comes on top of it ("+2e-10"); a label and its offset add up to the number.

export interface Ticks {
  values: number[]
  labels: string[]
  /** What is added to every label that begins with "+"; "" if there is nothing to add. */
  offset: string
}

/** Significant digits of a label. With more of them the axis has an offset. */
const MAX_DIGITS = 6
/** Width of the smallest range, relative to its magnitude: a double has 16 digits, ticks need a few of them. */
const MIN_RELATIVE_RANGE = 1e-12
/** Above and below the values, as a share of their range. */
const PADDING = 0.06
/** Half of the range around a single value, relative to the value. */
const CONSTANT_PADDING = 0.1

/** Range of an axis: the values, with a margin that does not cross 0. A constant is in the middle. */
export function padRange(low: number, high: number, isLog = false): [number, number] {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return isLog ? [0.1, 10] : [0, 1]
  const magnitude = Math.max(Math.abs(low), Math.abs(high))
  if (isLog) {
    const margin = low === high ? 2 : Math.max((high / low) ** PADDING, 1 + MIN_RELATIVE_RANGE)
    return [low / margin, high * margin]
  }
  if (low === high) {
    const half = magnitude * CONSTANT_PADDING || 1
    return [low - half, high + half]
  }
  const width = Math.max(high - low, magnitude * MIN_RELATIVE_RANGE)
  const middle = low / 2 + high / 2
  const half = width * (0.5 + PADDING)
  return [
    low >= 0 ? Math.max(0, middle - half) : middle - half,
    high <= 0 ? Math.min(0, middle + half) : middle + half,
  ]
}

/** About `count` ticks, at most 1.5 times as many, at multiples of 1, 2 or 5 times a power of ten; at least two. */
export function chooseTicks(low: number, high: number, count: number): Ticks {
  const { multiples, spacing } = chooseMultiples(low, high, Math.max(2, count))
  return { values: multiples.map(spacing.toValue), ...labelMultiples(multiples, spacing) }
}

/** Ticks of a logarithmic axis. Within less than a decade they are those of a linear one. */
export function chooseLogTicks(
  low: number,
  high: number,
  count: number,
  chooseLinear = chooseTicks,
): Ticks {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)]
  const decades = last - first
  for (const mantissas of [[1, 2, 5], [1, 3], [1]]) {
    const values: number[] = []
    for (let exponent = first - 1; exponent <= last; exponent++)
      for (const mantissa of mantissas) {
        const value = Number(`${mantissa}e${exponent}`)
        if (value >= low && value <= high) values.push(value)
      }
    const isLast = mantissas.length === 1
    if (values.length > count && !isLast) continue
    // within a decade or two, few of these are inside: linear ticks say more
    if (values.length < (high / low >= 100 ? 2 : 3)) continue
    const stride = isLast ? Math.max(1, Math.ceil(decades / Math.max(1, count))) : 1
    const shown = values.filter((_, index) => index % stride === 0)
    if (shown.length > 1) return { values: shown, labels: shown.map(formatPower), offset: "" }
  }
  return chooseLinear(low, high, count)
}

/** Ticks of an axis of steps: whole numbers, in thousands or millions where they are large. */
export function chooseStepTicks(low: number, high: number, count: number): Ticks {
  const { multiples, spacing } = chooseMultiples(low, high, Math.max(2, count), 0)
  const values = multiples.map(spacing.toValue)
  const largest = Math.max(...values.map(Math.abs))
  const unit = STEP_UNITS.find(([size]) => largest >= Math.max(size, 1e4))
  if (unit && countDigits(largest, spacing.exponent) <= MAX_DIGITS) {
    const scaled = { ...spacing, exponent: spacing.exponent - Math.log10(unit[0]) }
    const labels = multiples.map((multiple) => formatMultiple(multiple, scaled))
    return {
      values,
      labels: labels.map((label) => (label === "0" ? label : label + unit[1])),
      offset: "",
    }
  }
  return { values, ...labelMultiples(multiples, spacing) }
}

const STEP_UNITS: [size: number, suffix: string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
]

/** Two numbers with at least three digits, and two of their difference; equal numbers have one text. */
export function labelEnds(low: number, high: number): [string, string] {
  const magnitude = Math.max(Math.abs(low), Math.abs(high))
  const digits = high > low ? countDigits(magnitude, Math.floor(Math.log10(high - low))) + 1 : 3
  const format = (value: number) => formatDigits(value, Math.min(16, Math.max(3, digits)))
  return [format(low), format(high)]
}

/** A number with the digits that a range of this width needs, at least four. */
export function formatReading(value: number, range: number): string {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : "NaN"
  const digits = range > 0 ? countDigits(Math.abs(value), Math.floor(Math.log10(range)) - 2) : 4
  return formatDigits(value, Math.min(16, Math.max(4, digits)))
}

/** Smallest range of colours by unit: what is less is not worth a colour. */
const MIN_COLOUR_RANGES: Record<string, number> = {
  share: 0.01,
  ratio: 0.01,
  nats: 0.01,
  bits: 0.01,
  positions: 0.1,
  keys: 0.1,
}
/** The same relative to the largest magnitude: numbers are shown with three digits, and what these do not show is not coloured. */
const MIN_RELATIVE_COLOUR_RANGE = 0.01

/** Range of a colour scale: the values, but never so narrow that rounding errors use the whole scale. */
export function widenColourRange(low: number, high: number, unit = ""): [number, number] {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1]
  const magnitude = Math.max(Math.abs(low), Math.abs(high))
  const smallest = Math.max(
    magnitude * MIN_RELATIVE_COLOUR_RANGE,
    MIN_COLOUR_RANGES[unit] ?? (magnitude === 0 ? 1 : 0),
  )
  if (high - low >= smallest) return [low, high]
  const start = (low + high - smallest) / 2
  return low >= 0 && start < 0 ? [0, smallest] : [start, start + smallest]
}

/** Whether values differ by no more than 32-bit rounding. */
export function isConstant(low: number, high: number): boolean {
  return high - low <= 1e-6 * Math.max(Math.abs(low), Math.abs(high))
}

/** The distance of ticks: `mantissa` · 10^`exponent`. Ticks are its multiples, which are exact. */
interface Spacing {
  mantissa: number
  exponent: number
  toValue: (multiple: number) => number
}

function chooseMultiples(
  low: number,
  high: number,
  count: number,
  minExponent = -Infinity,
): { multiples: number[]; spacing: Spacing } {
  const width = high - low
  const target = width / count
  let exponent = Math.floor(Math.log10(target))
  let mantissa = [1, 2, 5, 10].find((m) => Number(`${m}e${exponent}`) >= target * 0.7) ?? 10
  for (;;) {
    if (mantissa === 10) [mantissa, exponent] = [1, exponent + 1]
    if (exponent < minExponent) [mantissa, exponent] = [1, minExponent]
    const spacing = makeSpacing(mantissa, exponent)
    const size = spacing.toValue(1)
    const first = Math.ceil(low / size - 1e-9)
    const last = Math.floor(high / size + 1e-9)
    if (last > first || exponent <= minExponent || !(width > 0)) {
      const multiples = Array.from(
        { length: Math.max(1, Math.min(100, last - first + 1)) },
        (_, index) => first + index,
      )
      return { multiples, spacing }
    }
    // fewer than two ticks inside the range: the next smaller spacing
    if (mantissa === 5) mantissa = 2
    else if (mantissa === 2) mantissa = 1
    else [mantissa, exponent] = [5, exponent - 1]
  }
}

function makeSpacing(mantissa: number, exponent: number): Spacing {
  // parsed as decimals, so that 3 · 0.1 is 0.3
  const toValue = (multiple: number) => Number(`${multiple * mantissa}e${exponent}`)
  return { mantissa, exponent, toValue }
}

function labelMultiples(multiples: number[], spacing: Spacing): Omit<Ticks, "values"> {
  const largest = Math.max(...multiples.map((multiple) => Math.abs(spacing.toValue(multiple))))
  if (countDigits(largest, spacing.exponent) <= MAX_DIGITS)
    return { labels: multiples.map((multiple) => formatMultiple(multiple, spacing)), offset: "" }
  // the offset ends where the range begins: 2.6300000002 … 2.630000001 is 2.63 and 2e-10 … 1e-9
  const range = multiples[multiples.length - 1] - multiples[0]
  const block = 10 ** Math.ceil(Math.log10(Math.max(1, range * spacing.mantissa)))
  const start = Math.floor((multiples[0] * spacing.mantissa) / block) * block
  const relative = { ...makeSpacing(1, spacing.exponent) }
  const labels = multiples.map(
    (multiple) => `+${formatMultiple(multiple * spacing.mantissa - start, relative)}`,
  )
  return { labels, offset: formatExact(start, spacing.exponent) }
}

/** Digits from the first of `value` to the last that the spacing changes. */
function countDigits(value: number, exponent: number): number {
  return value === 0 ? 1 : Math.floor(Math.log10(value) + 1e-9) - exponent + 1
}

/** A multiple of a spacing, written with the digits of the spacing: `0.50`, `1.5e12`. */
function formatMultiple(multiple: number, { mantissa, exponent }: Spacing): string {
  const units = multiple * mantissa
  if (units === 0) return "0"
  const value = Number(`${units}e${exponent}`)
  const magnitude = Math.abs(value)
  const digits = countDigits(magnitude, exponent)
  if (magnitude < 1e6 && exponent >= -5) return setMinus(value.toFixed(Math.max(0, -exponent)))
  return shortenExponent(value.toExponential(Math.max(0, Math.min(20, digits - 1))))
}

/** units · 10^exponent without rounding, in decimals where they are readable. */
function formatExact(units: number, exponent: number): string {
  if (units === 0) return "0"
  const value = Number(`${units}e${exponent}`)
  const digits = String(Math.abs(units)).replace(/0+$/, "").length
  const magnitude = Math.abs(value)
  if (Number.isInteger(value) && magnitude < 1e15) return setMinus(value.toLocaleString("en-US"))
  if (magnitude >= 1e-4 && magnitude < 1e15)
    return setMinus(value.toFixed(Math.max(0, Math.min(20, -exponent))).replace(/\.?0+$/, ""))
  return shortenExponent(value.toExponential(Math.max(0, Math.min(16, digits - 1))))
}

/** A number of one digit times a power of ten. */
function formatPower(value: number): string {
  return value >= 1e-4 && value < 1e6
    ? setMinus(String(value))
    : shortenExponent(value.toExponential(0))
}

function formatDigits(value: number, digits: number): string {
  if (value === 0) return "0"
  const magnitude = Math.abs(value)
  if (Number.isInteger(value) && magnitude < 1e6) return setMinus(value.toLocaleString("en-US"))
  if (magnitude < 1e-4 || magnitude >= 1e6) return shortenExponent(value.toExponential(digits - 1))
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(magnitude)))
  return setMinus(value.toFixed(decimals))
}

function shortenExponent(text: string): string {
  return setMinus(text.replace("e+", "e"))
}

function setMinus(text: string): string {
  return text.replaceAll("-", "−")
}

/**
 * Smallest and largest value of some lines between `from` and `to`, where they enter and leave
 * included; undefined is a step that a line does not have. Null if nothing is there.
 */
export function findShownRange(
  steps: ArrayLike<number>,
  lines: ArrayLike<number | null | undefined>[],
  [from, to]: [number, number],
): [low: number, high: number] | null {
  let [low, high] = [Infinity, -Infinity]
  const include = (value: number) => {
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  for (const line of lines) {
    let before: [step: number, value: number] | null = null
    for (let index = 0; index < steps.length; index++) {
      const [step, value] = [steps[index], line[index]]
      if (value === undefined) continue
      if (value !== null) {
        if (step >= from && step <= to) include(value)
        if (before)
          for (const edge of [from, to])
            if (before[0] < edge && edge < step)
              include(before[1] + ((value - before[1]) * (edge - before[0])) / (step - before[0]))
      }
      before = value === null ? null : [step, value]
    }
  }
  return low <= high ? [low, high] : null
}
