// What keys do. Keys that a field needs for itself are left to it.

export const KEYS: [keys: string, what: string][] = [
  ["← →", "a step back, a step on (with Shift, ten)"],
  ["Home End", "the first step, the last step"],
  ["space", "play, pause"],
  ["j k", "next head, previous head"],
  ["J K", "next layer, previous layer"],
  ["n p", "next token, previous token"],
  ["1 … 9", "views, in the order of the tabs"],
  ["t", "light or dark"],
  ["?", "this help"],
]

export interface Deeds {
  /** Says whether there was anything to move, as do `play` and all that may have nothing to do. */
  move: (looks: number) => boolean
  play: () => boolean
  head: (by: number) => void
  layer: (by: number) => void
  query: (by: number) => void
  pane: (index: number) => void
  theme: () => void
  help: () => void
  close: () => void
}

/** Does what a key stands for; says whether it stood for something. */
export function pressed(event: KeyboardEvent, deeds: Deeds): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return false
  const far = event.shiftKey ? 10 : 1
  const known: Record<string, () => boolean | void> = {
    ArrowLeft: () => deeds.move(-far), ArrowRight: () => deeds.move(far),
    Home: () => deeds.move(-Infinity), End: () => deeds.move(Infinity),
    " ": () => !isPressed(event.target) && deeds.play(),
    j: () => deeds.head(1), k: () => deeds.head(-1), J: () => deeds.layer(1), K: () => deeds.layer(-1),
    n: () => deeds.query(1), p: () => deeds.query(-1), t: deeds.theme, "?": deeds.help, Escape: deeds.close,
  }
  const deed = known[event.key] ?? (/^[1-9]$/.test(event.key) ? () => deeds.pane(Number(event.key) - 1) : undefined)
  return deed !== undefined && deed() !== false
}

/** Whether the space bar presses it. */
function isPressed(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("button, summary, a, input[type=checkbox], [role=button]")
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  const slider = target instanceof HTMLInputElement && ["range", "checkbox"].includes(target.type)
  return !slider && (target.matches("input, textarea, select") || target.isContentEditable)
}
