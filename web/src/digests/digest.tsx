// The digest: a few pages that show all experiments of the page. It is what is printed.
//
// Its parts are those of the panes that declare one (`digest` of PaneDefinition). Every part is bounded, so that a report of hundreds of runs still prints on a few pages.

import "../styles/digest.css"

import { formatCount, formatSetting } from "../format"
import type { Pane, PaneProps } from "../pane"
import type { Run } from "../run_data"
import { DescriptionList } from "../components/description_list"

const MAX_DESCRIBED = 4
const MAX_SETTINGS = 16
const MAX_VALUES = 4
const MAX_VALUE_LENGTH = 90
/** Settings that are known from the headings or that say nothing to a reader of a printed page. */
const UNTOLD_SETTINGS = new Set(["name", "training.seed", "vocabulary", "fingerprint"])

export function Digest({ panes, ...props }: PaneProps & { panes: Pane[] }) {
  const { index, runs } = props
  const position = (pane: Pane) => pane.digestOrder ?? pane.order
  const parts = [...panes].sort((a, b) => position(a) - position(b))
  return (
    <article class="digest">
      <p class="muted screen-only">
        A digest of this page.{" "}
        <button type="button" class="action" onClick={() => print()}>
          print or save as PDF
        </button>
      </p>
      <h1>{index.title}</h1>
      {index.experiments?.length ? (
        <p class="muted">
          {formatCount(runs.length, "run")} in {formatCount(index.experiments.length, "experiment")}
        </p>
      ) : null}
      {parts.map((pane) =>
        pane.digest ? (
          <section key={pane.key} class={`digest-${pane.key}`}>
            <pane.digest {...props} />
          </section>
        ) : null,
      )}
      <SettingsDigest {...props} />
    </article>
  )
}

/** Settings that differ from the default, by experiment; several values where its runs differ. */
function SettingsDigest({ runs, index }: PaneProps) {
  const experiments = index.experiments?.length
    ? index.experiments
    : [{ title: index.title, runs: runs.map((run) => run.id) }]
  const described = experiments.slice(0, MAX_DESCRIBED).flatMap((experiment) => {
    const rows = listSettings(runs.filter(({ id }) => experiment.runs.includes(id)))
    return rows.length ? [{ title: experiment.title, rows }] : []
  })
  if (!described.length) return null
  return (
    <section>
      <h2>
        Settings <small>that differ from the default</small>
      </h2>
      <div class="digest-columns">
        {described.map(({ title, rows }) => (
          <div key={title} class="digest-block">
            <h3>{title}</h3>
            <DescriptionList rows={rows} />
          </div>
        ))}
      </div>
      {experiments.length > MAX_DESCRIBED ? (
        <p class="muted">
          and those of {formatCount(experiments.length - MAX_DESCRIBED, "more experiment")}
        </p>
      ) : null}
    </section>
  )
}

function listSettings(runs: Run[]): [string, string][] {
  const keys = [...new Set(runs.flatMap((run) => run.changed_settings))].filter(
    (key) => !UNTOLD_SETTINGS.has(key),
  )
  const rows = keys.flatMap((key): [string, string][] => {
    const values = [...new Set(runs.map((run) => formatSetting(run.settings[key])))]
    if (values.some((value) => value.includes("\n"))) return [] // a program, too long for a digest
    const shown = values.slice(0, MAX_VALUES).map(shorten).join(" / ")
    return [[key, values.length > MAX_VALUES ? `${shown} / …` : shown]]
  })
  if (rows.length > MAX_SETTINGS)
    return [...rows.slice(0, MAX_SETTINGS), ["", `and ${rows.length - MAX_SETTINGS} more`]]
  return rows
}

function shorten(text: string): string {
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text
}
