// What a language model wrote while it learned, and how good it was in numbers.

import { lastUpTo, type Run } from "../model"
import { number, whole, words } from "../numbers"
import type { Pane, ViewProps } from "../pane"
import { Facts } from "../parts/table"

const PREFIX = "generation/"

function View({ run, place }: ViewProps) {
  if (!run) return null
  const steps = run.samples.map((one) => one.step)
  const now = Math.max(0, lastUpTo(steps, place.step ?? Infinity))
  const sample = run.samples[now]
  return (
    <>
      {sample ? <section class="card"><h2>After step {whole(sample.step)}</h2><pre class="sample">{sample.text}</pre></section> : null}
      <Scores run={run} unfolded={place.pane === "all"} />
      {run.samples.length > 1 ? (
        <section>
          <h2>All of them</h2>
          {run.samples.map((one) => <details key={one.step}><summary>step {whole(one.step)}</summary><pre class="sample">{one.text}</pre></details>)}
        </section>
      ) : null}
    </>
  )
}

function Scores({ run, unfolded }: { run: Run; unfolded: boolean }) {
  const known = (name: string) => run.scalars[name].values.filter((one): one is number => one !== null)
  const names = Object.keys(run.scalars).filter((name) => name.startsWith(PREFIX) && known(name).length)
  const meanings = Object.entries(run.scores ?? {}).map(([name, says]): [string, string] => [words(name), says])
  if (!names.length) return null
  return (
    <section>
      <h2>In numbers</h2>
      <div class="wide">
        <table>
          <thead><tr><th /><th class="right">first validation</th><th class="right">last validation</th><th class="right">real text</th></tr></thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td>{words(name.slice(PREFIX.length))}</td>
                <td class="right">{number(known(name)[0])}</td>
                <td class="right">{number(known(name).at(-1))}</td>
                <td class="right">{number(run.real[name])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {meanings.length ? <details open={unfolded}><summary>What they say</summary><Facts rows={meanings} /></details> : null}
    </section>
  )
}

export const samples: Pane = {
  key: "samples", title: "Samples", View, slides: true,
  shown: (run) => run !== null && (run.samples.length > 0 || Object.keys(run.scalars).some((name) => name.startsWith(PREFIX))),
}
