// Readable names of runs: the experiment and what distinguishes the run in it, not the folder.

import { stripDate } from "./format"
import type { Group, Index } from "./run_data"

export interface RunLabel {
  id: string
  /** Unique on the page: `soft, seed 3`. */
  text: string
}

/** The runs of one experiment, as the selector lists them. */
export interface LabelledExperiment {
  title: string
  runs: RunLabel[]
}

/** All runs of a page by experiment. Runs of no group come last, under their own names. */
export function labelExperiments(index: Index): LabelledExperiment[] {
  const texts = labelRuns(index)
  const experiments = index.experiments?.length
    ? index.experiments.map(({ title, runs }) => ({ title, runs }))
    : index.groups.map(({ label, runs }) => ({ title: label, runs }))
  const listed = new Set(experiments.flatMap((experiment) => experiment.runs))
  const rest = index.runs.map((run) => run.id).filter((id) => !listed.has(id))
  return [...experiments, { title: "other runs", runs: rest }]
    .filter((experiment) => experiment.runs.length > 0)
    .map(({ title, runs }) => ({
      title,
      runs: runs.map((id) => ({ id, text: texts.get(id) ?? id })),
    }))
}

/** Name of every run by id: the label of its group, and its seed if the group has several runs. */
export function labelRuns(index: Index): Map<string, string> {
  const groupOf = new Map<string, Group>()
  for (const group of index.groups) for (const id of group.runs) groupOf.set(id, group)
  const labels = index.runs.map((run) => {
    const group = groupOf.get(run.id)
    if (!group) return stripDate(run.name)
    const label = stripData(group)
    if (group.runs.length === 1) return label
    const repetition = [
      ...(run.fold ? [`fold ${run.fold}`] : []),
      ...(typeof run.seed === "number" ? [`seed ${run.seed}`] : []),
    ]
    return `${label}, ${repetition.join(", ") || stripDate(run.name)}`
  })
  const counts = new Map<string, number>()
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1)
  return new Map(
    index.runs.map((run, position) => {
      const label = labels[position]
      // the same seed twice, or experiments on two data sets with one name: the folder tells them apart
      return [run.id, counts.get(label)! > 1 ? `${label} (${run.name})` : label]
    }),
  )
}

/** Where a page has several data sets, labels of groups begin with theirs. */
function stripData({ label, data }: Group): string {
  return label.startsWith(`${data}: `) ? label.slice(data.length + 2) : label
}
