// The connection of a page to the board's server.

import assert from "node:assert/strict"
import { test } from "node:test"

import { FetchSource } from "../../src/board/fetch_source"
import type { Run } from "../../src/run_data"

/** Fakes of the browser's globals and of a server with these runs. Timers fire only by `runTimer()`. */
function fakeBrowser(runIds: Set<string>) {
  const streams: { url: string; readyState: number; onerror?: () => void; onopen?: () => void }[] =
    []
  class FakeEventSource {
    static CLOSED = 2
    readyState = 0
    constructor(public url: string) {
      streams.push(this)
    }
    addEventListener() {}
    close() {
      this.readyState = FakeEventSource.CLOSED
    }
  }
  const timers: (() => void)[] = []
  const page = {
    hidden: false,
    onVisibilityChange: () => {},
    addEventListener: (_: string, listener: () => void) => {
      page.onVisibilityChange = listener
    },
  }
  const createRun = (id: string) => ({
    id,
    state: "running",
    step: 5,
    scalars: {},
    measures: {},
    map_steps: [],
    events: [],
  })
  const fakeFetch = async (path: string) => {
    const id = path.match(/^api\/runs\/(\w)/)?.[1]
    const body =
      path === "api/runs"
        ? { title: "", runs: [] }
        : path.endsWith("findings")
          ? []
          : id && runIds.has(id)
            ? createRun(id)
            : null
    return body ? Response.json(body) : new Response("no such run", { status: 404 })
  }
  Object.assign(globalThis, {
    document: page,
    window: { setTimeout: (callback: () => void) => timers.push(callback) },
    clearTimeout: () => {},
    EventSource: FakeEventSource,
    fetch: fakeFetch,
  })
  const settle = async () => {
    for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve))
  }
  const runTimer = async () => {
    timers.at(-1)!()
    await settle()
  }
  return { streams, page, settle, runTimer }
}

test("a hidden tab closes its connection and a visible one opens it again", async () => {
  const { streams, page, settle, runTimer } = fakeBrowser(new Set(["a"]))
  new FetchSource().follow("a", () => {})
  await runTimer()
  page.hidden = true
  page.onVisibilityChange()
  await runTimer()
  assert.deepEqual(
    streams.map((stream) => stream.readyState),
    [2],
  )
  page.hidden = false
  page.onVisibilityChange()
  await settle()
  await runTimer()
  assert.deepEqual(
    streams.map((stream) => stream.readyState),
    [2, 0],
  )
})

test("a refused connection is tried again, without the run that was deleted", async () => {
  const runIds = new Set(["a", "b"])
  const { streams, settle, runTimer } = fakeBrowser(runIds)
  const source = new FetchSource()
  const received: Run[] = []
  for (const id of runIds) source.follow(id, (run) => received.push(run))
  await runTimer()
  assert.match(streams.at(-1)!.url, /run=a&run=b/)
  runIds.delete("b")
  Object.assign(streams.at(-1)!, { readyState: 2 })
  streams.at(-1)!.onerror!()
  assert.equal(source.isConnected, false)
  await runTimer()
  assert.equal(streams.length, 2)
  assert.match(streams[1].url, /run=a&after/)
  streams[1].onopen!()
  await settle()
  assert.equal(source.isConnected, true)
  assert.deepEqual(
    received.map((run) => [run.id, run.state]),
    [
      ["a", "running"],
      ["b", "broken"],
    ],
  )
})
