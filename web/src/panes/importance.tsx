// Importance: which heads the model needs, since when, and when they took their roles.

import { useMemo } from "preact/hooks"

import { Checkbox } from "../components/form_controls"
import { HeadName, ImportancePicture } from "../components/importance_picture"
import { LineChart, type ChartLine } from "../components/line_chart"
import { lineColour } from "../draw/colours"
import { Picture, type Table } from "../export"
import { formatCount, formatHead, formatInteger, formatNumber } from "../format"
import { getSelectedHead, isRole, type HeadIndex } from "../head_selection"
import {
  cellIndex,
  countColumnDecimals,
  currentColumn,
  decodeClass,
  formatChange,
  formatEstimate,
  rankHeads,
  type ClassValues,
  type Importance,
} from "../importance_data"
import type { PaneDefinition, PaneProps } from "../pane"
import type { Run } from "../run_data"
import type { Theme } from "../theme"

/** With more heads, only the most important ones are shown until all are asked for. */
const MAX_ROWS = 36

const MAX_PAIRS = 10

const METHODS: Record<string, string> = {
  mean: "its output is replaced by its mean over the examples",
  zero: "its output is set to 0",
  resample: "its output is taken from another example",
}

function ImportancePane(props: PaneProps) {
  const { run, route, navigate, theme } = props
  const importance = run?.importance
  if (!run || !importance) return null
  const values = decodeClass(importance, route.tokens ? String(route.tokens) : undefined)
  const ranked = rankHeads(importance, values)
  const isAll = route.all === "y" || ranked.length <= MAX_ROWS
  const heads = isAll ? ranked : ranked.slice(0, MAX_ROWS)
  const selected =
    route.layer === undefined && route.head === undefined ? ranked[0] : getSelectedHead(run, route)
  const shared = { importance, values, heads, run, selected, theme, navigate, step: route.step }
  return (
    <>
      <Explanation importance={importance} />
      <div class="toolbar">
        {importance.classes.length > 1 ? (
          <ClassChoice
            importance={importance}
            values={values}
            onChange={(tokens) => navigate({ tokens }, { replace: true })}
          />
        ) : null}
        {ranked.length > MAX_ROWS ? (
          <Checkbox
            label={`all ${formatInteger(ranked.length)} heads`}
            checked={isAll}
            onChange={(all) => navigate({ all: all ? "y" : undefined }, { replace: true })}
          />
        ) : null}
      </div>
      <section>
        <h2>
          Every head over training <small>{describeRows(importance, heads, ranked, values)}</small>
        </h2>
        <Picture name="importance-over-training" csv={() => tabulate(importance, ranked, values)}>
          <ImportancePicture {...shared} />
        </Picture>
      </section>
      <div class="columns">
        <SelectedHead {...shared} />
        <Pairs importance={importance} run={run} navigate={navigate} step={route.step} />
      </div>
      <HeadTable {...shared} />
    </>
  )
}

function Explanation({ importance }: { importance: Importance }) {
  const { method, data, metric, command, unit, smallest_change: smallest } = importance
  const undecided = !importance.has_enough_examples
    ? "There are too few examples to decide anything."
    : !importance.is_better_than_chance
      ? "At the end the model is not better than chance: nothing is decided."
      : ""
  return (
    <>
      <p>
        The importance of a head is the change of the {metric} when the head is removed:{" "}
        {describeMethod(method)}. Positive: the model needs it. Measured on {data} by{" "}
        <code>{command}</code>
      </p>
      <p class="muted">
        A head is <b>necessary</b> if the {metric} rises beyond chance, corrected for the number of
        heads, and by at least 1 % of what the model has learned
        {smallest === null ? "" : ` (${Number(smallest.toPrecision(2))} ${unit})`}. ± are standard
        errors over examples. {undecided}
      </p>
    </>
  )
}

/** Names of methods, such as `mean` or `pattern uniform`, in words. */
function describeMethod(method: string): string {
  const [name, pattern] = method.split(" ")
  if (name === "pattern")
    return `its pattern is replaced (${pattern ?? "uniform"}), its values stay`
  return METHODS[name] ?? `removed by “${method}”`
}

function ClassChoice({
  importance,
  values,
  onChange,
}: {
  importance: Importance
  values: ClassValues
  onChange: (name: string | undefined) => void
}) {
  const first = importance.classes[0].name
  return (
    <label class="choice">
      <span class="muted">{importance.metric} of </span>
      <select
        aria-label="tokens"
        value={values.name}
        onChange={(event) =>
          onChange(event.currentTarget.value === first ? undefined : event.currentTarget.value)
        }
      >
        {importance.classes.map(({ name, share }) => (
          <option key={name} value={name}>
            {share === null ? name : `${name}, ${formatNumber(100 * share)} %`}
          </option>
        ))}
      </select>
    </label>
  )
}

function describeRows(
  importance: Importance,
  heads: HeadIndex[],
  ranked: HeadIndex[],
  values: ClassValues,
): string {
  const count =
    heads.length < ranked.length
      ? `the first ${heads.length} of ${formatInteger(ranked.length)} heads`
      : formatCount(ranked.length, "head")
  const whole = importance.classes[0].name
  const marks = values.name === whole ? "" : `; marks: ${whole}`
  return `${count}, the most important at the end first; ${values.name}${marks}`
}

interface SharedProps {
  importance: Importance
  values: ClassValues
  heads: HeadIndex[]
  run: Run
  selected: HeadIndex
  step: number | undefined
  theme: Theme
  navigate: PaneProps["navigate"]
}

/** One head over training: its change with an interval, and the gradient's estimate. */
function SelectedHead({ importance, values, run, selected, step, theme, navigate }: SharedProps) {
  const lines = useMemo(
    () => buildLines(importance, values, selected, theme),
    [importance, values, selected.join(" "), theme],
  )
  const [layer, head] = selected
  const role = run.roles?.[layer]?.[head]
  const roleOnset = run.role_onsets?.[layer]?.[head]
  const onset = importance.onsets[layer]?.[head]
  const facts = [
    isRole(role)
      ? `${role}${roleOnset === null || roleOnset === undefined ? "" : ` since step ${formatInteger(roleOnset)}`}`
      : "no role",
    onset === null || onset === undefined
      ? importance.without_effect[layer]?.[head]
        ? "without effect at the end"
        : "not necessary at the end"
      : `necessary since step ${formatInteger(onset)}, half of it since ${formatStep(importance.half_onsets[layer]?.[head])}`,
  ]
  return (
    <section class="card">
      <h2>
        <HeadName run={run} step={step} head={selected} navigate={navigate} />{" "}
        <small>{facts.join("; ")}</small>
      </h2>
      {importance.steps.length > 1 ? (
        <LineChart
          title={`change of the ${importance.metric} without ${formatHead(layer, head)}`}
          unit={importance.unit}
          description="band: two standard errors"
          lines={lines}
          theme={theme}
          height={190}
          step={step}
          onStep={(step) => navigate({ step })}
        />
      ) : (
        <p>{formatHeadChange(importance, values, 0, selected)}</p>
      )}
    </section>
  )
}

function buildLines(
  importance: Importance,
  values: ClassValues,
  head: HeadIndex,
  theme: Theme,
): ChartLine[] {
  const indices = importance.steps.map((_, column) => cellIndex(importance, column, head))
  const finite = (value: number) => (Number.isFinite(value) ? value : null)
  const lines: ChartLine[] = [
    {
      label: `without it, ${values.name}`,
      steps: importance.steps,
      values: indices.map((index) => finite(values.change[index])),
      low: indices.map((index) => finite(values.change[index] - 2 * values.se[index])),
      high: indices.map((index) => finite(values.change[index] + 2 * values.se[index])),
      colour: lineColour(2, theme),
    },
  ]
  const { gradient } = values
  if (gradient)
    lines.push({
      label: "gradient estimate",
      steps: importance.steps,
      values: indices.map((index) => finite(gradient[index])),
      colour: lineColour(7, theme),
      isDashed: true,
    })
  return lines
}

function Pairs({
  importance,
  run,
  navigate,
  step,
}: Pick<SharedProps, "importance" | "run" | "navigate" | "step">) {
  if (!importance.pairs.length || importance.pair_step === null) return null
  const pairs = [...importance.pairs].sort(
    (a, b) =>
      Number(b.is_redundant) - Number(a.is_redundant) ||
      Math.abs(b.interaction ?? 0) - Math.abs(a.interaction ?? 0),
  )
  const shown = pairs.slice(0, MAX_PAIRS)
  const decimals = countColumnDecimals(shown.map((pair) => pair.interaction_se))
  return (
    <section class="card">
      <h2>
        Pairs <small>removed together, at step {formatInteger(importance.pair_step)}</small>
      </h2>
      <div class="scroll-x">
        <table class="importance-table">
          <thead>
            <tr>
              <th>heads</th>
              <th class="right">both removed, {importance.unit}</th>
              <th class="right">interaction</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {shown.map((pair) => (
              <tr key={`${pair.first} ${pair.second}`}>
                <td>
                  <HeadName run={run} step={step} head={pair.first} navigate={navigate} />
                  {", "}
                  <HeadName run={run} step={step} head={pair.second} navigate={navigate} />
                </td>
                <td class="right">{formatChange(pair.both, pair.both_se, "", decimals)}</td>
                <td class="right">
                  {formatChange(pair.interaction, pair.interaction_se, "", decimals)}
                </td>
                <td>{pair.is_redundant ? "redundant" : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="muted">
        Interaction: what both cost beyond the sum of each alone; above 0, one can stand in for the
        other. Redundant: either alone does nothing, both together are necessary.
        {pairs.length > shown.length
          ? ` The ${shown.length} strongest of ${formatInteger(pairs.length)} measured pairs.`
          : ""}
      </p>
    </section>
  )
}

/** Numbers of the shown heads at the step of the slider. */
function HeadTable({ importance, values, heads, run, selected, step, navigate }: SharedProps) {
  const column = currentColumn(importance, step)
  const decimals = countColumnDecimals(
    heads.map((head) => values.se[cellIndex(importance, column, head)]),
  )
  return (
    <section>
      <h2>
        Heads at step {formatInteger(importance.steps[column])} <small>{values.name}</small>
      </h2>
      <div class="scroll-x">
        <table class="importance-table">
          <thead>
            <tr>
              <th>head</th>
              <th class="right">change, {importance.unit}</th>
              {values.gradient ? <th class="right">gradient estimate</th> : null}
              <th>role at the end</th>
              <th class="right">role since step</th>
              <th class="right">necessary since step</th>
              <th class="right">half of it since step</th>
            </tr>
          </thead>
          <tbody>
            {heads.map((head) => {
              const [layer, index] = head
              const role = run.roles?.[layer]?.[index]
              const isSelected = layer === selected[0] && index === selected[1]
              const position = cellIndex(importance, column, head)
              return (
                <tr key={`${head}`} class={isSelected ? "selected" : ""}>
                  <td>
                    <HeadName run={run} step={step} head={head} navigate={navigate} />
                  </td>
                  <td class="right">
                    {formatChange(values.change[position], values.se[position], "", decimals)}
                  </td>
                  {values.gradient ? (
                    <td class="right">{formatEstimate(values.gradient[position], decimals)}</td>
                  ) : null}
                  <td>{isRole(role) ? role : "–"}</td>
                  <td class="right">{formatStep(run.role_onsets?.[layer]?.[index])}</td>
                  <td class="right">
                    {importance.onsets[layer]?.[index] === null
                      ? importance.without_effect[layer]?.[index]
                        ? "without effect"
                        : "–"
                      : formatStep(importance.onsets[layer]?.[index])}
                  </td>
                  <td class="right">{formatStep(importance.half_onsets[layer]?.[index])}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function formatStep(step: number | null | undefined): string {
  return step === null || step === undefined ? "–" : formatInteger(step)
}

function formatHeadChange(
  importance: Importance,
  values: ClassValues,
  column: number,
  head: HeadIndex,
): string {
  const index = cellIndex(importance, column, head)
  return formatChange(values.change[index], values.se[index])
}

/** A row per head and step. */
function tabulate(importance: Importance, heads: HeadIndex[], values: ClassValues): Table {
  return {
    head: ["head", "step", "tokens", "change", "standard error", "loss", "gradient estimate"],
    rows: heads.flatMap((head) =>
      importance.steps.map((step, column) => {
        const index = cellIndex(importance, column, head)
        return [
          formatHead(...head),
          step,
          values.name,
          values.change[index],
          values.se[index],
          importance.loss[column],
          values.gradient ? values.gradient[index] : null,
        ]
      }),
    ),
  }
}

/** The first measured run of the page. */
function ImportanceDigest({ runs, theme, navigate }: PaneProps) {
  const run = runs.find(({ importance }) => importance)
  const importance = run?.importance
  if (!run || !importance) return null
  const values = decodeClass(importance, undefined)
  const heads = rankHeads(importance, values).slice(0, 16)
  return (
    <div class="digest-block">
      <h2>
        Importance of heads <small>change of the {importance.metric} when a head is removed</small>
      </h2>
      <ImportancePicture
        {...{ importance, values, heads, run, theme, navigate }}
        step={undefined}
        selected={[-1, -1]}
      />
    </div>
  )
}

export default {
  title: "Importance",
  missing: "importance of heads: it is measured by the command neural ablate",
  order: 35,
  component: ImportancePane,
  digest: ImportanceDigest,
  hasStepSlider: true,
  applies: ({ run }) => Boolean(run?.importance),
} satisfies PaneDefinition
