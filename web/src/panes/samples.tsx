// Samples that a language model generated during training, with their quality scores.

import { lastIndexUpTo, type Run } from "../run_data"
import { formatNumber, formatInteger, formatName } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import { DescriptionList } from "../components/description_list"

const SCORE_PREFIX = "generation/"

function SamplesPane({ run, route }: PaneProps) {
  if (!run) return null
  const steps = run.samples.map((sample) => sample.step)
  const current = Math.max(0, lastIndexUpTo(steps, route.step ?? Infinity))
  const sample = run.samples[current]
  return (
    <>
      {sample ? (
        <section class="card">
          <h2>After step {formatInteger(sample.step)}</h2>
          <pre class="sample">{sample.text}</pre>
        </section>
      ) : null}
      <SampleScores run={run} isOpen={route.pane === "all"} />
      {run.samples.length > 1 ? (
        <section>
          <h2>All samples</h2>
          {run.samples.map((sample) => (
            <details key={sample.step}>
              <summary>step {formatInteger(sample.step)}</summary>
              <pre class="sample">{sample.text}</pre>
            </details>
          ))}
        </section>
      ) : null}
    </>
  )
}

function SampleScores({ run, isOpen }: { run: Run; isOpen: boolean }) {
  const finiteValues = (name: string) =>
    run.scalars[name].values.filter((value): value is number => value !== null)
  const names = Object.keys(run.scalars).filter(
    (name) => name.startsWith(SCORE_PREFIX) && finiteValues(name).length,
  )
  const meanings = Object.entries(run.scores ?? {}).map(([name, meaning]): [string, string] => [
    formatName(name),
    meaning,
  ])
  if (!names.length) return null
  return (
    <section>
      <h2>Scores</h2>
      <div class="scroll-x">
        <table>
          <thead>
            <tr>
              <th />
              <th class="right">first validation</th>
              <th class="right">last validation</th>
              <th class="right">real text</th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td>{formatName(name.slice(SCORE_PREFIX.length))}</td>
                <td class="right">{formatNumber(finiteValues(name)[0])}</td>
                <td class="right">{formatNumber(finiteValues(name).at(-1))}</td>
                <td class="right">{formatNumber(run.real_text[name])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {meanings.length ? (
        <details open={isOpen}>
          <summary>What the scores measure</summary>
          <DescriptionList rows={meanings} />
        </details>
      ) : null}
    </section>
  )
}

export default {
  title: "Samples",
  order: 70,
  component: SamplesPane,
  hasStepSlider: true,
  applies: ({ run }) =>
    run !== null &&
    (run.samples.length > 0 ||
      Object.keys(run.scalars).some((name) => name.startsWith(SCORE_PREFIX))),
} satisfies PaneDefinition
