// The frame around all panes: which pane and run are shown, step slider, keyboard, theme, help.

import { Fragment, render } from "preact"
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks"

import { findLastToken } from "./attention_matrix"
import { getSelectedHead } from "./head_selection"
import { KEY_HELP, handleKey } from "./keyboard"
import {
  countHeads,
  lastIndexUpTo,
  snapshotSteps,
  type Group,
  type Index,
  type Run,
} from "./run_data"
import reportPanes from "panes:./panes"
import { sortPanes, type Pane, type PaneProps } from "./pane"
import { PageHeader } from "./components/page_header"
import { PLAY_EVENT, StepSlider } from "./components/step_slider"
import { Digest } from "./digests/digest"
import { errorMessage, stripDate } from "./format"
import { labelExperiments, labelRuns, type RunLabel } from "./run_labels"
import { parseRoute, writeRoute, type Navigate, type Route } from "./route"
import type { DataSource } from "./data_source"
import {
  forceLightTheme,
  onPrint,
  onColourSchemeChange,
  restoreTheme,
  currentTheme,
  toggleTheme,
} from "./theme"

/** The key, in the address, of the digest: what is printed. */
const PRINT_VIEW = "print"

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
  const chosen = index?.runs.find((entry) => entry.id === route.run)
  const requested = chosen ?? (source.live ? undefined : index?.runs[0])
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
  const runsByPane = useMemo(
    () => new Map(panes.map((pane) => [pane, index ? listRunsFor(pane, runs, index) : []])),
    [panes, runs, index],
  )
  const shownPanes = panes.filter((pane) => runsByPane.get(pane)!.length > 0)
  // a snapshot outside a training has little more than its maps
  const defaultKey =
    index?.kind === "snapshot" ? "attention" : selectedRun && route.pane ? "overview" : ""
  const pane =
    shownPanes.find((pane) => pane.key === route.pane) ??
    shownPanes.find((pane) => pane.key === defaultKey) ??
    shownPanes[0]
  const isPrintView = route.pane === PRINT_VIEW
  // The run that the user chose stays, even if the pane has nothing of it. Until one is chosen, a
  // pane shows the first run that it applies to.
  const applicableRuns = (pane && runsByPane.get(pane)) ?? []
  const isMissing = chosen !== undefined && !applicableRuns.includes(selectedRun)
  const run =
    isMissing || applicableRuns.includes(selectedRun) ? selectedRun : (applicableRuns[0] ?? null)

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
  useEffect(() => onPrint(() => forceLightTheme(() => setTheme(currentTheme()))), [])
  const isStepPane =
    typeof pane?.hasStepSlider === "function" ? pane.hasStepSlider(run) : pane?.hasStepSlider
  const hasSlider = Boolean(isStepPane) && !isPrintView && !isMissing
  // at the last step of a live run the route has no step, so that the page follows the newest one
  const stepForRoute = (next: number) =>
    source.live && next === steps[steps.length - 1] ? undefined : next
  useKeyboard({
    run,
    steps: hasSlider ? steps : [],
    step,
    route,
    navigate,
    stepForRoute,
    shownPanes,
    setTheme,
    setHelpOpen,
  })
  const labels = useMemo(() => (index ? labelRuns(index) : new Map<string, string>()), [index])
  const experiments = useMemo(
    () => (index && index.runs.length > 1 && !source.live ? labelExperiments(index) : []),
    [index, source],
  )

  if (errorText && !index) return <p class="note">{errorText}</p>
  if (!index || !pane || runs.length < runIds.length)
    return (
      <p class="muted loading" role="status">
        {errorText || (source.live ? "loading…" : "drawing…")}
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
  const nameRun = (id: string) => labels.get(id) ?? stripDate(id)
  const note =
    route.run && !requested
      ? `Run ${route.run} not found.`
      : isPrintView || !route.pane || pane.key === route.pane
        ? ""
        : `${run ? nameRun(run.id) : "This page"} has nothing to show under “${route.pane}”.`
  return (
    <>
      <PageHeader
        title={source.live && run ? stripDate(run.name) : index.title}
        fullTitle={source.live && run ? run.name : undefined}
        tabs={shownPanes.map((tab) => ({
          key: tab.key,
          title: titlePane(tab, selectedRun, runsByPane.get(tab)!, index),
          isSelected: tab === pane && !isPrintView,
          isEmpty: chosen !== undefined && !tab.applies({ run: selectedRun, index }),
        }))}
        onTab={(key) => navigate({ pane: key })}
        experiments={experiments}
        runId={isPrintView ? selectedRun?.id : run?.id}
        onRun={(id) => navigate({ run: id })}
        onTheme={() => setTheme(toggleTheme())}
        onPrint={() => navigate({ pane: PRINT_VIEW })}
        onHelp={() => setHelpOpen(!isHelpOpen)}
      >
        {hasSlider ? (
          <StepSlider
            steps={steps}
            step={step ?? 0}
            live={source.live && run?.state === "running"}
            onStep={(next) => navigate({ step: stepForRoute(next) }, { replace: true })}
          />
        ) : null}
      </PageHeader>
      {isHelpOpen ? <Help onClose={() => setHelpOpen(false)} /> : null}
      <main tabIndex={-1}>
        {[errorText, note].filter(Boolean).map((text) => (
          <p key={text} class="note" role="status">
            {text}
          </p>
        ))}
        {isPrintView ? (
          <Digest {...props} run={selectedRun} panes={shownPanes} />
        ) : isMissing ? (
          <MissingPane
            pane={pane}
            runName={run ? nameRun(run.id) : "This page"}
            others={firstOfGroups(applicableRuns, index).map(({ id }) => ({
              id,
              text: nameRun(id),
            }))}
            onRun={(id) => navigate({ run: id })}
          />
        ) : (
          <pane.component key={pane.key} {...props} />
        )}
      </main>
    </>
  )
}

/** The runs that a pane applies to; [null] if it applies without a run. */
function listRunsFor(pane: Pane, runs: Run[], index: Index): (Run | null)[] {
  const applicable = runs.filter((run) => pane.applies({ run, index }))
  return applicable.length || !pane.applies({ run: null, index }) ? applicable : [null]
}

/** One run for each group of seeds. */
function firstOfGroups(runs: (Run | null)[], index: Index): Run[] {
  const known = new Set<Group | Run>()
  return runs.filter((run): run is Run => {
    if (!run) return false
    const group = index.groups.find((group) => group.runs.includes(run.id)) ?? run
    const isFirst = !known.has(group)
    known.add(group)
    return isFirst
  })
}

/** Text of a pane's tab, for the run that it shows. */
function titlePane(
  pane: Pane,
  selectedRun: Run | null,
  applicable: (Run | null)[],
  index: Index,
): string {
  const run = applicable.includes(selectedRun) ? selectedRun : (applicable[0] ?? null)
  return pane.titleFor?.({ run, index }) ?? pane.title
}

/** How many links to other runs a pane without content has at most. */
const MAX_LINKED_RUNS = 12

/** Instead of a pane that has nothing of the chosen run: what is missing, and the runs that have it. */
function MissingPane({
  pane,
  runName,
  others,
  onRun,
}: {
  pane: Pane
  runName: string
  others: RunLabel[]
  onRun: (id: string) => void
}) {
  return (
    <section class="card missing" role="status">
      <p>
        <b>{runName}</b> has no {pane.missing ?? pane.title.toLowerCase()}.
      </p>
      {others.length ? (
        <p>
          Runs with {pane.title.toLowerCase()}:{" "}
          {others.slice(0, MAX_LINKED_RUNS).map(({ id, text }, position) => (
            <Fragment key={id}>
              {position ? " · " : ""}
              <button type="button" class="link" onClick={() => onRun(id)}>
                {text}
              </button>
            </Fragment>
          ))}
          {others.length > MAX_LINKED_RUNS ? (
            <span class="muted"> and {others.length - MAX_LINKED_RUNS} more in the selector</span>
          ) : null}
        </p>
      ) : null}
    </section>
  )
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
  // the same array as long as nothing changes: panes keep what they computed from it
  return useMemo(() => {
    const wanted = new Set(ids)
    return runs.filter((run) => wanted.has(run.id))
  }, [runs, key])
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
      const [layer, head] = getSelectedHead(run, route)
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
        layer: (offset) =>
          navigate({ layer: Math.min(layers - 1, Math.max(0, layer + offset)), head }),
        query: (offset) => {
          const lastQuery = findLastToken(run?.labels?.queries)
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
