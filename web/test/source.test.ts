// What a page keeps, and how it finds back to a board that was away.

import assert from "node:assert/strict"
import { test } from "node:test"

import { FetchSource } from "../src/board/fetch_source"
import { mergeRun, type Run } from "../src/model"
import { Kept } from "../src/source"

test("what is kept takes no more room than it may, the newest stays", async () => {
  const kept = new Kept<string>(10, (text) => text.length)
  const asked: string[] = []
  const get = (text: string) => kept.get(text, async () => (asked.push(text), text))
  for (const text of ["aaaa", "bbbb", "aaaa", "cccc"]) await get(text)
  await get("aaaa")
  assert.deepEqual(asked, ["aaaa", "bbbb", "cccc"])
  await get("bbbb") // had to go for cccc
  assert.deepEqual(asked, ["aaaa", "bbbb", "cccc", "bbbb"])
})

test("a failure is asked for again", async () => {
  const kept = new Kept<string>(10, (text) => text.length)
  await assert.rejects(kept.get("a", () => Promise.reject(new Error("away"))))
  assert.equal(await kept.get("a", async () => "back"), "back")
})

test("a curve that grows for days stays small enough to draw, with all of its newest rows", () => {
  const empty = { scalars: {}, measures: {}, map_steps: [], events: [] } as unknown as Run
  let run = empty
  for (let step = 0; step < 20_000; step += 100) {
    const steps = Array.from({ length: 100 }, (_, at) => step + at)
    run = mergeRun(run, { ...empty, scalars: { loss: { steps, values: steps } } })
  }
  const { steps, values } = run.scalars.loss
  assert.ok(steps.length <= 4000)
  assert.deepEqual(steps.slice(-1000), Array.from({ length: 1000 }, (_, at) => 19_000 + at))
  assert.deepEqual(steps, values)
  assert.equal(steps[0], 0)
})

/** A browser's window and connections, and a board with these runs; what waits is done when it is asked for. */
function browser(there: Set<string>) {
  const streams: { url: string; readyState: number; onerror?: () => void; onopen?: () => void }[] = []
  class Stream {
    static CLOSED = 2
    readyState = 0
    constructor(public url: string) { streams.push(this) }
    addEventListener() {}
    close() { this.readyState = Stream.CLOSED }
  }
  const waits: (() => void)[] = []
  const page = { hidden: false, turned: () => {}, addEventListener: (_: string, tell: () => void) => { page.turned = tell } }
  const run = (id: string) => ({ id, state: "running", step: 5, scalars: {}, measures: {}, map_steps: [], events: [] })
  const fetched = async (path: string) => {
    const id = path.match(/^api\/runs\/(\w)/)?.[1]
    const found = path === "api/runs" ? { title: "", runs: [] } : path.endsWith("findings") ? [] : id && there.has(id) ? run(id) : null
    return found ? Response.json(found) : new Response("there is no such run", { status: 404 })
  }
  Object.assign(globalThis, {
    document: page, window: { setTimeout: (what: () => void) => waits.push(what) }, clearTimeout: () => {}, EventSource: Stream, fetch: fetched,
  })
  const settled = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done))
  }
  const later = async () => {
    waits.at(-1)!()
    await settled()
  }
  return { streams, page, settled, later }
}

test("a tab that nobody sees gives its connection to those that are seen", async () => {
  const { streams, page, settled, later } = browser(new Set(["a"]))
  new FetchSource().follow("a", () => {})
  await later()
  page.hidden = true
  page.turned()
  await later()
  assert.deepEqual(streams.map((one) => one.readyState), [2])
  page.hidden = false
  page.turned()
  await settled()
  await later()
  assert.deepEqual(streams.map((one) => one.readyState), [2, 0])
})

test("a connection that the board refused is tried again, without the run that is gone", async () => {
  const there = new Set(["a", "b"])
  const { streams, settled, later } = browser(there)
  const source = new FetchSource()
  const told: Run[] = []
  for (const id of there) source.follow(id, (one) => told.push(one))
  await later()
  assert.match(streams.at(-1)!.url, /run=a&run=b/)
  there.delete("b")
  Object.assign(streams.at(-1)!, { readyState: 2 })
  streams.at(-1)!.onerror!()
  assert.equal(source.reached, false)
  await later()
  assert.equal(streams.length, 2)
  assert.match(streams[1].url, /run=a&after/)
  streams[1].onopen!()
  await settled()
  assert.equal(source.reached, true)
  assert.deepEqual(told.map((one) => [one.id, one.state]), [["a", "running"], ["b", "broken"]])
})
