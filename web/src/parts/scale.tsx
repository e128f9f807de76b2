// What the colours of a picture mean: the scale with its two ends.

import { gradient } from "../draw/colours"
import type { Theme } from "../theme"

export function Scale({ low, high, unit, theme }: { low: string; high: string; unit: string; theme: Theme }) {
  return <span class="scale"><span>{low}</span><i style={{ background: gradient(theme) }} /><span>{high} {unit}</span></span>
}

/** Of attention maps, which are drawn on a square-root scale. */
export function WeightScale({ theme }: { theme: Theme }) {
  return <Scale low="0" high="1" unit="weight; the middle is 0.25" theme={theme} />
}
