// What a capture of attention shows: its layers and heads, their roles, and the heads that stand out.

import { formatCount, formatHead, formatName, formatNumber } from "../format"
import type { PaneProps } from "../pane"
import { countHeads, type Measure, type Run } from "../run_data"
import type { FigureData } from "../figure"
import { DescriptionList } from "./description_list"
import { FigureView } from "./figure_view"
import "../styles/overview.css"

/** Measure → what its largest value says about a head. */
const EXTREMES: [measure: string, end: "largest" | "smallest", text: string][] = [
  ["relative_entropy", "smallest", "attends most narrowly"],
  ["relative_entropy", "largest", "attends most broadly"],
  ["previous_token_mass", "largest", "attends most to the previous token"],
  ["induction_mass", "largest", "attends most to what followed the last occurrence of its token"],
  ["sink_mass", "largest", "attends most to the first key"],
  ["diagonal_mass", "largest", "attends most to its own position"],
  ["span", "largest", "looks furthest"],
]
const NO_ROLES = new Set(["", "mixed", "uniform"])
const isRole = (role: string) => !NO_ROLES.has(role)

interface NotableHead {
  layer: number
  head: number
  text: string
}

export function CaptureSummary(
  props: { run: Run } & Pick<PaneProps, "navigate" | "route" | "source" | "theme">,
) {
  const { run, navigate } = props
  const headCount = run.layers.reduce((sum, _, layer) => sum + countHeads(run, layer), 0)
  const tally = countRoles(run.roles ?? [])
  const notable = listNotableHeads(run)
  const show = (layer: number, head: number) => navigate({ pane: "attention", layer, head })
  const labels = Object.values(run.layer_labels ?? {}).find((entry) => entry.keys.length)
  const keys = run.labels?.keys ?? labels?.keys ?? []
  const rows: [string, string][] = [
    ["captured", describeHeads(run, headCount)],
    ...(keys.length ? [["tokens", describeTokens(keys)] as [string, string]] : []),
    ["layers", describeNames(run.layers)],
  ]
  const grid: FigureData = {
    kind: "head_grid",
    run: run.id,
    tone: "note",
    heads: run.layers.map((_, layer) => countHeads(run, layer)),
    step: run.map_steps[0] ?? null,
    marks: tally.flatMap(({ role, heads }) =>
      isRole(role)
        ? heads.map(([layer, head]) => ({
            layer,
            head,
            label: role,
            detail: "",
            onset: null,
            map_steps: run.map_steps,
          }))
        : [],
    ),
  }
  return (
    <div class="columns">
      <section class="card">
        <h2>One forward pass</h2>
        <DescriptionList rows={rows} />
        {run.notes.map((text) => (
          <p key={text} class="note">
            {text}
          </p>
        ))}
      </section>
      {tally.length ? (
        <section class="card">
          <h2>
            Roles{" "}
            <small>
              {countWithRole(tally)} of {formatCount(headCount, "head")} have one
            </small>
          </h2>
          <div class="capture-heads">
            <FigureView {...props} figure={grid} runs={[run]} isCard />
          </div>
          <ul class="role-tally">
            {tally.map(({ role, heads }) => (
              <li key={role}>
                <b>{heads.length}</b> {role}{" "}
                {isRole(role) ? <HeadLinks heads={heads} onHead={show} /> : null}
              </li>
            ))}
          </ul>
        </section>
      ) : null}
      {notable.length ? (
        <section class="card">
          <h2>Heads that stand out</h2>
          <ul class="role-tally">
            {notable.map(({ layer, head, text }) => (
              <li key={text}>
                <HeadLinks heads={[[layer, head]]} onHead={show} /> {text}
              </li>
            ))}
          </ul>
        </section>
      ) : null}
    </div>
  )
}

const MAX_LINKED_HEADS = 8

function HeadLinks({
  heads,
  onHead,
}: {
  heads: [number, number][]
  onHead: (layer: number, head: number) => void
}) {
  return (
    <>
      {heads.slice(0, MAX_LINKED_HEADS).map(([layer, head]) => (
        <button
          type="button"
          key={`${layer} ${head}`}
          class="link head-link"
          onClick={() => onHead(layer, head)}
        >
          {formatHead(layer, head)}
        </button>
      ))}
      {heads.length > MAX_LINKED_HEADS ? (
        <span class="muted"> and {heads.length - MAX_LINKED_HEADS} more</span>
      ) : null}
    </>
  )
}

function describeHeads(run: Run, headCount: number): string {
  const perLayer = new Set(run.layers.map((_, layer) => countHeads(run, layer)))
  const layers = formatCount(run.layers.length, "layer")
  const [heads] = perLayer
  return perLayer.size === 1
    ? `${layers} × ${formatCount(heads, "head")} = ${headCount}`
    : `${layers}, ${formatCount(headCount, "head")} in all`
}

function describeTokens(keys: string[]): string {
  const text = keys.slice(0, 12).join(keys.some((key) => key.length > 1) ? " " : "")
  return `${keys.length}: ${text}${keys.length > 12 ? " …" : ""}`
}

function describeNames(names: string[]): string {
  return names.length <= 3 ? names.join(", ") : `${names[0]} … ${names[names.length - 1]}`
}

function countRoles(roles: string[][]): { role: string; heads: [number, number][] }[] {
  const heads = new Map<string, [number, number][]>()
  for (const [layer, names] of roles.entries())
    for (const [head, role] of names.entries())
      if (role) heads.set(role, [...(heads.get(role) ?? []), [layer, head]])
  const rank = (role: string) => (isRole(role) ? 0 : 1)
  return [...heads]
    .map(([role, members]) => ({ role, heads: members }))
    .sort((a, b) => rank(a.role) - rank(b.role) || b.heads.length - a.heads.length)
}

function countWithRole(tally: { role: string; heads: unknown[] }[]): number {
  return tally.filter(({ role }) => isRole(role)).reduce((sum, { heads }) => sum + heads.length, 0)
}

/** The head with the smallest or largest value of each measure that the capture has. */
function listNotableHeads(run: Run): NotableHead[] {
  return EXTREMES.flatMap(([name, end, text]) => {
    const measure = run.measures[name]
    const extreme = measure?.axes === "head" ? findExtreme(measure, end) : null
    if (!extreme) return []
    const { layer, head, value } = extreme
    return [{ layer, head, text: `${text}: ${formatName(name)} ${formatNumber(value)}` }]
  })
}

/** Null if the measure has fewer than two different values. */
function findExtreme(
  measure: Measure,
  end: "largest" | "smallest",
): { layer: number; head: number; value: number } | null {
  const columns = measure.shape[2]
  const values = [...measure.values].map((value, position) => ({ value, position }))
  const finite = values.filter(({ value }) => Number.isFinite(value))
  if (new Set(finite.map(({ value }) => value)).size < 2) return null
  const sign = end === "largest" ? 1 : -1
  const best = finite.reduce((a, b) => (sign * b.value > sign * a.value ? b : a))
  return {
    layer: Math.floor(best.position / columns),
    head: best.position % columns,
    value: best.value,
  }
}
