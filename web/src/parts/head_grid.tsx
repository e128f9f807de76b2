// All heads of all layers at one step, as small pictures: layers down, heads across.

import { useLayoutEffect, useRef } from "preact/hooks"

import type { LayerMaps } from "../maps"
import { headName } from "../numbers"
import type { Theme } from "../theme"

const DRAWN = "neural heads drawn"

type Layer = Pick<LayerMaps, "name" | "heads" | "queries" | "keys">

interface Props<Kind extends Layer> {
  layers: Kind[]
  step?: number
  layer: number
  head: number
  theme: Theme
  draw: (canvas: HTMLCanvasElement, layer: Kind, head: number, theme: Theme) => void
  onHead: (layer: number, head: number) => void
}

export function HeadGrid<Kind extends Layer>({ layers, step, layer, head, theme, draw, onHead }: Props<Kind>) {
  const box = useRef<HTMLDivElement>(null)
  const most = Math.max(...layers.map((one) => one.heads))

  useLayoutEffect(() => {
    const begun = performance.now()
    const canvases = box.current!.querySelectorAll("canvas")
    let at = 0
    for (const one of layers) for (let index = 0; index < one.heads; index++) draw(canvases[at++], one, index, theme)
    if (performance.getEntriesByName(DRAWN).length >= 100) performance.clearMeasures(DRAWN) // a page may be open for days
    performance.measure(DRAWN, { start: begun, end: performance.now(), detail: { step, maps: at } })
  }, [layers, theme])

  useLayoutEffect(() => {
    if (box.current!.contains(document.activeElement)) box.current!.querySelector<HTMLElement>(".chosen")?.focus()
  }, [layer, head])

  return (
    <div class="heads" ref={box} role="group" aria-label="heads" style={{ "--heads": String(most) }}>
      <div class="row" aria-hidden="true">
        <span />
        {Array.from({ length: most }, (_, index) => <span key={index} class="name top">h{index}</span>)}
      </div>
      {layers.map((one, row) => (
        <div class="row" key={one.name}>
          <span class="name" title={one.name}>{headName(row)}</span>
          {Array.from({ length: one.heads }, (_, index) => {
            const chosen = row === layer && index === head
            // one stop of the Tab key for all of them; j, k, J and K lead on
            return (
              <button type="button" key={index} title={`${headName(row, index)}, ${one.name}`} class={chosen ? "chosen" : ""}
                tabIndex={chosen ? 0 : -1} aria-pressed={chosen} onClick={() => onHead(row, index)}>
                <canvas class={one.keys > 100 ? "fine" : ""} style={{ aspectRatio: `${one.keys} / ${one.queries}` }} />
              </button>
            )
          })}
        </div>
      ))}
    </div>
  )
}
