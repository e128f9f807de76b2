"""Headlines of experiments on the first view of a page, one file per task, named like the task."""

from neural.core.registry import Registry
from neural.report.headline import HeadlineWriter

registry = Registry(__name__, HeadlineWriter, noun="headline", spelling="file")
