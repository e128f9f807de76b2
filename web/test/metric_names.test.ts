import assert from "node:assert/strict"
import { test } from "node:test"

import { formatMetric } from "../src/metric_names"

test("names of metrics lose their data set and keep abbreviations", () => {
  assert.equal(formatMetric("valid/f1_within_1"), "F1 within 1")
  assert.equal(formatMetric("valid/loss"), "loss")
  assert.equal(formatMetric("saif"), "SAIF")
  assert.equal(formatMetric("roc_auc"), "ROC AUC")
})
