// Width of an element in CSS pixels, so that pictures are drawn at their size and text stays readable.

import { useLayoutEffect, useRef, useState } from "preact/hooks"
import type { RefObject } from "preact"

/** A reference for the element, and its width; `initial` until it is laid out. */
export function useWidth(initial: number): [RefObject<HTMLDivElement | null>, number] {
  const element = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(initial)
  useLayoutEffect(() => {
    const update = () => {
      const measured = Math.floor(element.current?.clientWidth ?? 0)
      if (measured > 0) setWidth(measured)
    }
    update()
    const observer = new ResizeObserver(update)
    if (element.current) observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  return [element, width]
}
