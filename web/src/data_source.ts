// Where a page gets its runs: from JSON embedded in the page, or (board) from the server.

import { decodeStep, type StepMaps } from "./attention_maps"
import { LruCache } from "./lru_cache"
import {
  decodeBase64,
  decodeRun,
  type Experiment,
  type Group,
  type Index,
  type Run,
  type EncodedRun,
} from "./run_data"

export interface DataSource {
  /** Whether runs may still change. */
  readonly live: boolean
  index(): Promise<Index>
  run(id: string): Promise<Run>
  maps(id: string, step: number): Promise<StepMaps>
  /** Call `onRun` with the complete run after every change. Returns the unsubscribe function. */
  follow(id: string, onRun: (run: Run) => void): () => void
  /** Call `onChange` when the index changes. Returns the unsubscribe function. Static pages have none. */
  watch?(onChange: () => void): () => void
}

/** PAGE_VERSION of neural/report/run_report.py. */
const PAGE_VERSION = 3

export interface PageData {
  version: number
  title: string
  kind: "report" | "snapshot"
  runs: EncodedRun[]
  groups: Group[]
  experiments: Experiment[]
  maps: Record<string, Record<string, string>>
}

/** Runs embedded in the page as JSON. */
export class EmbeddedSource implements DataSource {
  readonly live = false
  private runs = new Map<string, Run>()
  private encoded: Map<string, EncodedRun>
  private mapCache = createMapCache()

  constructor(private page: PageData) {
    if (page.version !== PAGE_VERSION)
      throw new Error(`data of version ${page.version}; this page reads version ${PAGE_VERSION}`)
    this.encoded = new Map(page.runs.map((run) => [run.id, run]))
  }

  async index(): Promise<Index> {
    const { title, kind, runs, groups, experiments } = this.page
    return { title, kind, runs, groups, experiments }
  }

  async run(id: string): Promise<Run> {
    const encoded = this.encoded.get(id)
    if (!encoded) throw new Error(`this page has no run ${id}`)
    if (!this.runs.has(id)) this.runs.set(id, decodeRun(encoded))
    return this.runs.get(id)!
  }

  maps(id: string, step: number): Promise<StepMaps> {
    const text = this.page.maps[id]?.[String(step)]
    if (text === undefined)
      return Promise.reject(new Error(`this page has no maps of step ${step}`))
    return this.mapCache.get(`${id} ${step}`, () => decodeStep(decodeBase64(text), step))
  }

  follow(): () => void {
    return () => {}
  }
}

const MAP_CACHE_BYTES = 200e6

/** Cache of decoded maps. One step of 144 heads at 256 positions takes 9 MB. */
export function createMapCache(): LruCache<StepMaps> {
  return new LruCache<StepMaps>(MAP_CACHE_BYTES, (maps) =>
    maps.layers.reduce((sum, layer) => sum + layer.cells.length, 0),
  )
}
