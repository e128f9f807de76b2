// Keyboard shortcuts. Keys pressed in text fields are left to the field.

export const KEY_HELP: [keys: string, description: string][] = [
  ["← →", "previous step, next step (with Shift: ten)"],
  ["Home End", "first step, last step"],
  ["space", "play, pause"],
  ["j k", "next head, previous head"],
  ["J K", "next layer, previous layer"],
  ["n p", "next token, previous token"],
  ["1 … 9 0", "the first ten tabs, in their order"],
  ["t", "light or dark theme"],
  ["?", "this help"],
]

export interface KeyActions {
  /** In snapshots. Returns whether there are any, as `play` does; if not, the browser handles the key. */
  move: (offset: number) => boolean
  play: () => boolean
  head: (offset: number) => void
  layer: (offset: number) => void
  query: (offset: number) => void
  pane: (index: number) => void
  theme: () => void
  help: () => void
  close: () => void
}

/** Run the action bound to a key. Returns whether the key was handled. */
export function handleKey(event: KeyboardEvent, actions: KeyActions): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || takesText(event.target)) return false
  const stride = event.shiftKey ? 10 : 1
  const bindings: Record<string, () => unknown> = {
    ArrowLeft: () => actions.move(-stride),
    ArrowRight: () => actions.move(stride),
    Home: () => actions.move(-Infinity),
    End: () => actions.move(Infinity),
    " ": () => !isActivatedBySpace(event.target) && actions.play(),
    j: () => actions.head(1),
    k: () => actions.head(-1),
    J: () => actions.layer(1),
    K: () => actions.layer(-1),
    n: () => actions.query(1),
    p: () => actions.query(-1),
    t: actions.theme,
    "?": actions.help,
    Escape: actions.close,
  }
  const action =
    bindings[event.key] ??
    (/^\d$/.test(event.key) ? () => actions.pane((Number(event.key) + 9) % 10) : undefined)
  return action !== undefined && action() !== false
}

/** Whether the browser activates the element with the space bar. */
function isActivatedBySpace(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.matches("button, summary, a, input[type=checkbox], [role=button]")
  )
}

function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  const isSliderOrBox =
    target instanceof HTMLInputElement && ["range", "checkbox"].includes(target.type)
  return !isSliderOrBox && (target.matches("input, textarea, select") || target.isContentEditable)
}
