// Runs from the board's server: each is fetched once and then updated by server-sent events. One
// EventSource serves all runs that are followed.

import { decodeStep, type StepMaps } from "../attention_maps"
import { errorMessage } from "../format"
import {
  decodeRun,
  lastRowStep,
  mergeRun,
  type Finding,
  type Group,
  type Index,
  type Run,
} from "../run_data"
import { createMapCache, type DataSource } from "../data_source"
import { runUrl, request, type RunFindings, type RunListEntry } from "./api"

type OnRun = (run: Run) => void

const RETRY_MS = 3000
/** A hidden tab closes its connection after this time: browsers open only six to one server. */
const HIDDEN_TAB_MS = 30_000

export class FetchSource implements DataSource {
  readonly live = true
  /** Whether the server responds. */
  isConnected = true
  title = ""
  entries = new Map<string, RunListEntry>()
  findings = new Map<string, Finding[]>()
  private loadedList: Promise<void> | null = null
  private runs = new Map<string, Promise<Run>>()
  private mapCache = createMapCache()
  private followers = new Map<string, Set<OnRun>>()
  private watchers = new Set<() => void>()
  private stream: EventSource | null = null
  private streamedIds = ""
  private timer = 0
  private hiddenTimer = 0

  constructor() {
    document.addEventListener("visibilitychange", () => this.onVisibilityChange())
  }

  async index(): Promise<Index> {
    this.loadedList ??= this.fetchList().catch((error) => {
      this.loadedList = null // try again at the next call
      throw error
    })
    await this.loadedList
    const runs = [...this.entries.values()]
    const groups: Group[] = runs.map(({ id, name }) => ({
      label: name,
      data: "",
      runs: [id],
      findings: this.findings.get(id) ?? [],
    }))
    return {
      title: this.title,
      kind: "board",
      runs: runs.map((entry) => ({ ...entry, best: null })),
      groups,
    }
  }

  run(id: string): Promise<Run> {
    const run = this.runs.get(id) ?? this.fetchRun(id)
    this.runs.set(id, run)
    return run
  }

  maps(id: string, step: number): Promise<StepMaps> {
    return this.mapCache.get(`${id} ${step}`, async () => {
      const bytes = new Uint8Array(
        await (await request(`${runUrl(id)}/maps/${step}`)).arrayBuffer(),
      )
      return decodeStep(bytes, step)
    })
  }

  follow(id: string, onRun: OnRun): () => void {
    const listeners = this.followers.get(id) ?? new Set()
    this.followers.set(id, listeners.add(onRun))
    this.scheduleConnect()
    return () => {
      listeners.delete(onRun)
      if (!listeners.size) this.followers.delete(id)
      this.scheduleConnect()
    }
  }

  /** Subscribe to changes of the list, the findings or the connection. Returns the unsubscribe function. */
  watch(onChange: () => void): () => void {
    this.watchers.add(onChange)
    this.scheduleConnect()
    return () => this.watchers.delete(onChange)
  }

  private async fetchList(): Promise<void> {
    const list: { title: string; runs: RunListEntry[] } = await (await request("api/runs")).json()
    this.title = list.title
    this.entries = new Map(list.runs.map((entry) => [entry.id, entry]))
  }

  private async fetchRun(id: string): Promise<Run> {
    try {
      const run = decodeRun(await (await request(runUrl(id))).json())
      request(`${runUrl(id)}/findings`)
        .then((response) => response.json())
        .then(
          (findings) => this.setFindings({ run: id, findings }),
          () => {},
        )
      return run
    } catch (error) {
      this.runs.delete(id) // try again at the next call
      return brokenRun(id, errorMessage(error))
    }
  }

  /** Debounced: several panes subscribe at the same time, and each tab may hold only one connection. */
  private scheduleConnect(): void {
    clearTimeout(this.timer)
    this.timer = window.setTimeout(() => void this.connect(), 50)
  }

  private onVisibilityChange(): void {
    clearTimeout(this.hiddenTimer)
    if (document.hidden)
      this.hiddenTimer = window.setTimeout(() => this.disconnect(), HIDDEN_TAB_MS)
    else if (!this.stream) void this.reload()
  }

  private disconnect(): void {
    this.stream?.close()
    this.stream = null
  }

  private async connect(): Promise<void> {
    if (document.hidden && !this.stream) return // connects when the tab becomes visible
    const ids = [...this.followers.keys()]
    const runs = (await Promise.all(ids.map((id) => this.run(id)))).filter(
      (run) => run.state !== "broken",
    )
    if (ids.join("\n") !== [...this.followers.keys()].join("\n")) return // subscriptions changed meanwhile: another connect() is scheduled
    const runIds = JSON.stringify(runs.map((run) => run.id))
    if (this.stream && this.streamedIds === runIds) return
    this.stream?.close()
    const query = new URLSearchParams(runs.map((run) => ["run", run.id]))
    // a score may be written after the other rows of its step: request that step again
    query.set(
      "after",
      String(runs.length ? Math.max(-1, Math.min(...runs.map(lastRowStep)) - 1) : -1),
    )
    this.streamedIds = runIds
    this.stream = new EventSource(`api/events?${query}`)
    const on = <Data>(kind: string, handle: (data: Data) => void) =>
      this.stream!.addEventListener(kind, (event) =>
        handle(JSON.parse((event as MessageEvent<string>).data)),
      )
    on("runs", (data: { runs: RunListEntry[]; removed: string[] }) => this.updateList(data))
    on("update", (data: Parameters<typeof decodeRun>[0]) => void this.applyUpdate(decodeRun(data)))
    on("findings", (data: RunFindings) => this.setFindings(data))
    on("run_error", (data: { run: string; message: string }) =>
      this.notifyFollowers(brokenRun(data.run, data.message)),
    )
    on("reload", () => void this.reload())
    this.stream.onopen = () => this.setConnected(true)
    this.stream.onerror = () => this.onStreamError()
  }

  /**
   * The browser reconnects by itself unless the server refused the request: a run may be deleted or
   * the token may have changed.
   */
  private onStreamError(): void {
    this.setConnected(false)
    if (this.stream?.readyState !== EventSource.CLOSED) return
    this.disconnect()
    for (const id of this.followers.keys()) this.runs.delete(id)
    clearTimeout(this.timer)
    this.timer = window.setTimeout(() => void this.connect(), RETRY_MS)
  }

  private setConnected(isConnected: boolean): void {
    if (isConnected && !this.isConnected) void this.reload() // events were missed, or the server was restarted
    this.isConnected = isConnected
    this.notifyWatchers()
  }

  private updateList({ runs, removed }: { runs: RunListEntry[]; removed: string[] }): void {
    for (const entry of runs) {
      this.entries.set(entry.id, entry)
      if (entry.kind !== "run" || !this.followers.has(entry.id)) continue
      const loading = this.runs.get(entry.id)
      if (!loading) void this.reload() // it was unreadable before
      // a killed process writes no event: only the list shows its new state
      void loading?.then((run) => {
        if (run.state !== entry.state) void this.applyUpdate({ ...run, state: entry.state })
      })
    }
    for (const id of removed) this.entries.delete(id)
    this.notifyWatchers()
  }

  private async applyUpdate(update: Run): Promise<void> {
    const merged = this.run(update.id).then((run) => mergeRun(run, update))
    this.runs.set(update.id, merged) // before the await, so that the next update is merged into this one
    this.notifyFollowers(await merged)
  }

  private async reload(): Promise<void> {
    try {
      await this.fetchList()
    } catch {
      return this.scheduleConnect() // server unreachable: keep the known data, the stream reconnects
    }
    this.mapCache = createMapCache() // after a rollback the same steps have new maps
    this.notifyWatchers()
    for (const id of this.followers.keys()) {
      this.runs.delete(id)
      this.notifyFollowers(await this.run(id))
    }
    this.scheduleConnect() // includes runs that are readable again
  }

  private setFindings({ run, findings }: RunFindings): void {
    this.findings.set(run, findings)
    this.notifyWatchers()
  }

  private notifyFollowers(run: Run): void {
    for (const onRun of this.followers.get(run.id) ?? []) onRun(run)
  }

  private notifyWatchers(): void {
    for (const onChange of this.watchers) onChange()
  }
}

/** Placeholder for a run that cannot be read. */
function brokenRun(id: string, message: string): Run {
  return {
    id,
    name: id,
    state: "broken",
    step: 0,
    steps: null,
    started: null,
    time: null,
    message,
    best: null,
    seed: null,
    settings: {},
    changed_settings: [],
    network: {},
    program: null,
    environment: {},
    notes: [message],
    scalars: {},
    measures: {},
    layers: [],
    heads: [],
    map_steps: [],
    downsampling: {},
    labels: null,
    events: [],
    checkpoints: [],
    samples: [],
    real_text: {},
    calibration: null,
    sections: [],
  }
}
