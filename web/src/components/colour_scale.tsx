// Colour bar: the scale of a heatmap with its two ends.

import { formatGradient } from "../draw/colours"
import { formatNumber } from "../format"
import type { Theme } from "../theme"
import { isConstant, labelEnds } from "../ticks"

export function ColourScale({
  low,
  high,
  unit,
  theme,
  signed = false,
}: {
  low: string
  high: string
  unit: string
  theme: Theme
  signed?: boolean
}) {
  return (
    <span class="scale">
      <span>{low}</span>
      <i style={{ background: formatGradient(theme, signed) }} />
      <span>
        {high} {unit}
      </span>
    </span>
  )
}

/** Colour bar of a measure. `values`: its smallest and largest value; `range`: the ends of the colours. */
export function MeasureScale({
  values,
  range,
  unit,
  theme,
}: {
  values: [number, number]
  range: [number, number]
  unit: string
  theme: Theme
}) {
  if (isConstant(...values))
    return (
      <span class="scale">
        constant: {labelEnds(values[0], values[0])[0]} {unit}
      </span>
    )
  const [low, high] = labelEnds(...range)
  return <ColourScale low={low} high={high} unit={unit} theme={theme} />
}

/** Colour bar of attention maps, which use a square-root scale. `scale`: the largest |weight|. */
export function WeightScale({
  theme,
  signed,
  scale,
}: {
  theme: Theme
  signed: boolean
  scale: number
}) {
  if (!signed)
    return <ColourScale low="0" high="1" unit="weight; the middle is 0.25" theme={theme} />
  return (
    <ColourScale
      low={formatNumber(-scale)}
      high={formatNumber(scale)}
      unit="weight; the middle is 0"
      theme={theme}
      signed
    />
  )
}
