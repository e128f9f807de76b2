// One measure at one snapshot: a table of layers and heads, coloured by value.

import { colourRange, valueRange } from "../aggregation"
import { shadeCell } from "../draw/colours"
import { ExportMenu } from "../export"
import { formatHead, formatName, formatNumber } from "../format"
import type { Measure, Run } from "../run_data"
import type { Theme } from "../theme"
import { useRef } from "preact/hooks"
import { MeasureScale } from "./colour_scale"

interface Props {
  name: string
  measure: Measure
  run: Run
  theme: Theme
  selected: [layer: number, head: number]
  onSelect: (layer: number, head: number) => void
}

export function MeasureTable({ name, measure, run, theme, selected, onSelect }: Props) {
  const figure = useRef<HTMLElement>(null)
  const layers = measure.shape[1]
  const isByHead = measure.axes === "head"
  const heads = isByHead ? measure.shape[2] : 1
  const [low, high] = colourRange(measure)
  const title = `${formatName(name)} of every ${isByHead ? "head" : "layer"}`
  const read = (layer: number, head: number) => measure.values[layer * heads + head]
  return (
    <figure class="measure-table" ref={figure}>
      <figcaption>
        <b title={measure.description} class="term">
          {title}
        </b>
        <MeasureScale
          values={valueRange(measure)}
          range={[low, high]}
          unit={measure.unit}
          theme={theme}
        />
        <ExportMenu
          name={`${name} of heads`}
          picture={() => figure.current}
          csv={() => ({
            head: ["layer", "head", name],
            rows: Array.from({ length: layers * heads }, (_, index) => [
              Math.floor(index / heads),
              isByHead ? index % heads : null,
              measure.values[index],
            ]),
          })}
        />
      </figcaption>
      <div class="scroll-x">
        <table class="matrix">
          {isByHead ? (
            <thead>
              <tr>
                <td />
                {Array.from({ length: heads }, (_, head) => (
                  <th key={head} scope="col">
                    h{head}
                  </th>
                ))}
              </tr>
            </thead>
          ) : null}
          <tbody>
            {Array.from({ length: layers }, (_, layer) => (
              <tr key={layer}>
                <th scope="row" title={run.layers[layer]}>
                  {formatHead(layer)}
                </th>
                {Array.from({ length: heads }, (_, head) => {
                  const value = read(layer, head)
                  if (!Number.isFinite(value))
                    return (
                      <td key={head} class="empty">
                        ·
                      </td>
                    )
                  const isSelected = isByHead && layer === selected[0] && head === selected[1]
                  return (
                    <td
                      key={head}
                      class={isSelected ? "cell selected" : "cell"}
                      style={shadeCell((value - low) / (high - low), theme)}
                      title={`${isByHead ? formatHead(layer, head) : formatHead(layer)}: ${value} ${measure.unit}`}
                      onClick={() => onSelect(layer, head)}
                    >
                      {formatNumber(value)}
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  )
}
