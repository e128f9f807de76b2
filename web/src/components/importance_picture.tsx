// Importance of all heads at all measured steps: a row per head, the most important one first, a column
// per step, below the curve of the loss. Marks: since when a head
// has its role, since when it is necessary and has half of its importance, and which head took over from which.

import { useLayoutEffect, useRef, useState } from "preact/hooks"

import { drawValues, findCell } from "../draw/heatmap"
import { formatHead, formatInteger } from "../format"
import { isRole, type HeadIndex } from "../head_selection"
import {
  cellIndex,
  countDecimals,
  currentColumn,
  findColumn,
  formatChange,
  formatEstimate,
  type ClassValues,
  type Importance,
} from "../importance_data"
import type { Navigate } from "../route"
import type { Run } from "../run_data"
import type { Theme } from "../theme"
import { chooseTicks, padRange } from "../ticks"
import { ColourScale } from "./colour_scale"
import { useWidth } from "./use_width"
import { ViewLink } from "./view_link"
import "../styles/importance.css"

interface Props {
  importance: Importance
  values: ClassValues
  heads: HeadIndex[]
  run: Run
  step: number | undefined
  selected: HeadIndex
  theme: Theme
  navigate: Navigate
}

const LOSS_HEIGHT = 84
const [MIN_ROW, MAX_ROW, ROWS_HEIGHT] = [15, 24, 560]
const STEP_LABEL_WIDTH = 44

export function ImportancePicture(props: Props) {
  const { importance, values, heads, run, step, selected, theme, navigate } = props
  const [element, width] = useWidth(600)
  const rowHeight = Math.max(MIN_ROW, Math.min(MAX_ROW, ROWS_HEIGHT / heads.length))
  const current = currentColumn(importance, step)
  const limit = findLimit(importance, values)
  const columnWidth = width / importance.steps.length
  const toX = (column: number) => (column + 0.5) * columnWidth
  return (
    <div class="importance-picture">
      <div class="importance-legend">
        <ColourScale
          low={`−${limit.toPrecision(2)}`}
          high={limit.toPrecision(2)}
          unit={`${importance.unit}, by its square root`}
          theme={theme}
          signed
        />
        <span>
          <MarkKey kind="role" /> role since
        </span>
        <span>
          <MarkKey kind="necessary" /> necessary since
        </span>
        <span>
          <MarkKey kind="half" /> half of its importance since
        </span>
        {importance.takeovers.length ? (
          <span>
            <MarkKey kind="takeover" /> took over
          </span>
        ) : null}
      </div>
      <div class="importance-grid">
        <span class="importance-axis">{importance.metric}</span>
        <div ref={element}>
          <LossCurve
            importance={importance}
            width={width}
            toX={toX}
            current={current}
            onColumn={(column) => navigate({ step: importance.steps[column] }, { replace: true })}
          />
        </div>
        <ol class="importance-heads">
          {heads.map(([layer, head]) => {
            const role = run.roles?.[layer]?.[head]
            const isSelected = layer === selected[0] && head === selected[1]
            return (
              <li
                key={`${layer} ${head}`}
                class={isSelected ? "selected" : ""}
                style={{ height: `${rowHeight}px` }}
              >
                {isRole(role) ? <span class="importance-role">{role}</span> : null}
                <HeadName run={run} step={step} head={[layer, head]} navigate={navigate} />
              </li>
            )
          })}
        </ol>
        <Cells
          {...props}
          rowHeight={rowHeight}
          width={width}
          limit={limit}
          current={current}
          toX={toX}
        />
        <span class="importance-axis">step</span>
        <StepAxis steps={importance.steps} toX={toX} width={width} current={current} />
      </div>
    </div>
  )
}

/** The name of a head: a link to its attention, if the page has maps of it. */
export function HeadName({
  run,
  step,
  head: [layer, head],
  navigate,
}: Pick<Props, "run" | "step" | "navigate"> & { head: HeadIndex }) {
  const name = formatHead(layer, head)
  if (!run.map_steps.length) return <b>{name}</b>
  return (
    <ViewLink
      route={{ pane: "attention", run: run.id, step, layer, head }}
      navigate={navigate}
      class="link"
      title={`attention of ${name}`}
    >
      {name}
    </ViewLink>
  )
}

interface CellsProps extends Props {
  rowHeight: number
  width: number
  limit: number
  current: number
  toX: (column: number) => number
}

function Cells({
  importance,
  values,
  heads,
  run,
  selected,
  theme,
  navigate,
  rowHeight,
  width,
  limit,
  current,
  toX,
}: CellsProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [hovered, setHovered] = useState<[row: number, column: number] | null>(null)
  const columns = importance.steps.length
  const headKey = heads.join(" ")
  useLayoutEffect(() => {
    const cells = new Float32Array(heads.length * columns)
    heads.forEach((head, row) => {
      for (let column = 0; column < columns; column++) {
        const change = values.change[cellIndex(importance, column, head)]
        // the colours are linear; the root lets small changes be seen beside large ones
        cells[row * columns + column] = Math.sign(change) * Math.sqrt(Math.abs(change) / limit)
      }
    })
    drawValues(canvas.current!, cells, heads.length, columns, 1, theme)
  }, [values, headKey, theme, limit])
  const height = rowHeight * heads.length
  const findHovered = (event: MouseEvent) => findCell(event, canvas.current!, heads.length, columns)
  const selectedRow = heads.findIndex(
    ([layer, head]) => layer === selected[0] && head === selected[1],
  )
  const columnWidth = width / columns
  const toY = (row: number) => (row + 0.5) * rowHeight
  const rowOf = ([layer, head]: HeadIndex) =>
    heads.findIndex((other) => other[0] === layer && other[1] === head)
  return (
    <div class="importance-cells" style={{ height: `${height}px` }}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`importance of ${heads.length} heads at ${columns} steps; the table below has the numbers`}
        onClick={(event) => {
          const [row, column] = findHovered(event)
          const [layer, head] = heads[row]
          navigate({ layer, head, step: importance.steps[column] }, { replace: true })
        }}
        onMouseMove={(event) => setHovered(findHovered(event))}
        onMouseLeave={() => setHovered(null)}
      />
      <svg width={width} height={height} aria-hidden="true">
        <rect
          class="importance-step"
          x={current * columnWidth}
          y={0}
          width={columnWidth}
          height={height}
        />
        {selectedRow >= 0 ? (
          <rect
            class="importance-row"
            x={0}
            y={selectedRow * rowHeight}
            width={width}
            height={rowHeight}
          />
        ) : null}
        {importance.takeovers.map(({ earlier, later, step }) => {
          const [from, to] = [rowOf(earlier), rowOf(later)]
          const column = findColumn(importance, step)
          if (from < 0 || to < 0 || column === null) return null
          return (
            <Arrow
              key={`${earlier} ${later}`}
              x={column * columnWidth}
              from={toY(from)}
              to={toY(to)}
            />
          )
        })}
        {heads.map(([layer, head], row) => {
          const role = findColumn(importance, run.role_onsets?.[layer]?.[head])
          const onset = findColumn(importance, importance.onsets[layer]?.[head])
          const half = findColumn(importance, importance.half_onsets[layer]?.[head])
          // in one cell, beside each other
          const shift = (column: number) => (column === role ? 5 : 0)
          const isShared = role !== null && (role === onset || role === half)
          return (
            <g key={`${layer} ${head}`}>
              {role === null ? null : (
                <Mark kind="role" x={toX(role) - (isShared ? 5 : 0)} y={toY(row)} />
              )}
              {onset === null || onset === half ? null : (
                <Mark kind="necessary" x={toX(onset) + shift(onset)} y={toY(row)} />
              )}
              {half === null ? null : <Mark kind="half" x={toX(half) + shift(half)} y={toY(row)} />}
            </g>
          )
        })}
      </svg>
      {hovered ? (
        <Tooltip
          importance={importance}
          values={values}
          head={heads[hovered[0]]}
          role={run.roles?.[heads[hovered[0]][0]]?.[heads[hovered[0]][1]]}
          column={hovered[1]}
          x={toX(hovered[1])}
          y={(hovered[0] + 1) * rowHeight}
          width={width}
        />
      ) : null}
    </div>
  )
}

function Tooltip({
  importance,
  values,
  head,
  role,
  column,
  x,
  y,
  width,
}: {
  importance: Importance
  values: ClassValues
  head: HeadIndex
  role: string | undefined
  column: number
  x: number
  y: number
  width: number
}) {
  const index = cellIndex(importance, column, head)
  const isLeft = x < width / 2
  return (
    <div
      class="importance-tip"
      role="status"
      data-export="omit"
      style={{
        top: `${y + 4}px`,
        ...(isLeft ? { left: `${x}px` } : { right: `${width - x}px` }),
      }}
    >
      <b>{formatHead(...head)}</b>
      {isRole(role) ? `, ${role}` : ""}, step {formatInteger(importance.steps[column])}
      <br />
      <b>{formatChange(values.change[index], values.se[index], importance.unit)}</b>
      {values.gradient ? (
        <>
          <br />
          <span class="muted">
            gradient estimate{" "}
            {formatEstimate(values.gradient[index], countDecimals(values.se[index]))}
          </span>
        </>
      ) : null}
    </div>
  )
}

type MarkKind = "role" | "necessary" | "half"

function Mark({ kind, x, y }: { kind: MarkKind; x: number; y: number }) {
  return kind === "role" ? (
    <circle class="importance-mark" cx={x} cy={y} r={4} />
  ) : (
    <path
      class={kind === "half" ? "importance-mark filled" : "importance-mark diamond"}
      d={`M${x} ${y - 5}L${x + 5} ${y}L${x} ${y + 5}L${x - 5} ${y}Z`}
    />
  )
}

/** From the row of the head that ends to that of the head that begins. */
function Arrow({ x, from, to }: { x: number; from: number; to: number }) {
  const direction = Math.sign(to - from)
  const tip = to - direction * 3
  return (
    <g class="importance-arrow">
      <line class="halo" x1={x} x2={x} y1={from} y2={tip} />
      <line x1={x} x2={x} y1={from} y2={tip} />
      <path d={`M${x} ${tip}L${x - 4} ${tip - direction * 7}L${x + 4} ${tip - direction * 7}Z`} />
    </g>
  )
}

function MarkKey({ kind }: { kind: MarkKind | "takeover" }) {
  return (
    <svg width={14} height={14} aria-hidden="true">
      {kind === "takeover" ? <Arrow x={7} from={0} to={15} /> : <Mark kind={kind} x={7} y={7} />}
    </svg>
  )
}

/** Loss at the measured steps, over their columns, and the loss of guessing by frequencies. */
function LossCurve({
  importance,
  width,
  toX,
  current,
  onColumn,
}: {
  importance: Importance
  width: number
  toX: (column: number) => number
  current: number
  onColumn: (column: number) => void
}) {
  const { loss, chance_loss: chance } = importance
  const finite = loss.filter((value): value is number => value !== null)
  const [low, high] = padRange(Math.min(...finite), Math.max(...finite, chance ?? -Infinity))
  const [top, bottom] = [6, LOSS_HEIGHT - 6]
  const toY = (value: number) => bottom - ((value - low) / (high - low)) * (bottom - top)
  const ticks = chooseTicks(low, high, 3)
  const points = loss.flatMap((value, column) =>
    value === null ? [] : [`${toX(column).toFixed(1)},${toY(value).toFixed(1)}`],
  )
  const columnWidth = width / loss.length
  return (
    <svg
      class="importance-loss"
      width={width}
      height={LOSS_HEIGHT}
      role="img"
      aria-label={`${importance.metric} at the measured steps, from ${finite[0]?.toPrecision(3)} to ${finite[finite.length - 1]?.toPrecision(3)}`}
      onClick={(event) => {
        const box = event.currentTarget.getBoundingClientRect()
        const column = Math.floor((event.clientX - box.left) / columnWidth)
        onColumn(Math.max(0, Math.min(loss.length - 1, column)))
      }}
    >
      <rect
        class="importance-step"
        x={current * columnWidth}
        y={0}
        width={columnWidth}
        height={LOSS_HEIGHT}
      />
      {ticks.values.map((value, index) => (
        <g key={value}>
          <line class="importance-gridline" x1={0} x2={width} y1={toY(value)} y2={toY(value)} />
          <text class="tick" x={2} y={toY(value) - 3}>
            {ticks.offset ? `${ticks.offset} ` : ""}
            {ticks.labels[index]}
          </text>
        </g>
      ))}
      {chance === null ? null : (
        <g>
          <line class="importance-chance" x1={0} x2={width} y1={toY(chance)} y2={toY(chance)} />
          <text class="tick" x={width - 3} y={toY(chance) + 11} text-anchor="end">
            chance {chance.toPrecision(3)}
          </text>
        </g>
      )}
      <polyline class="importance-curve" points={points.join(" ")} />
      {points.map((point) => {
        const [x, y] = point.split(",")
        return <circle key={point} class="importance-point" cx={x} cy={y} r={2.2} />
      })}
    </svg>
  )
}

/** Labels of as many columns as there is space for; always the first, the last and the current one. */
function StepAxis({
  steps,
  toX,
  width,
  current,
}: {
  steps: number[]
  toX: (column: number) => number
  width: number
  current: number
}) {
  const labelled = chooseColumns(steps.length, current, width)
  return (
    <svg class="importance-steps" width={width} height={18} aria-hidden="true">
      {labelled.map((column) => {
        const half = (formatInteger(steps[column]).length * 6.2) / 2
        return (
          <text
            key={column}
            class={column === current ? "tick current" : "tick"}
            x={Math.max(half, Math.min(width - half, toX(column)))}
            y={13}
            text-anchor="middle"
          >
            {formatInteger(steps[column])}
          </text>
        )
      })}
    </svg>
  )
}

export function chooseColumns(count: number, current: number, width: number): number[] {
  const distance = (a: number, b: number) => (Math.abs(a - b) * width) / count
  const stride = Math.max(1, Math.ceil((STEP_LABEL_WIDTH * count) / Math.max(1, width)))
  const chosen = [...new Set([current, 0, count - 1])].filter(
    (column, position, all) =>
      position === 0 ||
      all.slice(0, position).every((other) => distance(column, other) >= STEP_LABEL_WIDTH),
  )
  for (let column = 0; column < count; column += stride)
    if (chosen.every((other) => distance(column, other) >= STEP_LABEL_WIDTH)) chosen.push(column)
  return chosen.sort((a, b) => a - b)
}

/** The largest |change| of all heads and steps: the end of the colours. */
function findLimit(importance: Importance, { change }: ClassValues): number {
  let largest = 0
  for (const value of change) if (Math.abs(value) > largest) largest = Math.abs(value)
  // where nothing matters, noise does not use the whole scale
  return Math.max(largest, 2 * (importance.smallest_change ?? 0), 1e-9)
}
