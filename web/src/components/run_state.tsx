// The state of a run as a label: running, finished, failed, …

export function RunState({ state }: { state: string }) {
  return <span class={`state ${/^[a-z]+$/.test(state) ? state : ""}`}>{state}</span>
}
