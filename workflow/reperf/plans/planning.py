"""All plans of a report, made at once."""

import json
import os
from collections import defaultdict
from collections.abc import Collection
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from random import Random

from reperf import layout
from reperf.builds import RECORD, Build
from reperf.config import Cell, Data, Report, Run, Suite
from reperf.config.data import KIND_OF
from reperf.config.words import LARGEST
from reperf.data.kinds import KINDS
from reperf.errors import ReperfError
from reperf.files import write_whole
from reperf.plans.plan_files import MadePlan, Plan, ReportPlan, SetPlan, SuitePlan
from reperf.plans.run_plan import RunPlan, plan_run, run_of_search


class Plans:
    """The plans of a report whose device is decided."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._cluster = report.cluster.of_launch() if report.cluster else None
        self._reached = report.cluster.reached() if report.cluster else {}
        self.runs: dict[str, RunPlan] = {}  # by their folders
        self.searches: dict[str, RunPlan] = {}  # by what they write; they leave the batch size open
        self.sets = {data.name: data for data in report.data}
        self.set_digests = {name: _digest_of(data) for name, data in self.sets.items()}
        self.suites = {suite.name: self._suite(suite) for suite in report.suites}
        self.builds = {  # by their folders, without the locks that systems have
            Path(plan.build.folder): MadePlan.of(plan.run, report.cluster)
            for plan in self.runs.values()
            if plan.run.container or plan.run.environment or plan.run.lock_file
        }
        self.configs = {  # each asks for a suite alone
            suite: report.alone(suite).model_dump_json(by_alias=True, indent=2) + "\n"
            for suite in self.suites
        }
        # A run's folder -> its place in the order in which runs train.
        self.turns = {folder: turn for turn, folder in enumerate(self._in_turns(), 1)}
        self.whole = ReportPlan(report=report.model_dump(mode="json", by_alias=True))

    def write(self, anew: Collection[str] = ()) -> None:
        """Write all plans whose bytes have changed; the runs in `anew` take up no ended try."""
        plans: dict[str, Plan] = {
            f"{folder}/{layout.PLAN}": plan.anew() if folder in anew else plan
            for folder, plan in self.runs.items()
        }
        plans |= {str(Path(path).with_name(layout.PLAN)): of for path, of in self.searches.items()}
        plans |= {layout.SUITE_PLAN.format(suite=suite): of for suite, of in self.suites.items()}
        plans |= {f"{folder}/{layout.PLAN}": of for folder, of in self.builds.items()}
        plans |= {
            layout.SET_PLAN.format(set=of.name): SetPlan(data=of) for of in self.sets.values()
        }
        plans[layout.REPORT_PLAN] = self.whole
        texts = {path: plan.text for path, plan in plans.items()}
        texts |= {layout.SUITE_CONFIG.format(suite=of): text for of, text in self.configs.items()}
        for path, text in texts.items():
            file = Path(path)
            if not file.is_file() or file.read_bytes() != text.encode():
                write_whole(file, text, durable=False)

    def run(self, folder: str) -> RunPlan:
        """The plan of the run in a folder; a ReperfError says that the report has no such run."""
        if folder not in self.runs:
            raise ReperfError(f"{folder}: not in this report; allowed: what `reperf runs` lists")
        return self.runs[folder]

    @cached_property
    def embedded(self) -> dict[str, str]:
        """What is written last of each embedded set.

        The user's own files are nobody's inputs: Snakemake would look at every one of them.
        """
        embedded = {name: data for name, data in self.sets.items() if data.is_embedded}
        return {name: f"data/{name}/{KINDS[data.kind].last}" for name, data in embedded.items()}

    def needs_of(self, plan: RunPlan) -> dict[str, list[str]]:
        """What must exist before a run starts: its framework, what it reads, its batch size."""
        # An image may be unusable: nobody should learn that after hours of other runs.
        builds = {plan.build.folder, *self.images}
        manifest = f"{plan.run.data}/manifest.json"
        is_users_own = plan.run.input == "folder" and manifest not in self.embedded.values()
        return {
            "build": [f"{folder}/environment.json" for folder in sorted(builds)],
            "data": [] if plan.run.data is None or is_users_own else [manifest],
            "batch": [plan.batch] if plan.batch else [],
        }

    @property
    def images(self) -> list[str]:
        """The folders of the builds that are made from images."""
        return [str(folder) for folder, plan in self.builds.items() if plan.container]

    @property
    def named_builds(self) -> dict[str, Build]:
        """The builds of these plans, by the names of their folders."""
        return {folder.name: plan.build for folder, plan in self.builds.items()}

    @property
    def results(self) -> dict[str, list[str]]:
        """All that people keep, by what it is: Snakemake makes a lost file again."""
        tables = [table for suite in self.suites for table in layout.tables_of(suite)]
        figures = [layout.figures_of(*of_suite) for of_suite in self.figure_kinds.items()]
        return {
            "runs": [f"{folder}/{name}" for folder in self.runs for name in layout.RUN_FILES],
            "tables": [layout.ALL_MEASUREMENTS, layout.ALL_SUMMARY, *tables],
            "figures": [file for of_suite in figures for file in of_suite],
            "reports": list(layout.PAGES),
            "archives": [layout.ARCHIVE.format(suite=suite) for suite in self.suites],
        }

    @property
    def figures(self) -> list[str]:
        """The figures of all suites in the report."""
        shared = [name for name, plan in self.suites.items() if plan.suite.shares_model]
        epochs = [file for name in shared for file in layout.figures_of(name, [layout.EPOCHS])]
        return self.results["figures"] + epochs

    @cached_property
    def figure_kinds(self) -> dict[str, tuple[str, ...]]:
        """A suite -> the kinds of its figures that its archive holds, too."""
        return {suite.name: self._report.figure_kinds(suite) for suite in self._report.suites}

    @property
    def suites_by_figures(self) -> dict[tuple[str, ...], list[str]]:
        """The suites that have figures of the same kinds, by these."""
        suites: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name, kinds in self.figure_kinds.items():
            suites[kinds].append(name)
        return suites

    @property
    def checksums(self) -> list[str]:
        """The lists of those figures' checksums."""
        lists = (
            layout.checksums_of(name, epochs=plan.suite.shares_model)
            for name, plan in self.suites.items()
        )
        return [file for of_suite in lists for file in of_suite]

    @property
    def descriptions(self) -> list[str]:
        """The files that say what the report's workloads and systems are."""
        return sorted({file for plan in self.suites.values() for file in plan.descriptions()})

    def config_digest(self, suite: str) -> str:
        """The SHA-256 of the configuration that asks for a suite alone."""
        return sha256(self.configs[suite].encode()).hexdigest()

    @property
    def environments(self) -> list[str]:
        """The file that each build of the runs writes last."""
        folders = {plan.build.folder for plan in self.runs.values()}
        return sorted(f"{folder}/{RECORD}" for folder in folders)

    def _in_turns(self) -> list[str]:
        """The folders of runs, repeat by repeat, in an order that the seed shuffles: A B B A.

        Reversing every second repeat makes a machine that becomes slower slow all systems alike.
        """
        shuffled, turns = Random(self._report.seed), []
        cells = list(dict.fromkeys(map(os.path.dirname, self.runs)))
        for repeat in range(
            1, 1 + max((plan.run.repeat for plan in self.runs.values()), default=0)
        ):
            cells = cells[::-1] if repeat % 2 == 0 else shuffled.sample(cells, len(cells))
            turns += [folder for cell in cells if (folder := f"{cell}/{repeat}") in self.runs]
        return turns

    def _suite(self, suite: Suite) -> SuitePlan:
        cells = tuple(self._report.cells(suite))
        can = [cell for cell in cells if not cell.unsupported]
        batches = {
            cell.runs[0].entry: self._search(suite, cell)
            for cell in can
            if cell.runs[0].batch_size == LARGEST
        }
        plans = {
            str(run.folder): self._plan(suite, run, batches.get(run.entry))
            for cell in can
            for run in cell.runs
        }
        self.runs |= plans
        return SuitePlan(
            suite=suite,
            cells=cells,
            plans={folder: plan.digest for folder, plan in plans.items()},
            batches=batches,
        )

    def _search(self, suite: Suite, cell: Cell) -> str:
        """Plan the search for an entry's batch size, which suites may share; returns its file."""
        run = run_of_search(cell.runs[0], self._report.widest_topology(suite))
        plan = self._plan(suite, run)
        path = f"{layout.BATCH_FOLDER}/{layout.BATCH_RECORD}".format(
            entry=run.entry, digest=plan.digest[:16]
        )
        shared = self.searches.setdefault(path, plan)
        if shared.aside.time_limit < plan.aside.time_limit:
            self.searches[path] = plan
        return path

    def _plan(self, suite: Suite, run: Run, batch: str | None = None) -> RunPlan:
        data = self._report.data_of(suite) if run.data else None
        return plan_run(
            run,
            cluster=self._cluster,
            data=self.set_digests[data.name] if data else None,
            batch=batch,
            window=(suite.window.first, suite.window.last),
            time_limit=suite.time_limit,
            **self._reached,
        )


def _digest_of(data: Data) -> str:
    """The SHA-256 of what decides the content of a data set."""
    others = {key for key, kind in KIND_OF.items() if kind != data.kind}
    content = data.model_dump(mode="json", exclude={"workers", "embedded_on_gpus", *others})
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
