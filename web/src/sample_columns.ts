// Which samples stand side by side, and what their scores mean.

import { lastIndexUpTo } from "./run_data"

/** Start of the names of scalars that are scores of samples. */
export const SCORE_PREFIX = "generation/"

export const MAX_COLUMNS = 4

export interface SampleColumn {
  step: number
  /** Why this step is shown: `first`, `middle`, `last`, `at the slider`, `chosen`, or `sample 2`. */
  role: string
}

/** Steps of an address, such as `90,180`. */
export function parseSteps(text: unknown): number[] {
  if (typeof text !== "string" && typeof text !== "number") return []
  return String(text)
    .split(",")
    .filter((part) => /^\d+$/.test(part))
    .map(Number)
}

/**
 * Samples to show, by step: all if there are few; else the first, the middle and the last one, or the
 * chosen ones, and the one at the slider.
 */
export function chooseSamples(
  steps: number[],
  chosen: number[],
  sliderStep: number | undefined,
): SampleColumn[] {
  if (!steps.length) return []
  const columns = new Map<number, string>()
  const known = chosen.filter((step) => steps.includes(step)).slice(0, MAX_COLUMNS)
  if (known.length) for (const step of known) columns.set(step, "chosen")
  else {
    if (steps.length <= MAX_COLUMNS)
      for (const [index, step] of steps.entries()) columns.set(step, `sample ${index + 1}`)
    else columns.set(steps[Math.floor((steps.length - 1) / 2)], "middle")
    columns.set(steps[0], "first")
    columns.set(steps[steps.length - 1], "last")
  }
  const atSlider = steps[Math.max(0, lastIndexUpTo(steps, sliderStep ?? Infinity))]
  if (!columns.has(atSlider) && columns.size < MAX_COLUMNS) columns.set(atSlider, "at the slider")
  return [...columns].map(([step, role]) => ({ step, role })).sort((a, b) => a.step - b.step)
}

/** Description of a score: that of the measure whose name it begins with; `distinct_3` is one of `distinct`. */
export function explainScore(name: string, descriptions: Record<string, string>): string {
  const score = name.slice(SCORE_PREFIX.length)
  if (score in descriptions) return descriptions[score]
  const measure = Object.keys(descriptions)
    .filter((key) => score.startsWith(key.replace(/s$/, "")))
    .sort((a, b) => b.length - a.length)[0]
  return measure === undefined ? "" : descriptions[measure]
}
