// Light or dark theme: follows the system unless the user has chosen one.

import { options } from "preact"

export type Theme = "light" | "dark"

const STORAGE_KEY = "neural-theme"

export function currentTheme(): Theme {
  const stored = document.documentElement.dataset.theme
  if (stored === "light" || stored === "dark") return stored
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
}

/** Apply the theme stored on an earlier visit. Sandboxed frames have no storage. */
export function restoreTheme(): void {
  try {
    const stored = localStorage.getItem(STORAGE_KEY)
    if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored
  } catch {
    // storage is not available to this page
  }
}

export function toggleTheme(): Theme {
  const next: Theme = currentTheme() === "dark" ? "light" : "dark"
  document.documentElement.dataset.theme = next
  try {
    localStorage.setItem(STORAGE_KEY, next)
  } catch {
    // the choice lasts for this visit only
  }
  return next
}

/** Use the light theme until the returned function is called. For the print view. */
export function forceLightTheme(onChange: () => void): () => void {
  const page = document.documentElement
  const previous = page.dataset.theme
  page.dataset.theme = "light"
  onChange()
  return () => {
    if (previous === undefined) delete page.dataset.theme
    else page.dataset.theme = previous
    onChange()
  }
}

/**
 * Call `start` before the page is printed, with all changes drawn at once, and the function that it
 * returns afterwards. Returns the unsubscribe function.
 */
export function onPrint(start: () => () => void): () => void {
  let finish = () => {}
  const onBefore = () => {
    const { debounceRendering, requestAnimationFrame } = options
    options.debounceRendering = options.requestAnimationFrame = (draw) => draw()
    finish = start()
    Object.assign(options, { debounceRendering, requestAnimationFrame })
  }
  const onAfter = () => finish()
  addEventListener("beforeprint", onBefore)
  addEventListener("afterprint", onAfter)
  return () => {
    removeEventListener("beforeprint", onBefore)
    removeEventListener("afterprint", onAfter)
  }
}

const THEME_EVENT = "neural-theme"

/** Run `action` while the page is drawn in the light theme. For pictures that are saved as files. */
export async function withLightTheme<T>(action: () => Promise<T>): Promise<T> {
  if (currentTheme() === "light") return action()
  const announce = () => document.dispatchEvent(new Event(THEME_EVENT))
  const restore = forceLightTheme(announce)
  try {
    // two frames: one until the components have the new theme, one until their charts are drawn
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame)
    return await action()
  } finally {
    restore()
  }
}

/** Subscribe to changes of the system theme. Returns the unsubscribe function. */
export function onColourSchemeChange(onChange: () => void): () => void {
  const query = matchMedia("(prefers-color-scheme: dark)")
  query.addEventListener("change", onChange)
  document.addEventListener(THEME_EVENT, onChange)
  return () => {
    query.removeEventListener("change", onChange)
    document.removeEventListener(THEME_EVENT, onChange)
  }
}
