// The header of the page: title, tabs, run selector and buttons. On narrow screens the tabs scroll.

import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"

import type { LabelledExperiment } from "../run_labels"

export interface Tab {
  key: string
  title: string
  isSelected: boolean
  /** Whether the pane has nothing to show for the selected run. */
  isEmpty: boolean
}

interface Props {
  title: string
  /** The full name, if `title` is shortened. */
  fullTitle?: string
  tabs: Tab[]
  onTab: (key: string) => void
  /** Runs to choose from; empty where there is nothing to choose. */
  experiments: LabelledExperiment[]
  runId: string | undefined
  onRun: (id: string) => void
  onTheme: () => void
  onPrint: () => void
  onHelp: () => void
  /** The step slider. */
  children?: ComponentChildren
}

export function PageHeader(props: Props) {
  return (
    <header>
      <button
        type="button"
        class="skip-link"
        onClick={() => document.querySelector<HTMLElement>("main")?.focus()}
      >
        skip to content
      </button>
      <div class="bar">
        <h1 class="title" title={props.fullTitle}>
          {props.title}
        </h1>
        <Tabs tabs={props.tabs} onTab={props.onTab} />
        <span class="right">
          {props.experiments.length ? (
            <RunSelect experiments={props.experiments} runId={props.runId} onRun={props.onRun} />
          ) : null}
          <button
            type="button"
            class="icon"
            aria-label="theme"
            title="light or dark (t)"
            onClick={props.onTheme}
          >
            ◐
          </button>
          <button
            type="button"
            class="icon"
            aria-label="print"
            title="a digest of all experiments, to print or to save as PDF"
            onClick={props.onPrint}
          >
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <path d="M4.5 6V2.5h7V6M4.5 11.5h-2v-5h11v5h-2M4.5 9.5h7v4h-7z" />
            </svg>
          </button>
          <button
            type="button"
            class="icon"
            aria-label="help"
            title="keys (?)"
            onClick={props.onHelp}
          >
            ?
          </button>
        </span>
      </div>
      {props.children}
    </header>
  )
}

function RunSelect({
  experiments,
  runId,
  onRun,
}: {
  experiments: LabelledExperiment[]
  runId: string | undefined
  onRun: (id: string) => void
}) {
  return (
    <select
      aria-label="run"
      value={runId}
      onChange={(event) => onRun(event.currentTarget.value)}
      title="the run that all tabs show"
    >
      {experiments.map(({ title, runs }) => {
        const options = runs.map(({ id, text }) => (
          <option key={id} value={id}>
            {text}
          </option>
        ))
        // an experiment of one run would repeat its title
        return runs.length > 1 ? (
          <optgroup key={title} label={title}>
            {options}
          </optgroup>
        ) : (
          options
        )
      })}
    </select>
  )
}

/** Tabs in one line. Where they do not fit, the hidden side fades and has an arrow that scrolls. */
function Tabs({ tabs, onTab }: { tabs: Tab[]; onTab: (key: string) => void }) {
  const list = useRef<HTMLElement>(null)
  const [hidden, setHidden] = useState({ left: false, right: false })
  const selectedKey = tabs.find((tab) => tab.isSelected)?.key
  const tabKeys = tabs.map((tab) => tab.key).join(" ")
  useEffect(() => {
    const element = list.current!
    const update = () => {
      const { scrollLeft, clientWidth, scrollWidth } = element
      const next = {
        left: scrollLeft > 1,
        right: scrollLeft + clientWidth < scrollWidth - 1,
      }
      setHidden((known) => (known.left === next.left && known.right === next.right ? known : next))
    }
    const observer = new ResizeObserver(update)
    observer.observe(element)
    element.addEventListener("scroll", update, { passive: true })
    update()
    return () => {
      observer.disconnect()
      element.removeEventListener("scroll", update)
    }
  }, [tabKeys])
  useEffect(() => {
    // within the list only: scrollIntoView would also scroll the page
    const [element, tab] = [list.current!, list.current!.querySelector<HTMLElement>(".selected")]
    if (tab) element.scrollLeft = tab.offsetLeft - (element.clientWidth - tab.offsetWidth) / 2
  }, [selectedKey, tabKeys])
  const scroll = (direction: number) => {
    const element = list.current!
    element.scrollBy({ left: direction * 0.7 * element.clientWidth })
  }
  return (
    <div class={`tabs${hidden.left ? " hidden-left" : ""}${hidden.right ? " hidden-right" : ""}`}>
      {hidden.left ? <TabArrow text="‹" class="arrow-left" onClick={() => scroll(-1)} /> : null}
      <nav aria-label="tabs" ref={list}>
        {tabs.map((tab, position) => (
          <button
            type="button"
            key={tab.key}
            class={tab.isSelected ? "selected" : ""}
            title={
              tab.isEmpty
                ? "nothing of the selected run"
                : position < 10
                  ? `key ${(position + 1) % 10}`
                  : undefined
            }
            aria-current={tab.isSelected ? "page" : undefined}
            onClick={() => onTab(tab.key)}
          >
            {tab.title}
          </button>
        ))}
      </nav>
      {hidden.right ? <TabArrow text="›" class="arrow-right" onClick={() => scroll(1)} /> : null}
    </div>
  )
}

/** For pointers only: the keyboard reaches every tab, which scrolls by itself. */
function TabArrow(props: { text: string; class: string; onClick: () => void }) {
  return (
    <button
      type="button"
      class={`arrow ${props.class}`}
      tabIndex={-1}
      aria-hidden="true"
      onClick={props.onClick}
    >
      {props.text}
    </button>
  )
}
