// The frame around all views: title, tabs, the run, the slider, keys, light and dark.

import { render } from "preact"
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks"

import { KEYS, pressed } from "./keyboard"
import { headsOf, lastUpTo, lookedAt, type Index, type Run } from "./model"
import { attention } from "./panes/attention"
import { calibration } from "./panes/calibration"
import { curves } from "./panes/curves"
import { findings } from "./panes/findings"
import { measures } from "./panes/measures"
import { overview } from "./panes/overview"
import { samples } from "./panes/samples"
import type { Pane, ViewProps } from "./pane"
import { PLAY, Slider } from "./parts/slider"
import { short, shortened } from "./numbers"
import { parsePlace, writePlace, type Go, type Place } from "./place"
import type { DataSource } from "./source"
import { onPaper, onScreenChange, recallTheme, theme as themeNow, turnTheme } from "./theme"

const SHARED: Pane[] = [overview, curves, measures, attention, findings, calibration, samples]
export const ALL = "all"

/** Draw the page. `before` stand first among the tabs, `after` last. */
export function start(source: DataSource, before: Pane[] = [], after: Pane[] = []): void {
  recallTheme()
  render(<App source={source} panes={[...before, ...SHARED, ...after]} />, document.getElementById("app")!)
}

function App({ source, panes }: { source: DataSource; panes: Pane[] }) {
  const [place, go] = usePlace()
  const [theme, setTheme] = useState(themeNow())
  const [index, setIndex] = useState<Index | null>(null)
  const [trouble, setTrouble] = useState("")
  const [help, setHelp] = useState(false)
  const asked = index && (index.runs.find((one) => one.id === place.run) ?? (source.live ? undefined : index.runs[0]))
  const group = index?.groups.filter((one) => source.live ? one.runs.includes(asked?.id ?? "") : true)
  const drawn = source.live ? (asked ? [asked.id] : []) : (index?.runs ?? []).map((one) => one.id)
  const runs = useRuns(source, drawn, setTrouble)
  const chosen = runs.find((one) => one.id === asked?.id) ?? null
  const shown = index ? panes.filter((one) => runFor(one, chosen, runs, index) !== undefined) : []
  // a look has nothing to say but its maps
  const usual = index?.kind === "look" ? attention.key : chosen && place.pane ? overview.key : ""
  const pane = shown.find((one) => one.key === place.pane) ?? shown.find((one) => one.key === usual) ?? shown[0]
  const everything = place.pane === ALL
  const run = index && pane ? runFor(pane, chosen, runs, index) ?? null : null

  useEffect(() => { source.index().then(setIndex, (problem) => setTrouble(String(problem.message ?? problem))) }, [source, place.pane])
  useEffect(() => source.watch?.(() => void source.index().then(setIndex, () => {})), [source])
  useEffect(() => onScreenChange(() => setTheme(themeNow())), [])
  useEffect(() => (everything ? onPaper(() => setTheme(themeNow())) : undefined), [everything])

  const steps = useMemo(() => (run ? lookedAt(run) : []), [run])
  const step = place.step ?? steps[steps.length - 1]
  // at the end of a live run no step is kept in the address: the newest is followed
  const kept = (next: number) => (source.live && next === steps[steps.length - 1] ? undefined : next)
  useKeys({ run, steps: pane?.slides && !everything ? steps : [], step, place, go, kept, shown, setTheme, setHelp })

  const tabs = useRef<HTMLElement>(null)
  useEffect(() => tabs.current?.querySelector(".chosen")?.scrollIntoView({ block: "nearest", inline: "center" }), [pane?.key])

  if (trouble && !index) return <p class="remark">{trouble}</p>
  if (!index || !pane || runs.length < drawn.length) return <p class="soft waiting" role="status">{trouble || "loading…"}</p>
  const props: ViewProps = { source, index, run, runs, groups: group ?? [], place: { ...place, step }, go, theme }
  const missing = place.run && !asked ? `There is no run ${place.run} here.` : everything || !place.pane || pane.key === place.pane ? "" :
    `${run ? short(run.name) : "This page"} has nothing to show under “${place.pane}”.`
  const names = shortened(index.runs.map((one) => one.name))
  return (
    <>
      <header>
        <div class="bar">
          <h1 class="title" title={source.live && run ? run.name : undefined}>{source.live && run ? short(run.name) : index.title}</h1>
          <nav aria-label="views" ref={tabs}>
            {shown.map((one, at) => (
              <button type="button" key={one.key} class={one === pane && !everything ? "chosen" : ""} title={`key ${at + 1}`}
                aria-current={one === pane && !everything ? "page" : undefined} onClick={() => go({ pane: one.key })}>{one.title}</button>
            ))}
          </nav>
          <span class="right">
            {index.runs.length > 1 && !source.live ? (
              <select aria-label="run" value={run?.id} onChange={(event) => go({ run: event.currentTarget.value })}>
                {index.groups.map((group) => (
                  <optgroup key={group.label} label={group.label}>
                    {index.runs.map((one, at) => group.runs.includes(one.id) ? <option key={one.id} value={one.id}>{names[at]}</option> : null)}
                  </optgroup>
                ))}
              </select>
            ) : null}
            <button type="button" aria-label="light or dark" title="light or dark (t)" onClick={() => setTheme(turnTheme())}>◐</button>
            <button type="button" aria-label="print" title="everything on one page, to print" onClick={() => go({ pane: ALL })}>print</button>
            <button type="button" aria-label="help" title="keys (?)" onClick={() => setHelp(!help)}>?</button>
          </span>
        </div>
        {pane.slides && !everything ? (
          <Slider steps={steps} step={step ?? 0} live={source.live && run?.state === "running"} onStep={(next) => go({ step: kept(next) }, { quietly: true })} />
        ) : null}
      </header>
      {help ? <Help onClose={() => setHelp(false)} /> : null}
      <main>
        {[trouble, missing].filter(Boolean).map((text) => <p key={text} class="remark" role="status">{text}</p>)}
        {everything ? <p class="soft screen">Everything on one page: print it from here, to paper or to a PDF.</p> : null}
        {everything ? shown.filter((one) => SHARED.includes(one)).map((one) => (
          <section key={one.key} class="sheet"><h1>{one.title}</h1><one.View {...props} run={runFor(one, chosen, runs, index) ?? null} /></section>
        )) : <pane.View key={pane.key} {...props} />}
      </main>
    </>
  )
}

/** The run that a view shows: the one that was chosen, or the first that has anything to show there; undefined if none has. */
function runFor(pane: Pane, chosen: Run | null, runs: Run[], index: Index): Run | null | undefined {
  const fits = (one: Run | null) => pane.shown?.(one, index) ?? true
  return fits(chosen) ? chosen : runs.find(fits)
}

/** The address as state: a change is seen at once and written when the slider rests. */
function usePlace(): [Place, Go] {
  const [place, setPlace] = useState(() => parsePlace(location.hash))
  const latest = useRef(place)
  const timer = useRef(0)
  const go = useCallback<Go>((changes, how) => {
    const loud = !how?.quietly && changes.pane !== undefined
    if (loud) writePlace(latest.current, true) // so that going back leads to where the reader was
    latest.current = { ...latest.current, ...changes }
    setPlace(latest.current)
    clearTimeout(timer.current)
    if (loud) {
      writePlace(latest.current, false)
      scrollTo(0, 0)
    } else timer.current = window.setTimeout(() => writePlace(latest.current, true), 150)
  }, [])
  useEffect(() => {
    const back = () => {
      clearTimeout(timer.current)
      latest.current = parsePlace(location.hash)
      setPlace(latest.current)
    }
    addEventListener("popstate", back)
    addEventListener("hashchange", back)
    return () => {
      removeEventListener("popstate", back)
      removeEventListener("hashchange", back)
    }
  }, [])
  return [place, go]
}

/** Runs by their ids, and what is new in them. */
function useRuns(source: DataSource, ids: string[], say: (trouble: string) => void): Run[] {
  const [runs, setRuns] = useState<Run[]>([])
  const key = ids.join("\n")
  useEffect(() => {
    let current = true
    const take = (run: Run) => current && setRuns((before) => before.map((one) => (one.id === run.id ? run : one)))
    Promise.all(ids.map((id) => source.run(id))).then(
      (found) => current && setRuns(found), (problem) => current && say(String(problem.message ?? problem)),
    )
    const stops = ids.map((id) => source.follow(id, take))
    return () => {
      current = false
      for (const stop of stops) stop()
    }
  }, [source, key])
  return runs.filter((one) => ids.includes(one.id))
}

interface Keyed {
  run: Run | null
  steps: number[]
  step: number | undefined
  place: Place
  go: Go
  /** The step that goes into the address. */
  kept: (step: number) => number | undefined
  shown: Pane[]
  setTheme: (theme: "light" | "dark") => void
  setHelp: (turn: (before: boolean) => boolean) => void
}

function useKeys(state: Keyed): void {
  const latest = useRef(state)
  latest.current = state
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const { run, steps, step, place, go, kept, shown, setTheme, setHelp } = latest.current
      const [layer, head] = [place.layer ?? 0, place.head ?? 0]
      const layers = run?.layers.length ?? 0
      const done = pressed(event, {
        move: (looks) => {
          const at = Math.min(steps.length - 1, Math.max(0, lastUpTo(steps, step ?? Infinity) + looks))
          if (steps.length > 1) go({ step: kept(steps[at]) }, { quietly: true })
          return steps.length > 1
        },
        play: () => steps.length > 1 && dispatchEvent(new Event(PLAY)),
        head: (by) => {
          if (!run || !layers) return
          const [nextLayer, nextHead] = stepped(run, layer, head, by)
          go({ layer: nextLayer, head: nextHead })
        },
        layer: (by) => go({ layer: Math.min(layers - 1, Math.max(0, layer + by)) }),
        query: (by) => {
          const last = (run?.labels?.queries.length ?? 512) - 1
          go({ query: Math.min(last, Math.max(0, (place.query ?? last) + by)) })
        },
        pane: (at) => shown[at] && go({ pane: shown[at].key }),
        theme: () => setTheme(turnTheme()),
        help: () => setHelp((before) => !before),
        close: () => setHelp(() => false),
      })
      if (done) event.preventDefault()
    }
    addEventListener("keydown", listen)
    return () => removeEventListener("keydown", listen)
  }, [])
}

/** The next head, through all layers and round again. */
function stepped(run: Run, layer: number, head: number, by: number): [number, number] {
  const all = run.layers.flatMap((_, row) => Array.from({ length: headsOf(run, row) }, (_, at): [number, number] => [row, at]))
  const at = all.findIndex(([row, column]) => row === layer && column === head)
  return all.length ? all[(at + by + all.length) % all.length] : [layer, head]
}

function Help({ onClose }: { onClose: () => void }) {
  const close = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    const before = document.activeElement
    close.current?.focus()
    return () => before instanceof HTMLElement && before.focus()
  }, [])
  return (
    <div class="help card" role="dialog" aria-label="keys">
      <h2>Keys <button type="button" aria-label="close" ref={close} onClick={onClose}>×</button></h2>
      <dl class="facts">{KEYS.map(([keys, what]) => <div key={keys}><dt><kbd>{keys}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <p class="soft">The address of the page holds what is shown: copy it to come back to this very view.</p>
    </div>
  )
}
