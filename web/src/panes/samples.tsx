// Samples that a language model generated during training: several steps side by side, with scores.

import { SamplesDigest } from "../digests/samples"
import { formatInteger, formatName, formatNumber } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import type { Navigate } from "../route"
import { lastIndexUpTo, type Run } from "../run_data"
import {
  chooseSamples,
  MAX_COLUMNS,
  explainScore,
  parseSteps,
  SCORE_PREFIX,
  type SampleColumn,
} from "../sample_columns"
import "../styles/samples.css"

function SamplesPane({ run, route, navigate }: PaneProps) {
  if (!run) return null
  if (!run.samples.length && !listScores(run).length) return <HowToSample />
  const columns = chooseSamples(
    run.samples.map((sample) => sample.step),
    parseSteps(route.samples),
    route.step,
  )
  return (
    <>
      {columns.length ? (
        <>
          {run.samples.length > columns.length ? (
            <p class="muted">
              {columns.length} of {formatInteger(run.samples.length)} samples; choose other steps
              above a text, or move the slider.
            </p>
          ) : null}
          <div class="sample-columns">
            {columns.map((column, index) => (
              <SampleCard
                key={index}
                run={run}
                column={column}
                onStep={(step) => navigate(replaceStep(columns, index, step), { replace: true })}
              />
            ))}
          </div>
        </>
      ) : null}
      <SampleScores run={run} steps={columns.map((column) => column.step)} />
      {columns.some((column) => column.role === "chosen") ? (
        <p>
          <ResetButton navigate={navigate} />
        </p>
      ) : null}
    </>
  )
}

function HowToSample() {
  return (
    <section class="card">
      <h2>No samples</h2>
      <p>
        This language model was trained without samples. To see what it writes while it learns,
        train it with
      </p>
      <pre>neural train EXPERIMENT.yaml --samples "{"{number: 4, length: 200}"}"</pre>
      <p>
        Text of the finished model: <code>neural generate RUN --prompt "…"</code>
      </p>
    </section>
  )
}

/** The address after another step was chosen in a column. */
function replaceStep(columns: SampleColumn[], index: number, step: number) {
  const steps = columns.map((column, position) => (position === index ? step : column.step))
  return { samples: [...new Set(steps)].sort((a, b) => a - b).join(",") }
}

function ResetButton({ navigate }: { navigate: Navigate }) {
  return (
    <button
      type="button"
      class="link"
      onClick={() => navigate({ samples: undefined }, { replace: true })}
    >
      first, middle and last again
    </button>
  )
}

function SampleCard({
  run,
  column,
  onStep,
}: {
  run: Run
  column: SampleColumn
  onStep: (step: number) => void
}) {
  const sample = run.samples.find((entry) => entry.step === column.step)
  return (
    <section class="card" data-step={column.step}>
      <h2>
        <label>
          Step{" "}
          <select
            aria-label={`step of the ${column.role} sample`}
            value={column.step}
            onChange={(event) => onStep(Number(event.currentTarget.value))}
          >
            {run.samples.map(({ step }) => (
              <option key={step} value={step}>
                {formatInteger(step)}
              </option>
            ))}
          </select>
        </label>{" "}
        <small>{column.role}</small>
      </h2>
      <pre class="sample">{sample?.text}</pre>
    </section>
  )
}

/** Names of the scores with a finite value. */
function listScores(run: Run): string[] {
  return Object.keys(run.scalars).filter(
    (name) =>
      name.startsWith(SCORE_PREFIX) && run.scalars[name].values.some((value) => value !== null),
  )
}

function SampleScores({ run, steps }: { run: Run; steps: number[] }) {
  const names = listScores(run)
  if (!names.length) return null
  // scores without samples: those of the first and of the last validation
  const logged = run.scalars[names[0]].steps
  const shownSteps = steps.length ? steps : [...new Set([logged[0], logged[logged.length - 1]])]
  return (
    <section>
      <h2>
        Scores <small>of all samples of a validation; a name explains itself on hover</small>
      </h2>
      <div class="scroll-x">
        <table class="sample-scores">
          <thead>
            <tr>
              <th />
              {shownSteps.map((step) => (
                <th key={step} class="right">
                  step {formatInteger(step)}
                </th>
              ))}
              <th class="right">real text</th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => {
              const meaning = explainScore(name, run.scores ?? {})
              return (
                <tr key={name}>
                  <td>
                    <abbr title={meaning}>{formatName(name.slice(SCORE_PREFIX.length))}</abbr>
                  </td>
                  {shownSteps.map((step) => (
                    <td key={step} class="right">
                      {formatNumber(scoreAt(run, name, step))}
                    </td>
                  ))}
                  <td class="right">{formatNumber(run.real_text[name])}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function scoreAt(run: Run, name: string, step: number): number | null {
  const { steps, values } = run.scalars[name]
  const index = lastIndexUpTo(steps, step)
  return index < 0 ? null : values[index]
}

export default {
  title: "Samples",
  digest: SamplesDigest,
  missing: "samples, which language models write during training",
  order: 70,
  component: SamplesPane,
  // few samples are all shown, at any step
  hasStepSlider: (run) => (run?.samples.length ?? 0) > MAX_COLUMNS,
  applies: ({ run }) =>
    run !== null &&
    (run.samples.length > 0 ||
      run.settings.task === "language_model" ||
      Object.keys(run.scalars).some((name) => name.startsWith(SCORE_PREFIX))),
} satisfies PaneDefinition
