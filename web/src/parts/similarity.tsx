// How alike the layers are at a step: a square with a number for every pair.

import { ends } from "../bands"
import { shaded } from "../draw/colours"
import { valuesAt, type Measure } from "../model"
import { headName, number } from "../numbers"
import type { Theme } from "../theme"

interface Props {
  measure: Measure
  layers: string[]
  step: number
  theme: Theme
}

export function Similarity({ measure, layers, step, theme }: Props) {
  const values = valuesAt(measure, step)
  const size = measure.shape[1]
  // most of these scales go from 0 to 1: colours say where on the scale a pair is, not only which is more
  const [least, most] = ends(measure)
  const [low, high] = [Math.min(0, least), measure.unit === "nats" ? most : Math.max(1, most)]
  if (!values) return <p class="soft">nothing was measured up to this step</p>
  const between = (i: number, j: number) => (Number.isFinite(values[i * size + j]) ? values[i * size + j] : values[j * size + i])
  return (
    <div class="wide">
      <table class="matrix">
        <thead>
          <tr><td />{Array.from({ length: size }, (_, at) => <th key={at} scope="col" title={layers[at]}>{headName(at)}</th>)}</tr>
        </thead>
        <tbody>
          {Array.from({ length: size }, (_, i) => (
            <tr key={i}>
              <th scope="row" title={layers[i]}>{headName(i)}</th>
              {Array.from({ length: size }, (_, j) => <Cell key={j} value={i === j ? NaN : between(i, j)} low={low} high={high} theme={theme} />)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Cell({ value, low, high, theme }: { value: number; low: number; high: number; theme: Theme }) {
  if (!Number.isFinite(value)) return <td class="none">·</td>
  return <td style={shaded((value - low) / (high - low), theme)}>{number(value)}</td>
}
