// Cross-validation: the score of every fold, the mean with its interval, and the comparison with the best.

import { formatNumber } from "../format"
import { formatMetric } from "../metric_names"
import type { CrossValidation } from "../run_data"
import { formatInterval } from "./run_table"

export function FoldTable({ title, table }: { title: string; table: CrossValidation }) {
  const hasComparison = table.rows.length > 1
  const seeds = Math.max(...table.rows.map((row) => row.seeds))
  return (
    <section>
      <h2>
        Cross-validation of {title}{" "}
        <small>
          {formatMetric(table.metric)} in each of {table.folds} folds
          {seeds > 1 ? `, means of ${seeds} seeds` : ""}; the interval is that of Nadeau and Bengio,
          because folds share training data
        </small>
      </h2>
      <div class="scroll-x">
        <table class="list fold-table">
          <thead>
            <tr>
              <th scope="col">experiment</th>
              {Array.from({ length: table.folds }, (_, index) => (
                <th key={index} scope="col" class="right">
                  fold {index + 1}
                </th>
              ))}
              <th scope="col" class="right">
                mean
              </th>
              <th scope="col" class="right">
                95 % interval
              </th>
              {hasComparison ? <th scope="col">against the best</th> : null}
            </tr>
          </thead>
          <tbody>
            {table.rows.map(({ label, folds, estimate, comparison }) => (
              <tr key={label}>
                <td>{label}</td>
                {folds.map((score, index) => (
                  <td key={index} class="right">
                    {formatNumber(score)}
                  </td>
                ))}
                <td class="right">
                  <b>{formatNumber(estimate.value)}</b>
                </td>
                <td class="right">{formatInterval(estimate)}</td>
                {hasComparison ? <td>{describeComparison(comparison)}</td> : null}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function describeComparison(comparison: CrossValidation["rows"][number]["comparison"]): string {
  if (!comparison) return "best"
  const p = comparison.p === null ? "" : `, p = ${formatNumber(comparison.p)}`
  return `${comparison.verdict === "undecided" ? "not decided" : comparison.verdict}${p}`
}
