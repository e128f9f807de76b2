// Several seeds as one line: the mean at the steps that all of them have, and the standard error around it.

import { cells, type Curve, type Group, type Measure, type Run } from "./model"

export interface Line {
  label: string
  steps: number[]
  values: (number | null)[]
  low?: (number | null)[]
  high?: (number | null)[]
}

export function band(label: string, curves: Curve[]): Line {
  if (curves.length === 1) return { label, ...curves[0] }
  const tables = curves.map((one) => new Map(one.steps.map((step, at) => [step, one.values[at]])))
  const steps = curves[0].steps.filter((step) => tables.every((one) => one.has(step)))
  const line: Required<Line> = { label: `${label} (${curves.length} seeds)`, steps, values: [], low: [], high: [] }
  for (const step of steps) {
    const known = tables.map((one) => one.get(step)).filter((one): one is number => typeof one === "number")
    if (known.length < tables.length) {
      for (const list of [line.values, line.low, line.high]) list.push(null)
      continue
    }
    const mean = known.reduce((sum, one) => sum + one, 0) / known.length
    const error = Math.sqrt(known.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (known.length - 1) / known.length)
    line.values.push(mean)
    line.low.push(mean - error)
    line.high.push(mean + error)
  }
  return line
}

/** A line for every group of runs that have the curve: one with a band for seeds, one for a run alone. */
export function lines(groups: Group[], runs: Run[], curve: (run: Run) => Curve | null): Line[] {
  const found: Line[] = []
  for (const group of groups) {
    const own = runs.filter((run) => group.runs.includes(run.id))
    const curves = own.map(curve).filter((one): one is Curve => one !== null && one.steps.length > 0)
    if (curves.length) found.push(band(group.label, curves))
  }
  return found
}

/** A measure averaged over all of its numbers at a step. */
export function meanOf(measure: Measure): Curve {
  const size = cells(measure)
  const values = measure.steps.map((_, at) => mean(measure.values.subarray(at * size, (at + 1) * size)))
  return { steps: measure.steps, values }
}

/** Over what is a number; null where nothing is. */
export function mean(values: ArrayLike<number>): number | null {
  let sum = 0
  let count = 0
  for (let at = 0; at < values.length; at++) {
    if (!Number.isFinite(values[at])) continue
    sum += values[at]
    count++
  }
  return count ? sum / count : null
}

/** An exponential average over about `reach` points; what is missing stays missing. */
export function smoothed(values: (number | null)[], reach: number): (number | null)[] {
  if (reach <= 1) return values
  const keep = 1 - 1 / reach
  let sum = 0
  let weight = 0
  return values.map((one) => {
    if (one === null) return null
    sum = keep * sum + one
    weight = keep * weight + 1
    return sum / weight
  })
}

/** The two ends of a measure over all steps, so that colours mean the same at every step. */
export function ends(measure: Measure): [number, number] {
  let [low, high] = [Infinity, -Infinity]
  for (const value of measure.values) {
    if (!Number.isFinite(value)) continue
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return low < high ? [low, high] : Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1]
}
