// Aggregation of curves over seeds: mean and standard error at the steps that all seeds have.

import { countPerStep, type Curve, type Group, type Measure, type Run } from "./run_data"

export interface Line {
  label: string
  steps: number[]
  values: (number | null)[]
  low?: (number | null)[]
  high?: (number | null)[]
}

export function aggregateSeeds(label: string, curves: Curve[]): Line {
  if (curves.length === 1) return { label, ...curves[0] }
  const valuesByStep = curves.map(
    (curve) => new Map(curve.steps.map((step, index) => [step, curve.values[index]])),
  )
  const steps = curves[0].steps.filter((step) => valuesByStep.every((values) => values.has(step)))
  const line: Required<Line> = {
    label: `${label} (${curves.length} seeds)`,
    steps,
    values: [],
    low: [],
    high: [],
  }
  for (const step of steps) {
    const present = valuesByStep
      .map((values) => values.get(step))
      .filter((value): value is number => typeof value === "number")
    if (present.length < valuesByStep.length) {
      for (const list of [line.values, line.low, line.high]) list.push(null)
      continue
    }
    const mean = present.reduce((sum, value) => sum + value, 0) / present.length
    const standardError = Math.sqrt(
      present.reduce((sum, value) => sum + (value - mean) ** 2, 0) /
        (present.length - 1) /
        present.length,
    )
    line.values.push(mean)
    line.low.push(mean - standardError)
    line.high.push(mean + standardError)
  }
  return line
}

/** One line per group of runs that have the curve; groups of several seeds get a band. */
export function aggregateGroups(
  groups: Group[],
  runs: Run[],
  getCurve: (run: Run) => Curve | null,
): Line[] {
  const lines: Line[] = []
  for (const group of groups) {
    const groupRuns = runs.filter((run) => group.runs.includes(run.id))
    const curves = groupRuns
      .map(getCurve)
      .filter((curve): curve is Curve => curve !== null && curve.steps.length > 0)
    if (curves.length) lines.push(aggregateSeeds(group.label, curves))
  }
  return lines
}

/** Mean of a measure over layers and heads at every step. */
export function averageMeasure(measure: Measure): Curve {
  const size = countPerStep(measure)
  const values = measure.steps.map((_, index) =>
    finiteMean(measure.values.subarray(index * size, (index + 1) * size)),
  )
  return { steps: measure.steps, values }
}

/** Mean of the finite values; null if there are none. */
export function finiteMean(values: ArrayLike<number>): number | null {
  let sum = 0
  let count = 0
  for (let index = 0; index < values.length; index++) {
    if (!Number.isFinite(values[index])) continue
    sum += values[index]
    count++
  }
  return count ? sum / count : null
}

/** Exponential moving average over about `span` points, bias-corrected; gaps stay gaps. */
export function smoothValues(values: (number | null)[], span: number): (number | null)[] {
  if (span <= 1) return values
  const decay = 1 - 1 / span
  let sum = 0
  let weight = 0
  return values.map((value) => {
    if (value === null) return null
    sum = decay * sum + value
    weight = decay * weight + 1
    return sum / weight
  })
}

/** Minimum and maximum over all steps, so that colours are comparable between steps. */
export function valueRange(measure: Measure): [number, number] {
  let [low, high] = [Infinity, -Infinity]
  for (const value of measure.values) {
    if (!Number.isFinite(value)) continue
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return low < high ? [low, high] : Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1]
}
