// A pasted text, cut into its parts: the probability that a part begins stands beside every sentence or line.

import { useRef, useState } from "preact/hooks"

import { number, whole } from "../numbers"
import type { Pane, ViewProps } from "../pane"
import type { FetchSource } from "./fetch_source"
import { lines, type CutText, type ToCut } from "./server"

const SHIPPED = ""

function View({ source, run, place, go }: ViewProps) {
  const board = source as FetchSource
  const [text, setText] = useState("")
  const [found, setFound] = useState<CutText | null>(null)
  const [trouble, setTrouble] = useState("")
  const [busy, setBusy] = useState(false)
  const stop = useRef<AbortController | null>(null)
  const able = [...board.list.values()].filter((one) => one.task === "segmentation" && one.kind === "run").reverse()
  const own = able.some((one) => one.id === run?.id) ? run!.id : SHIPPED
  const by = able.some((one) => one.id === place.by) || place.by === "shipped" ? String(place.by).replace("shipped", SHIPPED) : own
  const [least, most, threshold] = [place.least, place.most, place.threshold].map((said) => (said ? Number(said) : undefined))

  const cut = async (event?: Event) => {
    event?.preventDefault()
    stop.current?.abort()
    const mine = (stop.current = new AbortController())
    setTrouble("")
    setBusy(true)
    try {
      const asked: ToCut = { text, least, most, threshold, run: by || undefined }
      for await (const line of lines("api/cut", asked, mine.signal)) setFound(line as unknown as CutText)
    } catch (problem) {
      if (!mine.signal.aborted) setTrouble(String((problem as Error).message))
    } finally {
      if (stop.current === mine) setBusy(false)
    }
  }

  return (
    <>
      <form class="tools" onSubmit={(event) => void cut(event)}>
        <textarea aria-label="text" rows={6} value={text} placeholder="paste a text here" onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && void cut(event)} />
        <label class="choice"><span class="soft">by </span>
          <select aria-label="network" value={by} onChange={(event) => go({ by: event.currentTarget.value || "shipped" })}>
            <option value={SHIPPED}>the one that comes with neural</option>
            {able.map((one) => <option key={one.id} value={one.id}>{one.name}</option>)}
          </select>
        </label>
        <label class="choice"><span class="soft">shortest part </span>
          <input type="number" min={1} max={1000} value={least ?? ""} placeholder="its own"
            onInput={(event) => go({ least: event.currentTarget.value || undefined }, { quietly: true })} /></label>
        <label class="choice"><span class="soft">longest part </span>
          <input type="number" min={1} max={1000} value={most ?? ""} placeholder="any"
            onInput={(event) => go({ most: event.currentTarget.value || undefined }, { quietly: true })} /></label>
        <label class="choice"><span class="soft">threshold </span>
          <input type="number" min={0.01} max={0.99} step={0.01} value={threshold ?? ""} placeholder={found ? number(found.threshold) : "its own"}
            onInput={(event) => go({ threshold: event.currentTarget.value || undefined }, { quietly: true })} /></label>
        <button type="submit" class="deed" disabled={!text.trim() || busy} title="Ctrl-Enter in the text">{busy ? "…" : "segment"}</button>
      </form>
      {trouble ? <p class="remark">{trouble}</p> : null}
      {found ? <Parts found={found} /> : <p class="soft">The text stays on this machine; nothing of it is kept.</p>}
    </>
  )
}

function Parts({ found }: { found: CutText }) {
  return (
    <>
      {found.remarks.map((one) => <p key={one} class="remark">{one}</p>)}
      <p class="soft">
        {whole(found.parts.length)} part{found.parts.length === 1 ? "" : "s"} of {whole(found.elements.length)} {found.unit}, by {found.segmenter}. In the
        margin: the probability that a part begins; above {number(found.threshold)} one does.
      </p>
      <div class="cut">
        {found.parts.map((part, at) => (
          <section key={at}>
            <h3><span class="soft">{at + 1}</span> {part.title} {part.probability === null ? null : <small class="soft">{part.probability.toFixed(2)}</small>}</h3>
            {found.elements.slice(part.first, part.last).map((one, row) => (
              <p key={row} class={one.begins ? "begins" : ""}>
                <i class="chance" title={one.probability.toFixed(3)} style={{ "--at": `${100 * found.threshold}%` }}>
                  <b style={{ width: `${100 * one.probability}%` }} />
                </i>
                <span class="figure">{part.first + row ? one.probability.toFixed(2) : ""}</span>
                <span>{one.text}</span>
              </p>
            ))}
          </section>
        ))}
      </div>
    </>
  )
}

export const segment: Pane = { key: "segment", title: "Segment", View }
