// Colour bar: the scale of a heatmap with its two ends.

import { formatGradient } from "../draw/colours"
import type { Theme } from "../theme"

export function ColourScale({
  low,
  high,
  unit,
  theme,
}: {
  low: string
  high: string
  unit: string
  theme: Theme
}) {
  return (
    <span class="scale">
      <span>{low}</span>
      <i style={{ background: formatGradient(theme) }} />
      <span>
        {high} {unit}
      </span>
    </span>
  )
}

/** Colour bar of attention maps, which use a square-root scale. */
export function WeightScale({ theme }: { theme: Theme }) {
  return <ColourScale low="0" high="1" unit="weight; the middle is 0.25" theme={theme} />
}
