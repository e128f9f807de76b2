// Where a page gets its runs: from the page itself, or (the board) from the server.

import { decodeStep, type StepMaps } from "./maps"
import { bytesOf, decodeRun, type Group, type Index, type Run, type WrittenRun } from "./model"

export interface DataSource {
  /** Whether runs may still grow. */
  readonly live: boolean
  index(): Promise<Index>
  run(id: string): Promise<Run>
  maps(id: string, step: number): Promise<StepMaps>
  /** Calls `tell` with the whole run whenever there is something new; gives back what stops it. */
  follow(id: string, tell: (run: Run) => void): () => void
  /** Calls when the index changed; gives back what stops it. A page that does not change has none. */
  watch?(tell: () => void): () => void
}

export interface PageData {
  version: number
  title: string
  kind: "report" | "look"
  runs: WrittenRun[]
  groups: Group[]
  maps: Record<string, Record<string, string>>
}

/** What was written into the page. */
export class EmbeddedSource implements DataSource {
  readonly live = false
  private runs = new Map<string, Run>()
  private kept = keptMaps()

  constructor(private page: PageData) {
    if (page.version !== 1) throw new Error(`data of version ${page.version}; this page draws version 1`)
  }

  async index(): Promise<Index> {
    const { title, kind, runs, groups } = this.page
    return { title, kind, runs, groups }
  }

  async run(id: string): Promise<Run> {
    const written = this.page.runs.find((one) => one.id === id)
    if (!written) throw new Error(`there is no run ${id} in this page`)
    if (!this.runs.has(id)) this.runs.set(id, decodeRun(written))
    return this.runs.get(id)!
  }

  maps(id: string, step: number): Promise<StepMaps> {
    const text = this.page.maps[id]?.[String(step)]
    if (text === undefined) return Promise.reject(new Error(`there are no maps of step ${step} in this page`))
    return this.kept.get(`${id} ${step}`, () => decodeStep(bytesOf(text), step))
  }

  follow(): () => void {
    return () => {}
  }
}

/** The last few answers, so that a slider that goes back and forth asks once. */
export class Kept<Answer> {
  private answers = new Map<string, Promise<Answer>>()
  private sizes = new Map<string, number>()

  constructor(private room: number, private size: (answer: Answer) => number) {}

  get(key: string, ask: () => Promise<Answer>): Promise<Answer> {
    const known = this.answers.get(key) ?? this.asked(key, ask)
    this.answers.delete(key)
    this.answers.set(key, known) // the newest stands last
    return known
  }

  private asked(key: string, ask: () => Promise<Answer>): Promise<Answer> {
    const answer = ask()
    answer.then((found) => this.weigh(key, this.size(found)), () => this.answers.delete(key)) // a failure is not kept: the next one may do better
    return answer
  }

  private weigh(key: string, size: number): void {
    this.sizes.set(key, size)
    let all = [...this.sizes.values()].reduce((sum, one) => sum + one, 0)
    for (const oldest of this.answers.keys()) {
      if (all <= this.room || this.answers.size === 1) return
      all -= this.sizes.get(oldest) ?? 0
      this.sizes.delete(oldest)
      this.answers.delete(oldest)
    }
  }
}

const MAPS_ROOM = 200e6

/** Decoded maps: of 144 heads at 256 positions a step has 9 MB, of small ones hundreds are kept. */
export function keptMaps(): Kept<StepMaps> {
  return new Kept<StepMaps>(MAPS_ROOM, (maps) => maps.layers.reduce((sum, one) => sum + one.cells.length, 0))
}
