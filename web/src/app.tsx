// The frame around all panes: title, tabs, run selector, step slider, keyboard, theme.

import { render } from "preact"
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks"

import { KEY_HELP, handleKey } from "./keyboard"
import { countHeads, lastIndexUpTo, snapshotSteps, type Index, type Run } from "./run_data"
import reportPanes from "panes:./panes"
import { sortPanes, type Pane, type PaneProps } from "./pane"
import { PLAY_EVENT, StepSlider } from "./components/step_slider"
import { errorMessage, stripDate, stripDates } from "./format"
import { parseRoute, writeRoute, type Navigate, type Route } from "./route"
import type { DataSource } from "./data_source"
import {
  forceLightTheme,
  onColourSchemeChange,
  restoreTheme,
  currentTheme,
  toggleTheme,
} from "./theme"

/** The key, in the address, of all panes of the report on one page. */
const PRINT_VIEW = "all"

/** Draw the page: the panes of the report and, on the board, `extraPanes`. */
export function startApp(source: DataSource, extraPanes: Pane[] = []): void {
  restoreTheme()
  const panes = sortPanes([...reportPanes, ...extraPanes])
  render(<App source={source} panes={panes} />, document.getElementById("app")!)
}

function App({ source, panes }: { source: DataSource; panes: Pane[] }) {
  const [route, navigate] = useRoute()
  const [theme, setTheme] = useState(currentTheme())
  const [index, setIndex] = useState<Index | null>(null)
  const [errorText, setErrorText] = useState("")
  const [isHelpOpen, setHelpOpen] = useState(false)
  const requested =
    index &&
    (index.runs.find((entry) => entry.id === route.run) ??
      (source.live ? undefined : index.runs[0]))
  const shownGroups = index?.groups.filter((group) =>
    source.live ? group.runs.includes(requested?.id ?? "") : true,
  )
  const runIds = source.live
    ? requested
      ? [requested.id]
      : []
    : (index?.runs ?? []).map((entry) => entry.id)
  const runs = useRuns(source, runIds, setErrorText)
  const selectedRun = runs.find((run) => run.id === requested?.id) ?? null
  const shownPanes = index
    ? panes.filter((pane) => findRunFor(pane, selectedRun, runs, index) !== undefined)
    : []
  // a snapshot outside a training has little more than its maps
  const defaultKey =
    index?.kind === "snapshot" ? "attention" : selectedRun && route.pane ? "overview" : ""
  const pane =
    shownPanes.find((pane) => pane.key === route.pane) ??
    shownPanes.find((pane) => pane.key === defaultKey) ??
    shownPanes[0]
  const isPrintView = route.pane === PRINT_VIEW
  const run = index && pane ? (findRunFor(pane, selectedRun, runs, index) ?? null) : null

  useEffect(() => {
    source.index().then(setIndex, (error) => setErrorText(errorMessage(error)))
  }, [source, route.pane])
  useEffect(() => source.watch?.(() => void source.index().then(setIndex, () => {})), [source])
  useEffect(() => onColourSchemeChange(() => setTheme(currentTheme())), [])
  useEffect(
    () => (isPrintView ? forceLightTheme(() => setTheme(currentTheme())) : undefined),
    [isPrintView],
  )

  const steps = useMemo(() => (run ? snapshotSteps(run) : []), [run])
  const step = route.step ?? steps[steps.length - 1]
  // at the last step of a live run the route has no step, so that the page follows the newest one
  const stepForRoute = (next: number) =>
    source.live && next === steps[steps.length - 1] ? undefined : next
  useKeyboard({
    run,
    steps: pane?.hasStepSlider && !isPrintView ? steps : [],
    step,
    route,
    navigate,
    stepForRoute,
    shownPanes,
    setTheme,
    setHelpOpen,
  })

  const tabs = useRef<HTMLElement>(null)
  useEffect(
    () =>
      tabs.current
        ?.querySelector(".selected")
        ?.scrollIntoView({ block: "nearest", inline: "center" }),
    [pane?.key],
  )

  if (errorText && !index) return <p class="note">{errorText}</p>
  if (!index || !pane || runs.length < runIds.length)
    return (
      <p class="muted loading" role="status">
        {errorText || "loading…"}
      </p>
    )
  const props: PaneProps = {
    source,
    index,
    run,
    runs,
    groups: shownGroups ?? [],
    route: { ...route, step },
    navigate,
    theme,
  }
  const missingNote =
    route.run && !requested
      ? `Run ${route.run} not found.`
      : isPrintView || !route.pane || pane.key === route.pane
        ? ""
        : `${run ? stripDate(run.name) : "This page"} has nothing to show under “${route.pane}”.`
  const names = stripDates(index.runs.map((entry) => entry.name))
  return (
    <>
      <header>
        <div class="bar">
          <h1 class="title" title={source.live && run ? run.name : undefined}>
            {source.live && run ? stripDate(run.name) : index.title}
          </h1>
          <nav aria-label="tabs" ref={tabs}>
            {shownPanes.map((tab, position) => (
              <button
                type="button"
                key={tab.key}
                class={tab === pane && !isPrintView ? "selected" : ""}
                title={`key ${position + 1}`}
                aria-current={tab === pane && !isPrintView ? "page" : undefined}
                onClick={() => navigate({ pane: tab.key })}
              >
                {titlePane(tab, selectedRun, runs, index)}
              </button>
            ))}
          </nav>
          <span class="right">
            {index.runs.length > 1 && !source.live ? (
              <select
                aria-label="run"
                value={run?.id}
                onChange={(event) => navigate({ run: event.currentTarget.value })}
              >
                {index.groups.map((group) => (
                  <optgroup key={group.label} label={group.label}>
                    {index.runs.map((entry, position) =>
                      group.runs.includes(entry.id) ? (
                        <option key={entry.id} value={entry.id}>
                          {names[position]}
                        </option>
                      ) : null,
                    )}
                  </optgroup>
                ))}
              </select>
            ) : null}
            <button
              type="button"
              aria-label="theme"
              title="light or dark (t)"
              onClick={() => setTheme(toggleTheme())}
            >
              ◐
            </button>
            <button
              type="button"
              aria-label="print"
              title="all tabs on one page, to print"
              onClick={() => navigate({ pane: PRINT_VIEW })}
            >
              print
            </button>
            <button
              type="button"
              aria-label="help"
              title="keys (?)"
              onClick={() => setHelpOpen(!isHelpOpen)}
            >
              ?
            </button>
          </span>
        </div>
        {pane.hasStepSlider && !isPrintView ? (
          <StepSlider
            steps={steps}
            step={step ?? 0}
            live={source.live && run?.state === "running"}
            onStep={(next) => navigate({ step: stepForRoute(next) }, { replace: true })}
          />
        ) : null}
      </header>
      {isHelpOpen ? <Help onClose={() => setHelpOpen(false)} /> : null}
      <main>
        {[errorText, missingNote].filter(Boolean).map((text) => (
          <p key={text} class="note" role="status">
            {text}
          </p>
        ))}
        {isPrintView ? (
          <p class="muted screen-only">All tabs on one page, to print or to save as PDF.</p>
        ) : null}
        {isPrintView ? (
          shownPanes
            .filter((pane) => reportPanes.includes(pane))
            .map((pane) => (
              <section key={pane.key} class="print-section">
                <h1>{titlePane(pane, selectedRun, runs, index)}</h1>
                <pane.component
                  {...props}
                  run={findRunFor(pane, selectedRun, runs, index) ?? null}
                />
              </section>
            ))
        ) : (
          <pane.component key={pane.key} {...props} />
        )}
      </main>
    </>
  )
}

/** The run that a pane shows: the selected one, or the first that the pane applies to; undefined if none. */
function findRunFor(
  pane: Pane,
  selectedRun: Run | null,
  runs: Run[],
  index: Index,
): Run | null | undefined {
  const applies = (run: Run | null) => pane.applies({ run, index })
  return applies(selectedRun) ? selectedRun : runs.find(applies)
}

/** Text of a pane's tab, for the run that it shows. */
function titlePane(pane: Pane, selectedRun: Run | null, runs: Run[], index: Index): string {
  const run = findRunFor(pane, selectedRun, runs, index) ?? null
  return pane.titleFor?.({ run, index }) ?? pane.title
}

/** The route as state: changes render at once; the URL is written when the slider rests. */
function useRoute(): [Route, Navigate] {
  const [route, setRoute] = useState(() => parseRoute(location.hash))
  const latest = useRef(route)
  const timer = useRef(0)
  const navigate = useCallback<Navigate>((changes, options) => {
    const isNewEntry = !options?.replace && changes.pane !== undefined
    if (isNewEntry) writeRoute(latest.current, true) // flush, so that the back button returns to the current state
    latest.current = { ...latest.current, ...changes }
    setRoute(latest.current)
    clearTimeout(timer.current)
    if (isNewEntry) {
      writeRoute(latest.current, false)
      scrollTo(0, 0)
    } else timer.current = window.setTimeout(() => writeRoute(latest.current, true), 150)
  }, [])
  useEffect(() => {
    const readRoute = () => {
      clearTimeout(timer.current)
      latest.current = parseRoute(location.hash)
      setRoute(latest.current)
    }
    addEventListener("popstate", readRoute)
    addEventListener("hashchange", readRoute)
    return () => {
      removeEventListener("popstate", readRoute)
      removeEventListener("hashchange", readRoute)
    }
  }, [])
  return [route, navigate]
}

/** Load runs by id and keep them up to date. */
function useRuns(source: DataSource, ids: string[], onError: (errorText: string) => void): Run[] {
  const [runs, setRuns] = useState<Run[]>([])
  const key = ids.join("\n")
  useEffect(() => {
    let current = true
    const update = (run: Run) =>
      current && setRuns((previous) => previous.map((known) => (known.id === run.id ? run : known)))
    Promise.all(ids.map((id) => source.run(id))).then(
      (loaded) => current && setRuns(loaded),
      (error) => current && onError(errorMessage(error)),
    )
    const unsubscribers = ids.map((id) => source.follow(id, update))
    return () => {
      current = false
      for (const unsubscribe of unsubscribers) unsubscribe()
    }
  }, [source, key])
  return runs.filter((run) => ids.includes(run.id))
}

interface KeyContext {
  run: Run | null
  steps: number[]
  step: number | undefined
  route: Route
  navigate: Navigate
  /** The step to write into the route. */
  stepForRoute: (step: number) => number | undefined
  shownPanes: Pane[]
  setTheme: (theme: "light" | "dark") => void
  setHelpOpen: (update: (isOpen: boolean) => boolean) => void
}

function useKeyboard(state: KeyContext): void {
  const latest = useRef(state)
  latest.current = state
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const { run, steps, step, route, navigate, stepForRoute, shownPanes, setTheme, setHelpOpen } =
        latest.current
      const [layer, head] = [route.layer ?? 0, route.head ?? 0]
      const layers = run?.layers.length ?? 0
      const isHandled = handleKey(event, {
        move: (offset) => {
          const index = Math.min(
            steps.length - 1,
            Math.max(0, lastIndexUpTo(steps, step ?? Infinity) + offset),
          )
          if (steps.length > 1) navigate({ step: stepForRoute(steps[index]) }, { replace: true })
          return steps.length > 1
        },
        play: () => steps.length > 1 && dispatchEvent(new Event(PLAY_EVENT)),
        head: (offset) => {
          if (!run || !layers) return
          const [nextLayer, nextHead] = shiftHead(run, layer, head, offset)
          navigate({ layer: nextLayer, head: nextHead })
        },
        layer: (offset) => navigate({ layer: Math.min(layers - 1, Math.max(0, layer + offset)) }),
        query: (offset) => {
          const lastQuery = (run?.labels?.queries.length ?? 512) - 1
          navigate({ query: Math.min(lastQuery, Math.max(0, (route.query ?? lastQuery) + offset)) })
        },
        pane: (position) => shownPanes[position] && navigate({ pane: shownPanes[position].key }),
        theme: () => setTheme(toggleTheme()),
        help: () => setHelpOpen((isOpen) => !isOpen),
        close: () => setHelpOpen(() => false),
      })
      if (isHandled) event.preventDefault()
    }
    addEventListener("keydown", onKeyDown)
    return () => removeEventListener("keydown", onKeyDown)
  }, [])
}

/** The head `offset` heads further, across layers, wrapping around. */
function shiftHead(run: Run, layer: number, head: number, offset: number): [number, number] {
  const heads = run.layers.flatMap((_, row) =>
    Array.from({ length: countHeads(run, row) }, (_, index): [number, number] => [row, index]),
  )
  const index = heads.findIndex(([row, column]) => row === layer && column === head)
  return heads.length ? heads[(index + offset + heads.length) % heads.length] : [layer, head]
}

function Help({ onClose }: { onClose: () => void }) {
  const closeButton = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    const focused = document.activeElement
    closeButton.current?.focus()
    return () => focused instanceof HTMLElement && focused.focus()
  }, [])
  return (
    <div class="help card" role="dialog" aria-label="keys">
      <h2>
        Keys{" "}
        <button type="button" aria-label="close" ref={closeButton} onClick={onClose}>
          ×
        </button>
      </h2>
      <dl class="description-list">
        {KEY_HELP.map(([keys, description]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{description}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">
        The URL contains everything that is selected: copy it to return to this view.
      </p>
    </div>
  )
}
