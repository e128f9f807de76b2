// Runs from the server: asked for once, then kept up to date by what it tells. One connection for all that is looked at.

import { decodeStep, type StepMaps } from "../maps"
import { decodeRun, mergeRun, type Finding, type Group, type Index, type Run } from "../model"
import { keptMaps, type DataSource } from "../source"
import { addressOf, asked, type FoundIn, type Listed } from "./server"

type Tell = (run: Run) => void

const RETRY = 3000
/** How long a tab that nobody sees keeps its connection: of the six that a browser opens to one server, those in sight need theirs. */
const UNSEEN = 30_000

export class FetchSource implements DataSource {
  readonly live = true
  /** Whether the server answers. */
  reached = true
  title = ""
  list = new Map<string, Listed>()
  findings = new Map<string, Finding[]>()
  private listed: Promise<void> | null = null
  private runs = new Map<string, Promise<Run>>()
  private kept = keptMaps()
  private followers = new Map<string, Set<Tell>>()
  private watchers = new Set<() => void>()
  private stream: EventSource | null = null
  private streamed = ""
  private timer = 0
  private unseen = 0

  constructor() {
    document.addEventListener("visibilitychange", () => this.looked())
  }

  async index(): Promise<Index> {
    this.listed ??= this.askForList().catch((problem) => {
      this.listed = null // it may do better the next time
      throw problem
    })
    await this.listed
    const runs = [...this.list.values()]
    const groups: Group[] = runs.map(({ id, name }) => ({ label: name, data: "", runs: [id], findings: this.findings.get(id) ?? [] }))
    return { title: this.title, kind: "board", runs: runs.map((one) => ({ ...one, best: null })), groups }
  }

  run(id: string): Promise<Run> {
    const known = this.runs.get(id) ?? this.askForRun(id)
    this.runs.set(id, known)
    return known
  }

  maps(id: string, step: number): Promise<StepMaps> {
    return this.kept.get(`${id} ${step}`, async () => {
      const bytes = new Uint8Array(await (await asked(`${addressOf(id)}/maps/${step}`)).arrayBuffer())
      return decodeStep(bytes, step)
    })
  }

  follow(id: string, tell: Tell): () => void {
    const tells = this.followers.get(id) ?? new Set()
    this.followers.set(id, tells.add(tell))
    this.listenSoon()
    return () => {
      tells.delete(tell)
      if (!tells.size) this.followers.delete(id)
      this.listenSoon()
    }
  }

  /** Calls when the list, the findings or the connection changed; gives back what stops it. */
  watch(tell: () => void): () => void {
    this.watchers.add(tell)
    this.listenSoon()
    return () => this.watchers.delete(tell)
  }

  private async askForList(): Promise<void> {
    const found: { title: string; runs: Listed[] } = await (await asked("api/runs")).json()
    this.title = found.title
    this.list = new Map(found.runs.map((one) => [one.id, one]))
  }

  private async askForRun(id: string): Promise<Run> {
    try {
      const run = decodeRun(await (await asked(addressOf(id))).json())
      asked(`${addressOf(id)}/findings`).then((answer) => answer.json()).then((found) => this.found({ run: id, findings: found }), () => {})
      return run
    } catch (problem) {
      this.runs.delete(id) // it may do better the next time
      return broken(id, String((problem as Error).message))
    }
  }

  /** One connection at a time: browsers open few to one server, and every tab of the board needs one. */
  private listenSoon(): void {
    clearTimeout(this.timer)
    this.timer = window.setTimeout(() => void this.listen(), 50)
  }

  private looked(): void {
    clearTimeout(this.unseen)
    if (document.hidden) this.unseen = window.setTimeout(() => this.leave(), UNSEEN)
    else if (!this.stream) void this.again()
  }

  private leave(): void {
    this.stream?.close()
    this.stream = null
  }

  private async listen(): Promise<void> {
    if (document.hidden && !this.stream) return // when somebody looks
    const ids = [...this.followers.keys()]
    const runs = (await Promise.all(ids.map((id) => this.run(id)))).filter((one) => one.state !== "broken")
    if (ids.join("\n") !== [...this.followers.keys()].join("\n")) return // somebody has looked away meanwhile: another call is under way
    const wanted = JSON.stringify(runs.map((one) => one.id))
    if (this.stream && this.streamed === wanted) return
    this.stream?.close()
    const query = new URLSearchParams(runs.map((one) => ["run", one.id]))
    // a score may come after the other rows of its step: that step is asked for again
    query.set("after", String(runs.length ? Math.max(-1, Math.min(...runs.map((one) => one.step)) - 1) : -1))
    this.streamed = wanted
    this.stream = new EventSource(`api/events?${query}`)
    const hear = <Data,>(kind: string, take: (data: Data) => void) =>
      this.stream!.addEventListener(kind, (event) => take(JSON.parse((event as MessageEvent<string>).data)))
    hear("runs", (data: { runs: Listed[]; gone: string[] }) => this.changed(data))
    hear("news", (data: Parameters<typeof decodeRun>[0]) => void this.news(decodeRun(data)))
    hear("findings", (data: FoundIn) => this.found(data))
    hear("broken", (data: { run: string; message: string }) => this.tell(broken(data.run, data.message)))
    hear("again", () => void this.again())
    this.stream.onopen = () => this.reach(true)
    this.stream.onerror = () => this.lost()
  }

  /** A browser connects again by itself, but not where the server refused: a run may be gone, or a token have changed. */
  private lost(): void {
    this.reach(false)
    if (this.stream?.readyState !== EventSource.CLOSED) return
    this.leave()
    for (const id of this.followers.keys()) this.runs.delete(id)
    clearTimeout(this.timer)
    this.timer = window.setTimeout(() => void this.listen(), RETRY)
  }

  private reach(reached: boolean): void {
    if (reached && !this.reached) void this.again() // it may have been another server, or away for long
    this.reached = reached
    this.notify()
  }

  private changed({ runs, gone }: { runs: Listed[]; gone: string[] }): void {
    for (const one of runs) {
      this.list.set(one.id, one)
      if (one.kind !== "run" || !this.followers.has(one.id)) continue
      const known = this.runs.get(one.id)
      if (!known) void this.again() // it could not be read before
      // a process that is gone without a word writes nothing: the list alone knows
      void known?.then((run) => {
        if (run.state !== one.state) void this.news({ ...run, state: one.state })
      })
    }
    for (const id of gone) this.list.delete(id)
    this.notify()
  }

  private async news(more: Run): Promise<void> {
    const merged = this.run(more.id).then((before) => mergeRun(before, more))
    this.runs.set(more.id, merged) // at once, so that the next news come on top of these
    this.tell(await merged)
  }

  private async again(): Promise<void> {
    try {
      await this.askForList()
    } catch {
      return this.listenSoon() // nobody there: what is known stays, and the stream finds out when there is
    }
    this.kept = keptMaps() // steps that were taken back are written anew
    this.notify()
    for (const id of this.followers.keys()) {
      this.runs.delete(id)
      this.tell(await this.run(id))
    }
    this.listenSoon() // to those that can be read again
  }

  private found({ run, findings }: FoundIn): void {
    this.findings.set(run, findings)
    this.notify()
  }

  private tell(run: Run): void {
    for (const tell of this.followers.get(run.id) ?? []) tell(run)
  }

  private notify(): void {
    for (const tell of this.watchers) tell()
  }
}

/** A run that cannot be read, with what there is to say about it. */
function broken(id: string, message: string): Run {
  return {
    id, name: id, state: "broken", step: 0, steps: null, started: null, time: null, message, best: null, seed: null, settings: {},
    changed: [], network: {}, program: null, environment: {}, remarks: [message], scalars: {}, measures: {}, layers: [], heads: [],
    map_steps: [], pooled: {}, labels: null, events: [], checkpoints: [], samples: [], real: {}, calibration: null,
  }
}
