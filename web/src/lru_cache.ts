// Least-recently-used cache of promises, limited by the total size of the resolved values.

export class LruCache<Value> {
  private entries = new Map<string, Promise<Value>>()
  private sizes = new Map<string, number>()

  constructor(
    private capacity: number,
    private measure: (value: Value) => number,
  ) {}

  get(key: string, load: () => Promise<Value>): Promise<Value> {
    const entry = this.entries.get(key) ?? this.startLoading(key, load)
    this.entries.delete(key)
    this.entries.set(key, entry) // a Map keeps insertion order: the most recently used is last
    return entry
  }

  private startLoading(key: string, load: () => Promise<Value>): Promise<Value> {
    const entry = load()
    entry.then(
      (value) => this.evict(key, this.measure(value)),
      () => this.entries.delete(key),
    ) // failures are not cached, so that the next get() tries again
    return entry
  }

  private evict(key: string, size: number): void {
    this.sizes.set(key, size)
    let total = [...this.sizes.values()].reduce((sum, size) => sum + size, 0)
    for (const oldest of this.entries.keys()) {
      if (total <= this.capacity || this.entries.size === 1) return
      total -= this.sizes.get(oldest) ?? 0
      this.sizes.delete(oldest)
      this.entries.delete(oldest)
    }
  }
}
