// One row of attention weights as bars, beside the equal weights of a uniform head.

import type { FigureDefinition, FigureProps } from "../figure"
import { formatHead, formatInteger, formatNumber, formatToken } from "../format"
import { findRun } from "../components/linked_text"
import { useWidth } from "../components/use_width"
import { ViewLink } from "../components/view_link"
import { chooseTicks } from "../ticks"
import "../styles/findings.css"

interface RowsFigure {
  kind: "rows"
  run: string
  step: number
  layer: number
  head: number
  query: number
  query_label: string
  keys: string[]
  weights: number[]
  /** Keys that the query sees: a uniform head gives each 1 / key_count. */
  key_count: number
  relative_entropy: number
}

const [LEFT, RIGHT, TOP] = [48, 8, 20]
/** Smallest width of a bar with a label. */
const MIN_LABEL_WIDTH = 9

function Rows({ figure, runs, navigate, isCard }: FigureProps) {
  const {
    run: id,
    step,
    layer,
    head,
    query,
    query_label,
    keys,
    weights,
    key_count,
  } = figure as unknown as RowsFigure
  const run = findRun(id, runs)
  const [element, width] = useWidth(isCard ? 300 : 420)
  const uniform = 1 / Math.max(1, key_count)
  // the axis starts at 0 and shows four times the uniform weight at least: small differences stay small
  const highest = Math.max(4 * uniform, 1.1 * Math.max(...weights))
  const height = isCard ? 130 : 170
  const isRotated = keys.some((key) => formatToken(key).length > 1)
  const bottom = height - (isRotated ? 54 : 20)
  const barWidth = (width - LEFT - RIGHT) / Math.max(1, weights.length)
  const toY = (weight: number) => bottom - (weight / highest) * (bottom - TOP)
  const ticks = chooseTicks(0, highest, 3)
  const stride = Math.ceil(MIN_LABEL_WIDTH / barWidth)
  const route = run ? { pane: "attention", run: run.id, step, layer, head, query } : null
  return (
    <div class="figure-rows" ref={element}>
      <svg
        class="svg-plot"
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`weights of ${formatHead(layer, head)} from ${formatNumber(Math.min(...weights))} to ${formatNumber(Math.max(...weights))}; a uniform head has ${formatNumber(uniform)}`}
      >
        {ticks.values.map((value, index) => (
          <text key={value} class="tick" x={LEFT - 6} y={toY(value) + 4} text-anchor="end">
            {ticks.labels[index]}
          </text>
        ))}
        {weights.map((weight, key) => (
          <g key={key}>
            <title>{`${formatToken(keys[key])}: ${formatNumber(weight)}`}</title>
            <rect
              class="weight-bar"
              x={LEFT + key * barWidth}
              y={toY(weight)}
              width={Math.max(0.8, barWidth - (barWidth > 3 ? 1 : 0))}
              height={Math.max(0, bottom - toY(weight))}
            />
            {key % stride === 0 ? (
              <text
                class="tick token"
                transform={`translate(${LEFT + (key + 0.5) * barWidth + (isRotated ? 3.5 : 0)} ${bottom + (isRotated ? 6 : 14)})${isRotated ? " rotate(-90)" : ""}`}
                text-anchor={isRotated ? "end" : "middle"}
              >
                {shorten(formatToken(keys[key]))}
              </text>
            ) : null}
          </g>
        ))}
        <line
          class="uniform-line"
          x1={LEFT}
          x2={width - RIGHT}
          y1={toY(uniform)}
          y2={toY(uniform)}
        />
        <text class="mark-label" x={width - RIGHT} y={toY(uniform) - 5} text-anchor="end">
          uniform: 1 / {formatInteger(key_count)} = {formatNumber(uniform)}
        </text>
      </svg>
      <div class="figure-footer">
        <span class="muted">
          {route ? (
            <ViewLink route={route} navigate={navigate}>
              {formatHead(layer, head)}
            </ViewLink>
          ) : (
            formatHead(layer, head)
          )}
          , weights of query “{shorten(formatToken(query_label), 24)}” at step {formatInteger(step)}
          {weights.length < key_count
            ? `, the first ${weights.length} of ${formatInteger(key_count)} keys`
            : ""}
        </span>
      </div>
    </div>
  )
}

function shorten(token: string, length = 6): string {
  return token.length > length ? `${token.slice(0, length - 1)}…` : token
}

export default { component: Rows } satisfies FigureDefinition
