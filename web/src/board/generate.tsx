// Text from the run's network. Choose a character and see what it was predicted from, head by head.

import { useEffect, useMemo, useRef, useState } from "preact/hooks"

import { shaded } from "../draw/colours"
import { bytesOf } from "../model"
import { number, token, whole } from "../numbers"
import type { Pane, ViewProps } from "../pane"
import { cellAt, drawTable } from "../draw/map"
import type { Theme } from "../theme"
import { lines, type Begun, type Piece, type ToWrite } from "./server"
import { looks, strongestKeys, type Look } from "./looked"

const MEAN = "mean of all heads"
const FACTS = { prompt: "\n", tokens: "200", temperature: "0.8", seed: "0" }

function View({ run, place, go, theme }: ViewProps) {
  const [begun, setBegun] = useState<Begun | null>(null)
  const [pieces, setPieces] = useState<Piece[]>([])
  const [trouble, setTrouble] = useState("")
  const stop = useRef<AbortController | null>(null)
  const [busy, setBusy] = useState(false)
  const field = (name: keyof typeof FACTS) => String(place[name] ?? FACTS[name])
  const id = run?.id
  useEffect(() => () => stop.current?.abort(), [])
  useEffect(() => {
    stop.current?.abort()
    setBegun(null)
    setPieces([])
    setTrouble("")
  }, [id])

  const write = async (event?: Event) => {
    event?.preventDefault()
    if (!id) return
    stop.current?.abort()
    const mine = (stop.current = new AbortController())
    setBegun(null)
    setPieces([])
    setTrouble("")
    setBusy(true)
    go({ token: undefined })
    const asked: ToWrite = {
      run: id, prompt: field("prompt"), tokens: Number(field("tokens")), temperature: Number(field("temperature")), seed: Number(field("seed")),
    }
    try {
      const found: Piece[] = []
      for await (const line of lines("api/write", asked, mine.signal)) {
        if (line.prompt) setBegun(line as unknown as Begun)
        else if (typeof line.seen === "string") {
          found.push({ text: String(line.text), first: Number(line.first), keys: Number(line.keys), seen: bytesOf(line.seen) })
          setPieces([...found])
        }
      }
    } catch (problem) {
      if (!mine.signal.aborted) setTrouble(String((problem as Error).message))
    } finally {
      if (stop.current === mine) setBusy(false)
    }
  }

  if (!run) return <p class="soft">Choose a run first.</p>
  const all = begun ? [...begun.prompt, ...pieces.map((one) => one.text)] : []
  const first = begun?.prompt.length ?? 0
  const chosen = begun && pieces.length ? Math.min(Math.max(Number(place.token ?? all.length - 1), first), all.length - 1) : null
  return (
    <>
      <form class="tools" onSubmit={(event) => void write(event)}>
        <textarea aria-label="prompt" rows={2} value={field("prompt")} placeholder="a text to go on from"
          onInput={(event) => go({ prompt: event.currentTarget.value }, { quietly: true })}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && void write(event)} />
        {(["tokens", "temperature", "seed"] as const).map((name) => (
          <label key={name} class="choice"><span class="soft">{name} </span>
            <input type="number" min={name === "tokens" ? 1 : 0} max={name === "tokens" ? 1000 : undefined} step={name === "temperature" ? 0.1 : 1}
              value={field(name)} onInput={(event) => go({ [name]: event.currentTarget.value }, { quietly: true })} />
          </label>
        ))}
        <button type="submit" class="deed" title="Ctrl-Enter in the prompt">{busy ? "again" : "generate"}</button>
        {busy ? <button type="button" class="deed" onClick={() => stop.current?.abort()}>stop</button> : null}
      </form>
      {trouble ? <p class="remark">{trouble}</p> : null}
      {begun && chosen !== null ? (
        <Read all={all} begun={begun} pieces={pieces} chosen={chosen} head={String(place.of ?? MEAN)} theme={theme}
          onChoose={(at) => go({ token: String(at) }, { quietly: true })} onHead={(of) => go({ of: of === MEAN ? undefined : of })} />
      ) : busy ? <p class="soft">the network is being loaded…</p> : (
        <p class="soft">The text is written with the best weights so far. The same seed gives the same text. Choose one of its characters to see what it was predicted from.</p>
      )}
    </>
  )
}

interface ReadProps {
  all: string[]
  begun: Begun
  pieces: Piece[]
  /** A position in the text, past the prompt. */
  chosen: number
  head: string
  theme: Theme
  onChoose: (at: number) => void
  onHead: (head: string) => void
}

function Read({ all, begun, pieces, chosen, head, theme, onChoose, onHead }: ReadProps) {
  const piece = pieces[chosen - begun.prompt.length]
  const rows = useMemo(() => looks(piece, begun), [piece, begun])
  const names = [MEAN, ...rows.map((one) => one.name)]
  const shown = rows.find((one) => one.name === head) ?? mean(rows, piece.keys)
  const text = useRef<HTMLDivElement>(null)
  const move = (event: KeyboardEvent) => {
    const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0
    if (!by) return
    event.preventDefault()
    event.stopPropagation() // the slider's keys
    const next = Math.min(all.length - 1, Math.max(begun.prompt.length, chosen + by))
    onChoose(next)
    text.current?.querySelectorAll<HTMLElement>("[role=button]")[next - begun.prompt.length]?.focus()
  }
  return (
    <div class="two">
      <section>
        <div class="tools">
          <label class="choice"><span class="soft">as seen by </span>
            <select aria-label="head" value={shown.name} onChange={(event) => onHead(event.currentTarget.value)}>
              {names.map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
          <span class="soft">← → choose the character before or after</span>
        </div>
        <div class="written" ref={text} onKeyDown={move}>
          {all.map((one, at) => {
            const key = at - piece.first
            const weight = key >= 0 && key < piece.keys ? shown.weights[key] : null
            const share = weight === null ? 0 : Math.sqrt(weight)
            const style = share < 0.08 ? {} : shaded(share, theme)
            const title = weight === null ? undefined : `${number(weight)} of the attention`
            if (at < begun.prompt.length) return <span key={at} class="given" style={style} title={title}>{one}</span>
            // not a button: text must break between words, and buttons are boxes
            return <span role="button" key={at} tabIndex={at === chosen ? 0 : -1} class={at === chosen ? "here" : ""} style={style} title={title}
              aria-pressed={at === chosen} onClick={() => onChoose(at)}>{one === "\n" ? "⏎\n" : one}</span>
          })}
        </div>
      </section>
      <section class="card">
        <h2><code class="token">{token(all[chosen])}</code> <small>character {whole(chosen + 1)}, predicted from the {whole(piece.keys)} before it</small></h2>
        <Strips rows={rows} keys={piece.keys} theme={theme} chosen={shown.name} onHead={onHead} />
        <table class="looks">
          <thead><tr><th>head</th><th>looks most at</th></tr></thead>
          <tbody>
            {rows.map((one) => (
              <tr key={one.name} class={one.name === shown.name ? "chosen" : ""}>
                <td><button type="button" class="link" onClick={() => onHead(one.name)}>{one.name}</button></td>
                <td>{strongestKeys(one.weights, 4).map(([key, weight]) => (
                  <span key={key} class="key"><code>{token(all[piece.first + key])}</code> <span class="soft">{piece.keys - key} back, {number(weight)}</span></span>
                ))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  )
}

/** Every head in a line: the keys from the first on the left to the newest on the right. */
function Strips({ rows, keys, theme, chosen, onHead }: { rows: Look[]; keys: number; theme: Theme; chosen: string; onHead: (name: string) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    const values = new Float32Array(rows.length * keys)
    rows.forEach((one, row) => one.weights.forEach((weight, key) => (values[row * keys + key] = Math.sqrt(weight))))
    drawTable(canvas.current!, values, rows.length, keys, [0, 1], theme)
  }, [rows, keys, theme])
  const pick = (event: MouseEvent) => onHead(rows[cellAt(event, canvas.current!, rows.length, keys)[0]].name)
  const at = rows.findIndex((one) => one.name === chosen)
  return (
    <div class="strip-picture seen-by">
      <canvas ref={canvas} style={{ height: `${Math.max(28, rows.length * 9)}px` }} onClick={pick} />
      {at >= 0 ? <span class="row-now" style={{ top: `${(100 * at) / rows.length}%`, height: `${100 / rows.length}%` }} /> : null}
    </div>
  )
}

function mean(rows: Look[], keys: number): Look {
  const weights = new Float32Array(keys)
  for (const one of rows) one.weights.forEach((weight, key) => (weights[key] += weight / rows.length))
  return { name: MEAN, weights }
}

export const generate: Pane = {
  key: "generate", title: "Generate", View,
  shown: (run) => run !== null && run.checkpoints.length > 0 && ["language_model", "supervised"].includes(String(run.settings.task)),
}
