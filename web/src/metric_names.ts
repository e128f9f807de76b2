// Names of metrics for readers: `valid/f1_within_1` → `F1 within 1`.

import { formatName } from "./format"

/** Words of metric names that are abbreviations. */
const ABBREVIATIONS: Record<string, string> = {
  f1: "F1",
  saif: "SAIF",
  pk: "Pk",
  mae: "mean absolute error",
  rmse: "RMSE",
  r2: "R²",
  roc: "ROC",
  pr: "PR",
  auc: "AUC",
}

/** The name of a metric without the data that it was measured on. */
export function formatMetric(name: string): string {
  return formatName(name.replace(/^(valid|test)\//, ""))
    .split(" ")
    .map((word) => ABBREVIATIONS[word] ?? word)
    .join(" ")
}
