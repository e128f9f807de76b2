// Attention as a map: rows and columns with their tokens, one row marked. Labels stay inside the picture:
// its margins are as wide as the labels, and longer labels are shortened.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks"

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
  onPreview: (cell: [row: number, column: number] | null) => void
  onSelect: (row: number) => void
}

const MIN_TICK_PIXELS = 11
const MAX_CELL_PIXELS = 56
const MAX_MAP_PIXELS = 620
const MAX_LABEL_PIXELS = 110
const GAP = 5
const LINE_PIXELS = 12

export function AttentionMap(props: Props) {
  const { matrix, row, colours, theme, paddedRows, paddedColumns } = props
  const { rows, columns } = matrix
  const canvas = useRef<HTMLCanvasElement>(null)
  const layout = useMemo(
    () => layOutMap(rows, columns, props.rowNames, props.columnNames, props.width),
    [rows, columns, props.rowNames, props.columnNames, props.width],
  )
  useLayoutEffect(
    () => drawMatrix(canvas.current!, matrix, theme, colours, paddedRows, paddedColumns),
    [matrix, theme, colours, paddedRows, paddedColumns],
  )
  const { left, top, cell, mapWidth, mapHeight, isVertical } = layout
  const cellUnder = (event: MouseEvent) => findCell(event, canvas.current!, rows, columns)
  return (
    <svg
      class="attention-map"
      width={left + mapWidth + 2}
      height={top + mapHeight + 2}
      role="group"
      aria-label="map with labels"
    >
      {layout.columnTicks.map(({ index, text }) => {
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
      {layout.rowTicks.map(({ index, text }) => (
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
          class={joinClasses("hatched", cell < 1.5 && "smooth-pixels")}
          role="img"
          aria-label={props.description}
          style={{ width: `${mapWidth}px`, height: `${mapHeight}px` }}
          onMouseMove={(event) => props.onPreview(cellUnder(event))}
          onMouseLeave={() => props.onPreview(null)}
          onClick={(event) => props.onSelect(cellUnder(event)[0])}
        />
      </foreignObject>
      <rect
        x={left - 0.5}
        y={top + row * cell}
        width={mapWidth + 1}
        height={Math.max(2, cell)}
        class="selected-row"
      />
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
  rowTicks: Tick[]
  columnTicks: Tick[]
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
  const every = Math.max(1, Math.ceil(MIN_TICK_PIXELS / cell))
  const columnTicks = pickTicks(shorten(columnNames), every)
  const widest = widestText(
    columnTicks.map(({ text }) => text),
    measure,
  )
  const isVertical = widest > cell * every - 2
  return {
    left,
    top: (isVertical ? Math.ceil(widest) : LINE_PIXELS) + 2 * GAP,
    cell,
    mapWidth: cell * columns,
    mapHeight: cell * rows,
    isVertical,
    rowTicks: pickTicks(rowTexts, every),
    columnTicks,
  }
}

function pickTicks(texts: string[], every: number): Tick[] {
  return texts.map((text, index) => ({ index, text })).filter(({ index }) => index % every === 0)
}
