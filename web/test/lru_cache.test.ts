import assert from "node:assert/strict"
import { test } from "node:test"

import { LruCache } from "../src/lru_cache"

test("the cache stays within its capacity and evicts the least recently used", async () => {
  const cache = new LruCache<string>(10, (text) => text.length)
  const loaded: string[] = []
  const get = (text: string) =>
    cache.get(text, async () => {
      loaded.push(text)
      return text
    })
  for (const text of ["aaaa", "bbbb", "aaaa", "cccc"]) await get(text)
  await get("aaaa")
  assert.deepEqual(loaded, ["aaaa", "bbbb", "cccc"])
  await get("bbbb") // was evicted for cccc
  assert.deepEqual(loaded, ["aaaa", "bbbb", "cccc", "bbbb"])
})

test("a failure is not cached", async () => {
  const cache = new LruCache<string>(10, (text) => text.length)
  await assert.rejects(cache.get("a", () => Promise.reject(new Error("unreachable"))))
  assert.equal(await cache.get("a", async () => "loaded"), "loaded")
})
