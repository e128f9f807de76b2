// A link to a view of the page: a pane at a run, step, layer and head.

import type { ComponentChildren } from "preact"

import { formatRoute, type Navigate, type Route } from "../route"

interface Props {
  route: Partial<Route>
  navigate: Navigate
  title?: string
  class?: string
  label?: string
  style?: Record<string, string>
  children: ComponentChildren
}

/** Keys of the address, in its order. A link removes those it does not have: it always leads to the same view. */
const VIEW_KEYS: Partial<Route> = {
  run: undefined,
  step: undefined,
  layer: undefined,
  head: undefined,
  query: undefined,
}

export function ViewLink({ route, navigate, title, label, style, children, class: name }: Props) {
  const target = { pane: "overview", ...route }
  return (
    <a
      class={name}
      style={style}
      href={formatRoute(target)}
      title={title}
      aria-label={label}
      onClick={(event) => {
        // other clicks, such as one that opens a new tab, are the browser's
        if (event.ctrlKey || event.metaKey || event.shiftKey) return
        event.preventDefault()
        navigate({ ...VIEW_KEYS, ...target })
      }}
    >
      {children}
    </a>
  )
}
