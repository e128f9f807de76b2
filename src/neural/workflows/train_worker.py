"""Child process of a sweep: `python -m neural.workflows.train_worker PARENT_PID REQUEST`.

REQUEST is a `TrainRequest` (train.py) as JSON. The worker trains as `neural train --quiet` does:
errors are messages on stderr, the exit code says how the training ended. The worker stops by itself
when its parent is gone, because a sweep that was killed cannot stop its children.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from neural.core.errors import EXIT_STOPPED, find_user_error, format_error
from neural.training.parent_watch import watch_parent
from neural.workflows.train import TrainRequest, prepare_training, train


def run_request(request: dict[str, Any]) -> int:
    """Train and return the exit code: 0 finished, 1 failed, 2 refused, 130 stopped.

    `request` has the fields of a `TrainRequest`; refused means that its settings or data are wrong.
    """
    try:
        fields: Any = {**request, "overrides": tuple(request.get("overrides", ()))}
        run, result = train(
            prepare_training(TrainRequest(**fields)),
            on_warning=lambda text: print(f"note: {text}", file=sys.stderr),
        )
    except KeyboardInterrupt:
        return EXIT_STOPPED
    except Exception as error:
        user_error = find_user_error(error)
        if user_error is None:
            raise
        print(format_error(user_error), file=sys.stderr)
        return user_error.exit_code
    if run is not None:
        print(run.path)
    return 0 if result.state == "finished" else EXIT_STOPPED


if __name__ == "__main__":
    watch_parent(int(sys.argv[1]))
    sys.exit(run_request(json.loads(sys.argv[2])))
