// Keyboard shortcuts, and the focused elements that keep their keys.

import assert from "node:assert/strict"
import { test } from "node:test"

import { handleKey, type KeyActions } from "../src/keyboard"

class FakeElement {
  isContentEditable = false
  constructor(
    private selectors: string[],
    public type = "",
  ) {}
  matches(selector: string) {
    return selector.split(", ").some((part) => this.selectors.includes(part))
  }
}
class FakeInput extends FakeElement {}
Object.assign(globalThis, { HTMLElement: FakeElement, HTMLInputElement: FakeInput })

const PAGE = new FakeElement(["body"])
const CHECKBOX = new FakeInput(["input", "input[type=checkbox]"], "checkbox")
const SLIDER = new FakeInput(["input"], "range")

function press(
  key: string,
  target: FakeElement,
  canMove = true,
): [isHandled: boolean, called: string[]] {
  const called: string[] = []
  const record = (_: unknown, name: string) => () => {
    called.push(name)
    return ["move", "play"].includes(name) ? canMove : undefined
  }
  const actions = new Proxy({}, { get: record })
  return [handleKey({ key, target } as unknown as KeyboardEvent, actions as KeyActions), called]
}

test("the space bar plays, but activates a focused button or checkbox", () => {
  for (const target of [PAGE, SLIDER]) assert.deepEqual(press(" ", target), [true, ["play"]])
  for (const target of [new FakeElement(["button"]), new FakeElement(["summary"]), CHECKBOX])
    assert.deepEqual(press(" ", target), [false, []])
  assert.deepEqual(press("j", CHECKBOX), [true, ["head"]])
})

test("without snapshots, the browser scrolls the page", () => {
  for (const key of [" ", "Home", "End", "ArrowRight"])
    assert.equal(press(key, PAGE, false)[0], false)
})

test("a focused text field gets all keys", () => {
  for (const key of ["j", " ", "t", "?", "1"])
    assert.deepEqual(press(key, new FakeInput(["input"], "search")), [false, []])
})
