// The attention view as an anywidget (anywidget.dev): Jupyter, VS Code, Colab, marimo.
//
// The model has `data`, the page data as JSON text, and what is selected: `step`, `layer`, `head`
// and `query`, each null until something is selected. Both sides may change the selection. The view
// is in a shadow root, so that neither the style of the notebook nor that of the view affects the
// other. Nothing is requested from a network.

import { render } from "preact"
import { useEffect, useMemo, useState } from "preact/hooks"

import "./style.css"
import { StepSlider } from "./components/step_slider"
import { EmbeddedSource, type DataSource } from "./data_source"
import { errorMessage } from "./format"
import attention from "./panes/attention"
import type { Navigate, Route } from "./route"
import { snapshotSteps, type Index, type Run } from "./run_data"
import type { Theme } from "./theme"

/** The part of anywidget's model that this file uses. */
interface WidgetModel {
  get(name: string): unknown
  set(name: string, value: unknown): void
  save_changes(): void
  on(event: string, callback: () => void): void
  off(event: string, callback: () => void): void
}

const SELECTION = ["step", "layer", "head", "query"] as const

/** The style sheet; build.mjs replaces this name by its text, with `:host` for `:root`. */
declare const WIDGET_STYLE: string

function renderWidget({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const root = el.shadowRoot ?? el.attachShadow({ mode: "open" })
  const style = document.createElement("style")
  style.textContent = WIDGET_STYLE
  const container = document.createElement("div")
  container.className = "widget"
  root.replaceChildren(style, container)
  render(<Widget model={model} host={el} />, container)
  return () => render(null, container)
}

function Widget({ model, host }: { model: WidgetModel; host: HTMLElement }) {
  const [errorText, setErrorText] = useState("")
  const [loaded, setLoaded] = useState<{ source: DataSource; index: Index; run: Run } | null>(null)
  const [route, navigate] = useModelRoute(model)
  const theme = useNotebookTheme(host)
  useEffect(() => {
    loadRun(String(model.get("data"))).then(setLoaded, (error) => setErrorText(errorMessage(error)))
  }, [model])
  const steps = useMemo(() => (loaded ? snapshotSteps(loaded.run) : []), [loaded])
  if (!loaded) return <p class="muted">{errorText || "drawing…"}</p>
  const step = route.step ?? steps[steps.length - 1]
  return (
    <main>
      <StepSlider
        steps={steps}
        step={step ?? 0}
        onStep={(next) => navigate({ step: next }, { replace: true })}
      />
      <attention.component
        {...loaded}
        runs={[loaded.run]}
        groups={loaded.index.groups}
        route={{ ...route, step }}
        navigate={navigate}
        theme={theme}
      />
    </main>
  )
}

async function loadRun(data: string): Promise<{ source: DataSource; index: Index; run: Run }> {
  const source = new EmbeddedSource(JSON.parse(data))
  const index = await source.index()
  return { source, index, run: await source.run(index.runs[0].id) }
}

/** The selection as a route; changes go to the model, and changes of the model to the view. */
function useModelRoute(model: WidgetModel): [Route, Navigate] {
  const readSelection = () =>
    Object.fromEntries(
      SELECTION.map((name) => [name, (model.get(name) as number | null) ?? undefined]),
    )
  const [route, setRoute] = useState<Route>(() => ({ pane: "attention", ...readSelection() }))
  useEffect(() => {
    const update = () => setRoute((previous) => ({ ...previous, ...readSelection() }))
    for (const name of SELECTION) model.on(`change:${name}`, update)
    return () => {
      for (const name of SELECTION) model.off(`change:${name}`, update)
    }
  }, [model])
  const navigate: Navigate = (changes) => {
    setRoute((previous) => ({ ...previous, ...changes }))
    for (const name of SELECTION) if (name in changes) model.set(name, changes[name] ?? null)
    model.save_changes()
  }
  return [route, navigate]
}

/** Light or dark, as the notebook says, or else the system. Set on the host, where the style reads it. */
function useNotebookTheme(host: HTMLElement): Theme {
  const [theme, setTheme] = useState(findNotebookTheme)
  useEffect(() => {
    const observer = new MutationObserver(() => setTheme(findNotebookTheme()))
    for (const element of [document.documentElement, document.body])
      observer.observe(element, { attributes: true })
    return () => observer.disconnect()
  }, [])
  host.dataset.theme = theme
  return theme
}

function findNotebookTheme(): Theme {
  const { body, documentElement } = document
  const isLight = body.dataset.jpThemeLight // JupyterLab and Notebook 7
  if (isLight) return isLight === "true" ? "light" : "dark"
  const names = `${body.className} ${body.dataset.theme ?? ""} ${documentElement.className} ${
    documentElement.dataset.theme ?? documentElement.getAttribute("theme") ?? ""
  }`
  if (/\bdark\b|vscode-dark|dark-theme/.test(names)) return "dark"
  if (/\blight\b|vscode-light/.test(names)) return "light"
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
}

export default { render: renderWidget }
