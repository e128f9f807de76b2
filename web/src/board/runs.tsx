// All runs of the folder, the newest first: state, how far, how good; to open one, or to set several beside each other.

import { useEffect, useReducer, useRef } from "preact/hooks"

import { number, short, whole } from "../numbers"
import type { Pane, ViewProps } from "../pane"
import { hashOf } from "../place"
import { State } from "../panes/overview"
import { joined, others } from "./others"
import type { FetchSource } from "./fetch_source"
import type { Listed } from "./server"

const AT_ONCE = 200

function View({ source, place, go }: ViewProps) {
  const board = source as FetchSource
  const [, again] = useReducer((count: number) => count + 1, 0)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => board.watch(() => again(undefined)), [board])
  useEffect(() => {
    const timer = setInterval(() => again(undefined), 10_000) // ages
    const find = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return
      event.preventDefault()
      field.current?.focus()
    }
    addEventListener("keydown", find)
    return () => {
      clearInterval(timer)
      removeEventListener("keydown", find)
    }
  }, [])
  const asked = String(place.find ?? "").toLowerCase()
  const all = [...board.list.values()].reverse()
  const found = all.filter((one) => [one.name, one.sweep, one.state, one.task].some((text) => text?.toLowerCase().includes(asked)))
  const shown = place.all === "y" ? found : found.slice(0, AT_ONCE)
  const chosen = others(place)
  const turn = (id: string) => {
    const next = chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]
    go({ with: joined(next) })
  }
  const compare = () => go({ pane: "compare", run: chosen[0], with: joined(chosen.slice(1)), step: undefined })
  const states = counted(all)
  if (!all.length) return <p class="soft">There are no runs in this folder yet: <code>neural train</code> makes one, and it appears here.</p>
  return (
    <>
      <div class="tools">
        <input ref={field} type="search" placeholder="find (/)" aria-label="find a run" value={String(place.find ?? "")}
          onInput={(event) => go({ find: event.currentTarget.value || undefined })} />
        <span class="soft">{whole(found.length)} of {whole(all.length)} runs{states ? `: ${states}` : ""}</span>
        <button type="button" class="deed" disabled={chosen.length < 2} onClick={compare}>compare {chosen.length || ""}</button>
      </div>
      <div class="wide">
        <table class="runs">
          <thead>
            <tr><th><span class="unseen">compare</span></th><th>run</th><th>state</th><th class="right">step</th><th class="right">loss</th><th class="right">best</th><th class="right">last seen</th></tr>
          </thead>
          <tbody>
            {shown.map((one) => <Row key={one.id} run={one} chosen={chosen.includes(one.id)} onTurn={() => turn(one.id)}
              address={hashOf({ ...place, ...opened(one.id) })} onOpen={() => go(opened(one.id))} />)}
          </tbody>
        </table>
      </div>
      {shown.length < found.length ? (
        <p><button type="button" class="link" onClick={() => go({ all: "y" })}>show {whole(found.length - shown.length)} more</button></p>
      ) : null}
    </>
  )
}

function opened(id: string) {
  return { pane: "overview", run: id, step: undefined }
}

function Row({ run, chosen, address, onTurn, onOpen }: { run: Listed; chosen: boolean; address: string; onTurn: () => void; onOpen: () => void }) {
  if (run.kind === "broken") {
    return <tr><td /><td>{run.name}</td><td><State state="broken" /></td><td colSpan={4} class="soft">{run.message}</td></tr>
  }
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return // in a tab or a window of its own
    event.preventDefault()
    onOpen()
  }
  const share = run.steps ? Math.min(1, run.step / run.steps) : null
  return (
    <tr class={chosen ? "chosen" : ""}>
      <td><input type="checkbox" aria-label={`compare ${run.name}`} checked={chosen} onChange={onTurn} /></td>
      <td>
        <a class="link" href={address} onClick={open}><Name name={run.name} /></a>
        <div class="soft small">{[run.sweep ? `in ${run.sweep}` : "", run.task, run.message].filter(Boolean).join(" · ")}</div>
      </td>
      <td><State state={run.state} /></td>
      <td class="right">
        {whole(run.step)}{run.steps ? <span class="soft of"> / {whole(run.steps)}</span> : null}
        {share !== null && run.state === "running" ? <progress value={share} aria-label="how far" /> : null}
      </td>
      <td class="right">{number(run.loss)}</td>
      <td class="right">{run.best ? <>{number(run.best.score)} <span class="soft small">{run.best.name.replace("valid/", "")}</span></> : "–"}</td>
      <td class="right soft">{run.time ? ago(Math.max(0, Date.now() / 1000 - run.time)) : "–"}</td>
    </tr>
  )
}

/** The date that a folder begins with steps back, and a narrow screen breaks the line behind it. */
function Name({ name }: { name: string }) {
  const own = short(name)
  return <><span class="soft">{name.slice(0, name.length - own.length)}</span><wbr />{own}</>
}

function ago(seconds: number): string {
  const [unit, size] = ([["d", 172_800, 86_400], ["h", 5_400, 3_600], ["min", 90, 60]] as const)
    .filter(([, from]) => seconds >= from).map(([unit, , size]) => [unit, size] as const)[0] ?? ["s", 1]
  return `${Math.round(seconds / size)} ${unit} ago`
}

function counted(runs: Listed[]): string {
  const counts = new Map<string, number>()
  for (const one of runs) counts.set(one.state, (counts.get(one.state) ?? 0) + 1)
  return [...counts].sort((a, b) => b[1] - a[1]).map(([state, count]) => `${whole(count)} ${state}`).join(", ")
}

export const runs: Pane = { key: "runs", title: "Runs", View }
