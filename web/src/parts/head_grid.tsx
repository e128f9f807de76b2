// All heads of all layers at one step, as small maps: layers down, heads across.

import { useLayoutEffect, useRef } from "preact/hooks"

import { drawMap } from "../draw/map"
import type { StepMaps } from "../maps"
import { headName } from "../numbers"
import type { Theme } from "../theme"

interface Props {
  maps: StepMaps
  layer: number
  head: number
  theme: Theme
  onHead: (layer: number, head: number) => void
}

export function HeadGrid({ maps, layer, head, theme, onHead }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const most = Math.max(...maps.layers.map((one) => one.heads))

  useLayoutEffect(() => {
    const begun = performance.now()
    const canvases = box.current!.querySelectorAll<HTMLCanvasElement>("canvas")
    let at = 0
    for (const one of maps.layers) for (let index = 0; index < one.heads; index++) drawMap(canvases[at++], one, index, theme)
    performance.measure("neural heads drawn", { start: begun, end: performance.now(), detail: { step: maps.step, maps: at } })
  }, [maps, theme])

  return (
    <div class="heads" ref={box} style={{ "--heads": String(most) }}>
      <div class="row" aria-hidden="true">
        <span />
        {Array.from({ length: most }, (_, index) => <span key={index} class="name top">h{index}</span>)}
      </div>
      {maps.layers.map((one, row) => (
        <div class="row" key={one.name}>
          <span class="name" title={one.name}>{headName(row)}</span>
          {Array.from({ length: one.heads }, (_, index) => (
            <button
              type="button" key={index} title={`${headName(row, index)}, ${one.name}`}
              class={row === layer && index === head ? "chosen" : ""}
              aria-pressed={row === layer && index === head} onClick={() => onHead(row, index)}
            >
              <canvas class={one.keys > 100 ? "fine" : ""} style={{ aspectRatio: `${one.keys} / ${one.queries}` }} />
            </button>
          ))}
        </div>
      ))}
    </div>
  )
}
