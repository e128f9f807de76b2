// The verdict of a finding. A claim is supported or not; a warning or note that holds is named as such.

import type { Finding } from "../run_data"

export function Verdict({ finding }: { finding: Finding }) {
  const word =
    finding.kind === "claim" || finding.supported !== "yes" ? finding.supported : finding.kind
  return <span class={`verdict ${word}`}>{word}</span>
}
