// Keys do what they stand for, and leave alone what a reader has the focus on.

import assert from "node:assert/strict"
import { test } from "node:test"

import { pressed, type Deeds } from "../src/keyboard"

class Fake {
  isContentEditable = false
  constructor(private kinds: string[], public type = "") {}
  matches(selector: string) { return selector.split(", ").some((one) => this.kinds.includes(one)) }
}
class FakeInput extends Fake {}
Object.assign(globalThis, { HTMLElement: Fake, HTMLInputElement: FakeInput })

const PAGE = new Fake(["body"])
const BOX = new FakeInput(["input", "input[type=checkbox]"], "checkbox")
const SLIDER = new FakeInput(["input"], "range")

function press(key: string, target: Fake, moves = true): [taken: boolean, done: string[]] {
  const done: string[] = []
  const deeds = new Proxy({}, { get: (_, name: string) => () => (done.push(name), ["move", "play"].includes(name) ? moves : undefined) })
  return [pressed({ key, target } as unknown as KeyboardEvent, deeds as Deeds), done]
}

test("the space bar plays, but presses a button or a box that has the focus", () => {
  for (const target of [PAGE, SLIDER]) assert.deepEqual(press(" ", target), [true, ["play"]])
  for (const target of [new Fake(["button"]), new Fake(["summary"]), BOX]) assert.deepEqual(press(" ", target), [false, []])
  assert.deepEqual(press("j", BOX), [true, ["head"]])
})

test("where there is nothing to slide, keys scroll the page as ever", () => {
  for (const key of [" ", "Home", "End", "ArrowRight"]) assert.equal(press(key, PAGE, false)[0], false)
})

test("a field for text keeps all of its keys", () => {
  for (const key of ["j", " ", "t", "?", "1"]) assert.deepEqual(press(key, new FakeInput(["input"], "search")), [false, []])
})
