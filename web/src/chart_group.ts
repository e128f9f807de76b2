// Charts that share the crosshair, the zoom and the hidden lines.

import { useEffect, useMemo, useState } from "preact/hooks"

export class ChartGroup {
  /** The step under the pointer, in whichever chart it is. */
  step: number | null = null
  /** Key of the line nearest to the pointer; "" if there is none. */
  nearest = ""
  /** The zoom; null: all steps. */
  range: [number, number] | null = null
  /** Keys of the lines that are not drawn. */
  hidden: ReadonlySet<string> = new Set()
  private listeners = new Set<() => void>()

  /** `onChange` is called when the user zooms, hides or shows; it is not when a state is restored. */
  constructor(private onChange?: (group: ChartGroup) => void) {}

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  point(step: number | null, nearest = ""): void {
    if (step === this.step && nearest === this.nearest) return
    this.step = step
    this.nearest = nearest
    this.notify()
  }

  zoom(range: [number, number] | null): void {
    this.restore(range, this.hidden)
    this.onChange?.(this)
  }

  restore(range: [number, number] | null, hidden: ReadonlySet<string>): void {
    this.range = range
    this.hidden = hidden
    this.notify()
  }

  toggle(key: string): void {
    const hidden = new Set(this.hidden)
    if (!hidden.delete(key)) hidden.add(key)
    this.changeHidden(hidden)
  }

  /** Hide all lines but one; all are shown again if it already is the only one. */
  solo(key: string, keys: string[]): void {
    const others = keys.filter((other) => other !== key)
    const isSolo = !this.hidden.has(key) && others.every((other) => this.hidden.has(other))
    this.changeHidden(new Set(isSolo ? [] : others))
  }

  private changeHidden(hidden: ReadonlySet<string>): void {
    this.restore(this.range, hidden)
    this.onChange?.(this)
  }

  private notify(): void {
    for (const listener of [...this.listeners]) listener()
  }
}

/** The group, or an own one; the component is rendered again when it changes. */
export function useChartGroup(shared?: ChartGroup): ChartGroup {
  const group = useMemo(() => shared ?? new ChartGroup(), [shared])
  const [, update] = useState({})
  useEffect(() => group.subscribe(() => update({})), [group])
  return group
}
