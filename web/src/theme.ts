// Light or dark: as the screen is, or as the reader chose.

export type Theme = "light" | "dark"

const KEY = "neural-theme"

export function theme(): Theme {
  const chosen = document.documentElement.dataset.theme
  if (chosen === "light" || chosen === "dark") return chosen
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
}

/** What was chosen on an earlier visit; a frame without a memory has none. */
export function recallTheme(): void {
  try {
    const chosen = localStorage.getItem(KEY)
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen
  } catch {
    // storage is closed to this page
  }
}

export function turnTheme(): Theme {
  const next: Theme = theme() === "dark" ? "light" : "dark"
  document.documentElement.dataset.theme = next
  try {
    localStorage.setItem(KEY, next)
  } catch {
    // it holds for this visit
  }
  return next
}

/** Light for as long as a page is looked at that is made to be printed; gives back what ends it. */
export function onPaper(tell: () => void): () => void {
  const page = document.documentElement
  const before = page.dataset.theme
  page.dataset.theme = "light"
  tell()
  return () => {
    if (before === undefined) delete page.dataset.theme
    else page.dataset.theme = before
    tell()
  }
}

/** Calls when the screen changes from light to dark or back. */
export function onScreenChange(tell: () => void): () => void {
  const query = matchMedia("(prefers-color-scheme: dark)")
  query.addEventListener("change", tell)
  return () => query.removeEventListener("change", tell)
}
