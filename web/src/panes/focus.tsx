// Focus: paradigms compared by scores, mosaics on which they disagree, claims and training curves.

import { useMemo } from "preact/hooks"

import { useChartGroup } from "../chart_group"
import { ClaimList } from "../components/focus_claims"
import { DotPlot, type DotRow } from "../components/dot_plot"
import { Select } from "../components/form_controls"
import { LineChart, type ChartLine } from "../components/line_chart"
import { Mosaic } from "../components/mosaic"
import { lineColour } from "../draw/colours"
import { Picture } from "../export"
import { focusAt, type FocusData, type FocusGroup, type Mosaics } from "../focus_data"
import { formatInteger } from "../format"
import type { PaneData, PaneDefinition, PaneProps } from "../pane"
import type { Experiment } from "../run_data"
import "../styles/focus.css"
import type { Theme } from "../theme"

interface ScoreText {
  title: string
  describe: (focus: FocusData) => string
  isShare?: boolean
}

const SCORES: Record<string, ScoreText> = {
  saif: {
    title: "SAIF",
    describe: (focus) => `right ${focus.noun} and right class, both surely`,
    isShare: true,
  },
  accuracy: { title: "accuracy", describe: () => "right class", isShare: true },
  focus_accuracy: {
    title: "focus accuracy",
    describe: (focus) => `largest weight on the right ${focus.noun}`,
    isShare: true,
  },
  focus_confidence: {
    title: "largest weight",
    describe: () => "mean over examples; 1: all focus on one",
    isShare: true,
  },
  steps_to_target: {
    title: "steps to 90 % accuracy",
    describe: () => "median over seeds, on validation examples",
  },
  classifier_calls: {
    title: "classifier calls",
    describe: () => "per example and training step: the cost",
  },
}

const CURVE_TITLES: Record<string, string> = {
  saif: "SAIF",
  accuracy: "accuracy",
  focus_accuracy: "focus accuracy",
}

function findExperiment({ run, index }: PaneData): Experiment | undefined {
  return index.experiments?.find(
    (experiment) => experiment.focus && run && experiment.runs.includes(run.id),
  )
}

function FocusPane(props: PaneProps) {
  const experiment = findExperiment(props)
  if (!experiment?.focus) return null
  return <Comparison {...props} experiment={experiment} focus={experiment.focus} />
}

interface ComparisonProps extends PaneProps {
  experiment: Experiment
  focus: FocusData
}

function Comparison({ experiment, focus, run, route, navigate, theme }: ComparisonProps) {
  const ownGroup = focus.groups.find((group) => run && group.runs.includes(run.id))
  const counts = focus.segment_counts
  const segments =
    counts.find((count) => String(count) === String(route.segments)) ??
    ownGroup?.segments ??
    counts[counts.length - 1]
  const groups = focus.groups.filter((group) => group.segments === segments)
  const mosaics = focus.mosaics.find((entry) => entry.segments === segments)
  const paradigms = Object.keys(focus.descriptions)
  const colourOf = (paradigm: string) => lineColour(paradigms.indexOf(paradigm), theme)
  const nameOf = (paradigm: string) => focus.descriptions[paradigm]?.name ?? paradigm
  // these do not depend on the step: moving the slider draws only the mosaics again
  const scores = useMemo(
    () => <ScoreSection focus={focus} groups={groups} colourOf={colourOf} nameOf={nameOf} />,
    [focus, segments, theme],
  )
  const claims = useMemo(() => <ClaimList focus={focus} />, [focus])
  return (
    <>
      <section class="focus-intro">
        <h2>{experiment.headline}</h2>
        {focus.headline_test ? (
          <p>
            {focus.headline_test}{" "}
            <span class="muted">A paired test over seeds, for the headline alone.</span>
          </p>
        ) : null}
        <p class="muted">
          An example has {counts.map(formatInteger).join(" or ")} {focus.noun}s
          {focus.noun === "segment" ? "" : ", its segments"}.{" "}
          {focus.noun === "word" ? "A few decide" : "One decides"} its class, and training is not
          told which. The model spreads its focus over them: weights that sum to 1.
        </p>
        {focus.groups.some((group) => group.scores.saif) ? (
          <p class="muted">
            <b>SAIF</b>: share of {focus.data} examples with more than {formatPercent(focus)} of the
            focus on the right {focus.noun} and more than {formatPercent(focus)} probability of the
            right class.
          </p>
        ) : null}
        <dl class="paradigms">
          {paradigms.map((paradigm) => (
            <div key={paradigm}>
              <dt>
                <i style={{ background: colourOf(paradigm) }} />
                {nameOf(paradigm)}
              </dt>
              <dd>{focus.descriptions[paradigm].text}</dd>
            </div>
          ))}
        </dl>
        {[...focus.notes, ...focus.warnings].map((text) => (
          <p key={text} class="note">
            {text}
          </p>
        ))}
        {counts.length > 1 ? (
          <Select
            label={`${focus.noun}s per example`}
            value={String(segments)}
            options={counts.map(String)}
            onChange={(value) => navigate({ segments: value })}
          />
        ) : null}
      </section>
      {scores}
      {mosaics ? (
        <MosaicSection
          {...{ focus, mosaics, colourOf, nameOf, navigate }}
          seed={route.seed === undefined ? undefined : Number(route.seed)}
          runId={run?.id}
          step={route.step ?? Infinity}
        />
      ) : (
        <section>
          <h2>Mosaics</h2>
          <p class="muted">
            These runs recorded no examples. Runs that are trained with this version record some at
            every validation.
          </p>
        </section>
      )}
      {claims}
      <CurveSection
        {...{ groups, colourOf, nameOf, theme, navigate }}
        step={route.step}
        isEager={route.pane === "print"}
      />
    </>
  )
}

interface Naming {
  colourOf: (paradigm: string) => string
  nameOf: (paradigm: string) => string
}

function ScoreSection({
  focus,
  groups,
  colourOf,
  nameOf,
}: Naming & { focus: FocusData; groups: FocusGroup[] }) {
  const seeds = Math.max(...groups.map((group) => group.seeds.length))
  return (
    <section>
      <h2>
        Scores{" "}
        <small>
          on {focus.data} examples
          {seeds > 1
            ? `; mean of ${seeds} seeds with 95 % interval, small circles: single seeds`
            : "; one seed"}
        </small>
      </h2>
      <div class="dot-plots">
        {Object.entries(SCORES).map(([name, { title, describe, isShare }]) => {
          const rows = groups.flatMap((group): DotRow[] =>
            group.scores[name]
              ? [
                  {
                    key: group.paradigm,
                    label: nameOf(group.paradigm),
                    colour: colourOf(group.paradigm),
                    score: group.scores[name],
                  },
                ]
              : [],
          )
          return rows.length ? (
            <DotPlot
              key={name}
              name={name}
              title={title}
              description={describe(focus)}
              rows={rows}
              isShare={isShare}
            />
          ) : null
        })}
      </div>
    </section>
  )
}

function MosaicSection({
  focus,
  mosaics,
  colourOf,
  nameOf,
  navigate,
  seed,
  runId,
  step,
}: Naming & {
  focus: FocusData
  mosaics: Mosaics
  navigate: PaneProps["navigate"]
  seed: number | undefined
  runId: string | undefined
  step: number
}) {
  const recorded = Object.entries(mosaics.runs)
  const seeds = [...new Set(recorded.map(([, entry]) => entry.seed))].sort((a, b) => a - b)
  const ownSeed = runId ? mosaics.runs[runId]?.seed : undefined
  const shownSeed = [seed, ownSeed].find((value) => value !== undefined && seeds.includes(value))
  const runs = recorded
    .map(([, entry]) => entry)
    .filter((entry) => entry.seed === (shownSeed ?? seeds[0]))
  const isComparison = new Set(runs.map((entry) => entry.paradigm)).size > 1
  const hidden = mosaics.segments - Math.max(...mosaics.examples.map(({ tiles }) => tiles.length))
  const shownStep = runs.length ? focusAt(runs[0], mosaics.examples, 0, step).step : 0
  return (
    <section data-step={shownStep}>
      <div class="focus-bar">
        <h2>
          {isComparison ? "Where the paradigms disagree" : "Examples"}{" "}
          <small>
            at step {formatInteger(shownStep)}
            {isComparison && mosaics.recorded > mosaics.examples.length
              ? `; ${mosaics.examples.length} of ${mosaics.recorded} recorded validation examples, those with the largest differences`
              : ""}
          </small>
        </h2>
        {seeds.length > 1 ? (
          <Select
            label="seed"
            value={String(shownSeed ?? seeds[0])}
            options={seeds.map(String)}
            onChange={(value) => navigate({ seed: value })}
          />
        ) : null}
      </div>
      <p class="muted">
        The brighter, the more focus; numbers are weights from .05 on. The framed {focus.noun}{" "}
        decides the class. Before a row: the predicted class and its probability.
        {hidden > 0
          ? ` ${formatInteger(hidden)} more ${focus.noun}s of each example are not shown.`
          : ""}
      </p>
      <div class="mosaics">
        {mosaics.examples.map((example, position) => (
          <article key={example.index} class="card mosaic-card">
            <Picture name={`mosaic-${example.index}-step-${shownStep}`}>
              <h3>
                class {focus.classes[example.label] ?? example.label}{" "}
                <small class="muted">validation example {formatInteger(example.index)}</small>
              </h3>
              <Mosaic
                example={example}
                imageShape={mosaics.image_shape}
                classes={focus.classes}
                noun={focus.noun}
                rows={runs.map((entry) => ({
                  label: nameOf(entry.paradigm),
                  colour: colourOf(entry.paradigm),
                  ...focusAt(entry, mosaics.examples, position, step),
                }))}
              />
            </Picture>
          </article>
        ))}
      </div>
    </section>
  )
}

function CurveSection({
  groups,
  colourOf,
  nameOf,
  theme,
  navigate,
  step,
  isEager,
}: Naming & {
  groups: FocusGroup[]
  theme: Theme
  navigate: PaneProps["navigate"]
  step: number | undefined
  isEager: boolean
}) {
  const chartGroup = useChartGroup()
  const charts = useMemo(
    () =>
      Object.entries(CURVE_TITLES).map(([name, title]) => ({
        name,
        title,
        lines: groups.flatMap((group): ChartLine[] => {
          const curve = group.curves[name]
          if (!curve) return []
          const hasBand = curve.low.some((value) => value !== null)
          return [
            {
              label: nameOf(group.paradigm),
              key: group.paradigm,
              steps: curve.steps,
              values: curve.value,
              ...(hasBand ? { low: curve.low, high: curve.high } : {}),
              colour: colourOf(group.paradigm),
            },
          ]
        }),
      })),
    [groups.map((group) => group.paradigm + group.segments).join(), theme],
  )
  const shown = charts.filter((chart) => chart.lines.length)
  if (!shown.length) return null
  const seeds = Math.max(...groups.map((group) => group.seeds.length))
  return (
    <section>
      <h2>
        During training{" "}
        <small>
          validation examples
          {seeds > 1 ? `; mean of ${seeds} seeds, bands: standard errors` : ""}
        </small>
      </h2>
      <div class="charts">
        {shown.map((chart) => (
          <LineChart
            key={chart.name}
            title={chart.title}
            lines={chart.lines}
            theme={theme}
            height={180}
            group={chartGroup}
            step={step}
            onStep={(next) => navigate({ step: next }, { replace: true })}
            isEager={isEager}
          />
        ))}
      </div>
    </section>
  )
}

function formatPercent(focus: FocusData): string {
  return focus.threshold === null ? "a threshold" : `${Math.round(100 * focus.threshold)} %`
}

export default {
  title: "Focus",
  order: 52,
  component: FocusPane,
  hasStepSlider: true,
  applies: (data) => Boolean(findExperiment(data)),
  missing: "paradigms to compare: only runs of the task focus have them",
} satisfies PaneDefinition
