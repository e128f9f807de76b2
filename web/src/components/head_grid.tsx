// Thumbnails of all heads at one step: one row per layer and one column per head, or in a given order.

import { useLayoutEffect, useRef } from "preact/hooks"

import type { LayerMaps } from "../attention_maps"
import { formatHead, formatInteger } from "../format"
import { isRole, type HeadIndex } from "../head_selection"
import type { Theme } from "../theme"
import "../styles/attention.css"
import { joinClasses } from "./token_strip"

const DRAW_MARK = "neural heads drawn"
/** With so many heads in a row, roles need two lines. */
const DENSE_HEADS = 7

type Layer = Pick<LayerMaps, "name" | "heads" | "queries" | "keys">

interface Props<Kind extends Layer> {
  layers: Kind[]
  step?: number
  layer: number
  head: number
  theme: Theme
  draw: (canvas: HTMLCanvasElement, layer: Kind, head: number, theme: Theme) => void
  onHead: (layer: number, head: number) => void
  /** Role of each head by layer, shown below its thumbnail. */
  roles?: string[][] | null
  /** The step from which a head will have its role; null if it has it at the step shown. */
  laterOnset?: (head: HeadIndex) => number | null
  /** The heads to show, in this order; all heads, by layer, if it is missing. */
  order?: HeadIndex[] | null
  /** A short text for each head, such as the value of the measure that orders them. */
  note?: (layer: number, head: number) => string
}

export function HeadGrid<Kind extends Layer>({
  layers,
  step,
  layer,
  head,
  theme,
  draw,
  onHead,
  roles,
  laterOnset,
  order,
  note,
}: Props<Kind>) {
  const container = useRef<HTMLDivElement>(null)
  const maxHeads = Math.max(...layers.map((maps) => maps.heads))
  const shown =
    order?.filter(([row, column]) => column < (layers[row]?.heads ?? 0)) ??
    layers.flatMap((maps, row) =>
      Array.from({ length: maps.heads }, (_, column): HeadIndex => [row, column]),
    )
  const orderKey = shown.join(" ")

  useLayoutEffect(() => {
    const start = performance.now()
    const canvases = container.current!.querySelectorAll("canvas")
    shown.forEach(([row, column], index) => {
      draw(canvases[index], layers[row], column, theme)
    })
    if (performance.getEntriesByName(DRAW_MARK).length >= 100) performance.clearMeasures(DRAW_MARK) // bounded: a page may be open for days
    performance.measure(DRAW_MARK, {
      start,
      end: performance.now(),
      detail: { step, maps: shown.length },
    })
  }, [layers, theme, draw, orderKey])

  useLayoutEffect(() => {
    if (container.current!.contains(document.activeElement))
      container.current!.querySelector<HTMLElement>(".selected")?.focus()
  }, [layer, head])

  const hasSelected = shown.some(([row, column]) => row === layer && column === head)
  const thumbnail = (row: number, column: number, isFirst: boolean) => {
    const maps = layers[row]
    const isSelected = row === layer && column === head
    const role = roles?.[row]?.[column]
    const onset = laterOnset?.([row, column]) ?? null
    const later = onset === null ? "" : ` from step ${formatInteger(onset)}`
    const name = `${formatHead(row, column)}${role ? `, ${role}${later}` : ""}`
    // roving tab stop: one for the whole grid; j, k, J and K move it
    return (
      <button
        type="button"
        key={`${row} ${column}`}
        title={`${name}, ${maps.name}`}
        class={isSelected ? "selected" : ""}
        tabIndex={isSelected || (isFirst && !hasSelected) ? 0 : -1}
        aria-pressed={isSelected}
        aria-label={name}
        data-layer={row}
        data-head={column}
        onClick={() => onHead(row, column)}
      >
        <canvas
          class={joinClasses("masked", maps.keys > 100 && "smooth-pixels")}
          role="img"
          aria-label={`attention map of ${formatHead(row, column)}`}
          style={{ aspectRatio: `${maps.keys} / ${maps.queries}` }}
        />
        {order ? (
          <span class="thumbnail-name">
            {formatHead(row, column)} {note?.(row, column)}
          </span>
        ) : null}
        {roles ? <RoleBadge role={role} onset={onset} /> : null}
      </button>
    )
  }
  return (
    <div
      class={joinClasses("heads", order && "flat", !order && maxHeads >= DENSE_HEADS && "dense")}
      ref={container}
      role="group"
      aria-label="heads"
      style={{ "--heads": String(maxHeads) }}
    >
      {order ? (
        shown.map(([row, column], index) => thumbnail(row, column, index === 0))
      ) : (
        <>
          <div class="row" aria-hidden="true">
            <span />
            {Array.from({ length: maxHeads }, (_, index) => (
              <span key={index} class="name column-label">
                h{index}
              </span>
            ))}
          </div>
          {layers.map((maps, row) => (
            <div class="row" key={maps.name}>
              <span class="name" title={maps.name}>
                {formatHead(row)}
              </span>
              {Array.from({ length: maps.heads }, (_, column) =>
                thumbnail(row, column, row === 0 && column === 0),
              )}
            </div>
          ))}
        </>
      )}
    </div>
  )
}

/**
 * The role of a head; "uniform" is no role and plain, and "mixed" is left blank. With `onset`, the
 * head has its role only from that step on: the badge says so and is plain.
 */
export function RoleBadge({ role, onset = null }: { role?: string; onset?: number | null }) {
  const text =
    onset !== null
      ? `from step\u00a0${formatInteger(onset)}`
      : role && role !== "mixed"
        ? role
        : "\u00a0"
  return (
    <span class={joinClasses("role-badge", (onset !== null || !isRole(role)) && "plain")}>
      {text}
    </span>
  )
}
