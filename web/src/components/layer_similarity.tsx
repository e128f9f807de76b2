// Similarity of every pair of layers at one step, as a matrix.

import { valueRange } from "../aggregation"
import { shadeCell } from "../draw/colours"
import { valuesAtStep, type Measure } from "../run_data"
import { formatHead, formatNumber } from "../format"
import type { Theme } from "../theme"
import { widenColourRange } from "../ticks"
import { MeasureScale } from "./colour_scale"

interface Props {
  measure: Measure
  layers: string[]
  step: number
  theme: Theme
}

export function LayerSimilarity({ measure, layers, step, theme }: Props) {
  const values = valuesAtStep(measure, step)
  const size = measure.shape[1]
  const [min, max] = valueRange(measure)
  if (!values || size < 2 || !(min <= max))
    return <p class="muted">{values ? "no pair of layers" : "no values up to this step"}</p>
  // most of these measures are within 0 … 1: colour the value on that scale, not relative to the others
  const [low, high] = widenColourRange(
    Math.min(0, min),
    measure.unit === "nats" ? max : Math.max(1, max),
    measure.unit,
  )
  const findValue = (i: number, j: number) =>
    Number.isFinite(values[i * size + j]) ? values[i * size + j] : values[j * size + i]
  return (
    <>
      <MeasureScale values={[low, high]} range={[low, high]} unit={measure.unit} theme={theme} />
      <div class="scroll-x">
        <table class="matrix">
          <thead>
            <tr>
              <td />
              {Array.from({ length: size }, (_, layer) => (
                <th key={layer} scope="col" title={layers[layer]}>
                  {formatHead(layer)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Array.from({ length: size }, (_, i) => (
              <tr key={i}>
                <th scope="row" title={layers[i]}>
                  {formatHead(i)}
                </th>
                {Array.from({ length: size }, (_, j) => (
                  <Cell
                    key={j}
                    value={i === j ? NaN : findValue(i, j)}
                    low={low}
                    high={high}
                    theme={theme}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function Cell({
  value,
  low,
  high,
  theme,
}: {
  value: number
  low: number
  high: number
  theme: Theme
}) {
  if (!Number.isFinite(value)) return <td class="empty">·</td>
  return <td style={shadeCell((value - low) / (high - low), theme)}>{formatNumber(value)}</td>
}
