import assert from "node:assert/strict"
import { test } from "node:test"

import {
  chooseLogTicks,
  chooseStepTicks,
  chooseTicks,
  findShownRange,
  isConstant,
  labelEnds,
  padRange,
  widenColourRange,
  type Ticks,
} from "../src/ticks"

/** The number that a label and its offset stand for. */
function readLabel(label: string, offset: string): number {
  const parse = (text: string) => {
    const suffix = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 }[text.slice(-1)] ?? 1
    return (
      Number(
        text
          .replace(/[kMGT]$/, "")
          .replaceAll("−", "-")
          .replaceAll(",", ""),
      ) * suffix
    )
  }
  return label.startsWith("+") ? parse(offset) + parse(label.slice(1)) : parse(label)
}

function checkTicks(ticks: Ticks, low: number, high: number): void {
  const where = `${low} … ${high}: ${ticks.offset} ${ticks.labels}`
  assert.ok(ticks.labels.length >= 2 && ticks.labels.length <= 12, where)
  assert.equal(new Set(ticks.labels).size, ticks.labels.length, where)
  assert.ok(
    ticks.labels.every((label) => label.length <= 11),
    where,
  )
  ticks.labels.forEach((label, index) => {
    const tolerance = 1e-3 * (high - low) + 4e-16 * Math.abs(high)
    assert.ok(Math.abs(readLabel(label, ticks.offset) - ticks.values[index]) <= tolerance, where)
    assert.ok(ticks.values[index] >= low - tolerance && ticks.values[index] <= high + tolerance)
  })
}

test("labels are distinct, short, and read as the number at which they stand", () => {
  const middles = [0, 1, 2.63, -2.63, 2.63265, 0.1, 1e-12, 1e12, -1e12, 123456.789, 3e-300, 7e200]
  const widths = [1e-9, 1e-6, 1e-3, 0.01, 0.3, 0.7, 1, 2, 9]
  for (const middle of middles)
    for (const width of widths) {
      const scale = middle === 0 ? 1 : Math.abs(middle)
      const [low, high] = padRange(middle - (width * scale) / 2, middle + (width * scale) / 2)
      for (const count of [2, 4, 6]) checkTicks(chooseTicks(low, high, count), low, high)
    }
  for (const value of [0, 1, -5, 2.63, 1e12, 1e-12]) {
    const [low, high] = padRange(value, value)
    assert.ok(low < value && value < high)
    checkTicks(chooseTicks(low, high, 5), low, high)
  }
})

test("a range that is tiny against its magnitude has an offset", () => {
  assert.deepEqual(chooseTicks(2.63, 2.630000001, 5), {
    values: [2.63, 2.6300000002, 2.6300000004, 2.6300000006, 2.6300000008, 2.630000001],
    labels: ["+0", "+2e−10", "+4e−10", "+6e−10", "+8e−10", "+1.0e−9"],
    offset: "2.63",
  })
  assert.deepEqual(chooseTicks(2.6326, 2.6327, 2).labels, ["2.63260", "2.63265", "2.63270"])
  assert.equal(chooseTicks(1e12, 1e12 + 5, 5).offset, "1,000,000,000,000")
})

test("logarithmic ticks: decades where there are many, digits within one", () => {
  assert.deepEqual(chooseLogTicks(1e-6, 1, 4).labels, ["1e−6", "0.0001", "0.01", "1"])
  assert.deepEqual(chooseLogTicks(0.9, 60, 6).labels, ["1", "2", "5", "10", "20", "50"])
  for (const [low, high] of [
    [2.6, 2.7],
    [2.63, 2.630000001],
    [1e-12, 1e12],
    [1, 11],
    [9.5, 10.5],
    [5e-12, 6e-12],
  ])
    checkTicks(chooseLogTicks(low, high, 5), low, high)
})

test("steps are whole and short", () => {
  assert.deepEqual(chooseStepTicks(0, 360, 4).labels, ["0", "100", "200", "300"])
  assert.deepEqual(chooseStepTicks(0, 40000, 4).labels, ["0", "10k", "20k", "30k", "40k"])
  assert.deepEqual(chooseStepTicks(0, 3, 8).labels, ["0", "1", "2", "3"])
  assert.deepEqual(chooseStepTicks(0, 5e9, 5).labels, ["0", "1G", "2G", "3G", "4G", "5G"])
  for (const [low, high] of [
    [1e15, 1e15 + 7],
    [10_000_000, 10_000_900],
    [0, 2e15],
    [999, 1001],
  ])
    checkTicks(chooseStepTicks(low, high, 5), low, high)
})

test("colour ranges are wider than rounding errors", () => {
  assert.deepEqual(widenColourRange(0, 3, "nats"), [0, 3])
  const [low, high] = widenColourRange(2.63265, 2.632653, "nats")
  assert.ok(Math.abs(high - low - 0.02632653) < 1e-9 && low < 2.63265 && high > 2.632653)
  assert.deepEqual(widenColourRange(0, 0, "share"), [0, 0.01])
  assert.deepEqual(widenColourRange(1e-9, 2e-9, "share"), [0, 0.01])
  assert.deepEqual(widenColourRange(1e-9, 2e-9, "squared shares"), [1e-9, 2e-9])
  assert.ok(isConstant(2.63265, 2.632651) && !isConstant(2.63, 2.64))
})

test("the ends of a colour bar have distinct labels", () => {
  assert.deepEqual(labelEnds(2.61, 2.65), ["2.610", "2.650"])
  assert.deepEqual(labelEnds(2.63265, 2.63268), ["2.632650", "2.632680"])
  assert.deepEqual(labelEnds(0, 1), ["0", "1"])
  assert.deepEqual(labelEnds(-1e-9, 1e-9), ["−1.00e−9", "1.00e−9"])
})

test("a zoomed chart shows the whole line, also between two sparse points", () => {
  const line = [10, undefined, undefined, 0] // steps 1 and 2 belong to another line
  assert.deepEqual(findShownRange([0, 1, 2, 4], [line], [1, 3]), [2.5, 7.5])
  assert.deepEqual(findShownRange([0, 1, 2, 4], [[10, null, 5, 0]], [1, 3]), [2.5, 5])
  assert.equal(findShownRange([0, 1], [[null, null]], [0, 1]), null)
})
