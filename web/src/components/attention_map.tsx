// Attention as a map: rows and columns with their tokens, one row marked. Labels stay inside the picture:
// its margins are as wide as the labels, and longer labels are shortened.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"

import type { AttentionMatrix } from "../attention_matrix"
import { drawMatrix, findCell } from "../draw/heatmap"
import { measureText, shortenText, widestText } from "../draw/text"
import type { WeightScaleName } from "../draw/weight_scale"
import type { Theme } from "../theme"
import { joinClasses } from "./token_strip"

interface Props {
  matrix: AttentionMatrix
  /** Texts of the rows and columns; numbers of positions if there are none. */
  rowNames: string[]
  columnNames: string[]
  paddedRows: boolean[]
  paddedColumns: boolean[]
  /** The marked row. */
  row: number
  width: number
  colours: WeightScaleName
  theme: Theme
  /** What the picture shows, for screen readers. */
  description: string
  /** A cell in words, for the tooltip. */
  describeCell: (row: number, column: number) => string
  onPreview: (cell: [row: number, column: number] | null) => void
  onSelect: (row: number) => void
}

/** Distance of labels: of single characters, and of longer texts. */
const [MIN_LETTER_PIXELS, MIN_TICK_PIXELS] = [8, 11]
/** Columns with the most weight, which always have a label. */
const LABELLED_COLUMNS = 3
const MAX_CELL_PIXELS = 56
const MAX_MAP_PIXELS = 620
const MAX_LABEL_PIXELS = 110
const GAP = 5
const LINE_PIXELS = 12

export function AttentionMap(props: Props) {
  const { matrix, row, colours, theme, paddedRows, paddedColumns } = props
  const { rows, columns } = matrix
  const canvas = useRef<HTMLCanvasElement>(null)
  const [cellUnder, setCellUnder] = useState<[row: number, column: number] | null>(null)
  const layout = useMemo(
    () => layOutMap(rows, columns, props.rowNames, props.columnNames, props.width),
    [rows, columns, props.rowNames, props.columnNames, props.width],
  )
  const darkest = useMemo(() => findDarkestColumns(matrix), [matrix])
  const rowTicks = pickTicks(layout.rowTexts, layout, [row])
  const columnTicks = pickTicks(layout.columnTexts, layout, [
    ...(cellUnder ? [cellUnder[1]] : []),
    ...darkest,
  ])
  useLayoutEffect(
    () => drawMatrix(canvas.current!, matrix, theme, colours, paddedRows, paddedColumns),
    [matrix, theme, colours, paddedRows, paddedColumns],
  )
  const { left, top, cell, mapWidth, mapHeight, isVertical } = layout
  const find = (event: MouseEvent) => findCell(event, canvas.current!, rows, columns)
  const preview = (cell: [row: number, column: number] | null) => {
    setCellUnder(cell)
    props.onPreview(cell)
  }
  const tooltip = cellUnder && props.describeCell(...cellUnder)
  const tooltipWidth = tooltip ? measureText(tooltip) + 12 : 0
  return (
    <svg
      class="attention-map"
      width={left + mapWidth + 2}
      height={top + mapHeight + 2}
      role="group"
      aria-label="map with labels"
    >
      {layout.every > 1 ? (
        <path
          class="map-border"
          d={[
            ...columnTicks.map(({ index }) => `M${left + (index + 0.5) * cell} ${top - 1}v-3`),
            ...rowTicks.map(({ index }) => `M${left - 1} ${top + (index + 0.5) * cell}h-3`),
          ].join("")}
        />
      ) : null}
      {columnTicks.map(({ index, text }) => {
        const x = left + (index + 0.5) * cell
        return (
          <text
            key={`c${index}`}
            class={joinClasses("tick", paddedColumns[index] && "padding")}
            x={isVertical ? x + 3.5 : x}
            y={top - GAP}
            transform={isVertical ? `rotate(-90 ${x + 3.5} ${top - GAP})` : undefined}
            text-anchor={isVertical ? "start" : "middle"}
          >
            {text}
            <title>{props.columnNames[index]}</title>
          </text>
        )
      })}
      {rowTicks.map(({ index, text }) => (
        <text
          key={`r${index}`}
          class={joinClasses("tick", index === row && "current", paddedRows[index] && "padding")}
          x={left - GAP}
          y={top + (index + 0.5) * cell + 3.5}
          text-anchor="end"
          onClick={() => props.onSelect(index)}
        >
          {text}
          <title>{props.rowNames[index]}</title>
        </text>
      ))}
      <rect
        x={left - 0.5}
        y={top - 0.5}
        width={mapWidth + 1}
        height={mapHeight + 1}
        class="map-border"
      />
      <foreignObject x={left} y={top} width={mapWidth} height={mapHeight}>
        <canvas
          ref={canvas}
          class={joinClasses("masked", cell < 1.5 && "smooth-pixels")}
          role="img"
          aria-label={props.description}
          style={{ width: `${mapWidth}px`, height: `${mapHeight}px` }}
          onMouseMove={(event) => preview(find(event))}
          onMouseLeave={() => preview(null)}
          onClick={(event) => props.onSelect(find(event)[0])}
        />
      </foreignObject>
      <rect
        x={left - 0.5}
        y={top + row * cell}
        width={mapWidth + 1}
        height={Math.max(2, cell)}
        class="selected-row"
        data-export="omit"
      />
      {cellUnder ? (
        <g
          class="map-tooltip"
          data-export="omit"
          transform={`translate(${Math.min(left + (cellUnder[1] + 1) * cell, Math.max(left, left + mapWidth - tooltipWidth))} ${top + cellUnder[0] * cell + (cellUnder[0] > 2 ? -26 : cell + 6)})`}
        >
          <rect width={tooltipWidth} height={20} rx={3} />
          <text x={6} y={14}>
            {tooltip}
          </text>
        </g>
      ) : null}
    </svg>
  )
}

interface Tick {
  index: number
  text: string
}

export interface MapLayout {
  /** Margins for the labels. */
  left: number
  top: number
  /** Width and height of a cell. */
  cell: number
  mapWidth: number
  mapHeight: number
  /** Whether the labels of columns are turned by 90°, because they are wider than their columns. */
  isVertical: boolean
  /** One of so many rows and columns has a label. */
  every: number
  rowTexts: string[]
  columnTexts: string[]
}

/** Sizes of a map and its labels, so that everything is inside `width`. */
export function layOutMap(
  rows: number,
  columns: number,
  rowNames: string[],
  columnNames: string[],
  width: number,
  measure: (text: string) => number = measureText,
): MapLayout {
  const maxLabel = Math.max(24, Math.min(MAX_LABEL_PIXELS, 0.3 * width))
  const shorten = (names: string[]) => names.map((name) => shortenText(name, maxLabel, measure))
  const rowTexts = shorten(rowNames)
  const left = Math.ceil(widestText(rowTexts, measure)) + 2 * GAP
  const available = Math.max(40, Math.min(width - left - 2, MAX_MAP_PIXELS))
  const cell = Math.min(available / columns, MAX_CELL_PIXELS, (1.5 * MAX_MAP_PIXELS) / rows)
  const columnTexts = shorten(columnNames)
  const widest = widestText(columnTexts, measure)
  const isShort = Math.max(widest, widestText(rowTexts, measure)) <= MIN_LETTER_PIXELS
  const every = Math.max(1, Math.ceil((isShort ? MIN_LETTER_PIXELS : MIN_TICK_PIXELS) / cell))
  const isVertical = widest > cell * every - 2
  return {
    left,
    top: (isVertical ? Math.ceil(widest) : LINE_PIXELS) + 2 * GAP,
    cell,
    mapWidth: cell * columns,
    mapHeight: cell * rows,
    isVertical,
    every,
    rowTexts,
    columnTexts,
  }
}

/** Labels with space for each: the `wanted` ones first, then every so many. */
export function pickTicks(
  texts: string[],
  { every }: Pick<MapLayout, "every">,
  wanted: number[],
): Tick[] {
  const picked: number[] = []
  for (const index of [...wanted, ...texts.keys()])
    if (picked.includes(index)) continue
    else if (wanted.includes(index) || index % every === 0)
      if (picked.every((other) => Math.abs(other - index) >= every)) picked.push(index)
  return picked.sort((a, b) => a - b).map((index) => ({ index, text: texts[index] }))
}

/** The columns with the largest sums of |weight|. */
export function findDarkestColumns({ columns, values }: AttentionMatrix): number[] {
  const sums = new Float64Array(columns)
  values.forEach((value, index) => {
    sums[index % columns] += Math.abs(value)
  })
  return [...sums.keys()].sort((a, b) => sums[b] - sums[a]).slice(0, LABELLED_COLUMNS)
}
