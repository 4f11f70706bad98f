r"""Tables to cite: what the report prints, as CSV, Markdown and LaTeX.

CSV holds plain numbers with all their digits, one column for a value and one for each end of its
interval. Markdown and LaTeX are printed as the page is. LaTeX needs ``\usepackage{booktabs}``.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from voxrisk.files.atomic import write_text
from voxrisk.report import words
from voxrisk.report.references import bibtex
from voxrisk.results import AttackResult, Results
from voxrisk.types import Estimate, InputError

FOLDER = "tables"
POOLED = "all, pooled"
MEAN = "mean of the sets"
# Criterion → the figure of a crowd behind it.
METRICS = {"singling out": "singling_out", "linkability": "linkability"}
SCORED = ("rocch_eer", "d_ece", "log10_l")
# What LaTeX reads as a command, and how it is written.
SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "−": "$-$", "–": "--", "\u00a0": "~", "…": r"\ldots{}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what it shows, the words of its columns, and its cells.

    Attributes:
        name: As it stands in file names.
        caption: In a sentence.
        header: Of each column.
        rows: Cells; an estimate, or text.
    """

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | Estimate | None, ...], ...]


def tables_of(results: Results) -> list[Table]:
    """Every table of the page that has rows, the attackers first."""
    return [table for make in TABLES if (table := make(results)).rows]


def attackers_table(results: Results) -> Table:
    """A line for each attacker, the strongest first: the figures of the page's own table."""
    settings = crowd_settings(results)
    header = ["Attacker", "VoicePrivacy", "Legal framework"]
    header += [f"{words.LABELS[m]}, L = {L}, N = {N}" for m, L, N in settings]
    header += [words.LABELS[name] for name in SCORED]
    rows = [
        (
            a.name + ("" if a.ranked else " (failed its control)"),
            a.voiceprivacy,
            a.paper1,
            *(a.at(*setting) for setting in settings),
            *(a.figures.get(name) for name in SCORED),
        )
        for a in results.attacks
    ]
    return Table(
        "attackers",
        f"Attackers, the strongest first: {results.title}",
        (*header, "ZEBRA tag"),
        tuple((*row, a.tag) for row, a in zip(rows, results.attacks, strict=True)),
    )


def crowd_table(results: Results) -> Table:
    """Every point of the curves: a figure for each attacker, L and N, beside guessing."""
    shown = ("singling_out", "linkability", "rocch_eer")
    return Table(
        "crowd",
        f"Risk by length of conversation L and number of people N: {results.title}",
        ("Figure", "Attacker", "L", "N", "Value", "Guessing"),
        tuple(
            (words.LABELS[e.name], a.name, str(e.length), str(e.size), e, _guessing(e))
            for name in shown
            for a in results.attacks
            for e in a.crowd
            if e.name == name
        ),
    )


def suite_table(results: Results) -> Table:
    """What the attacker who chooses chose from: each recogniser on either kind of speakers."""
    eer = words.LABELS["rocch_eer"]
    return Table(
        "suite",
        f"Recognisers that the strongest attacker chose from: {results.title}",
        ("Attacker", "Hears", "Back end", "Share",
         f"{eer}, training speakers held out", f"{eer}, people under test"),
        tuple(
            (a.name, m.hears, m.backend, "aside" if m.aside else _share(m.weight), m.held_out,
             m.eer)
            for a in results.attacks
            for m in a.members
        ),
    )  # fmt: skip


def _share(weight: float) -> str:
    return words.percent(weight) if weight else "–"


def speakers_table(results: Results) -> Table:
    """Each speaker under each attacker, the most exposed first."""
    return Table(
        "speakers",
        f"How often each speaker is recognised, in the largest crowd: {results.title}",
        ("Attacker", "Speaker", "Linked", "Recordings tried", "Singled out",
         "Similarity to own voice"),
        tuple(
            (a.name, p.speaker, _plain(p.linkability), _plain(p.trials), _plain(p.singling_out),
             _plain(p.similarity))
            for a in results.attacks
            for p in a.speakers
        ),
    )  # fmt: skip


def groups_table(results: Results) -> Table:
    """Figures within each group of speakers."""
    return Table(
        "groups",
        f"Figures within groups of speakers: {results.title}",
        ("Attacker", "Group", "Speakers", words.LABELS["rocch_eer"], words.LABELS["d_ece"]),
        tuple(
            (a.name, f"{g.group}: {g.value}", str(g.speakers), g.figures.get("rocch_eer"),
             g.figures.get("d_ece"))
            for a in results.attacks
            for g in a.groups
        ),
    )  # fmt: skip


def utility_table(results: Results) -> Table:
    """What the speech is good for, before and after."""
    heard = results.utility
    return Table(
        "usefulness",
        f"What the speech is good for, before and after: {results.title}",
        ("Figure", "Original speech", "Anonymized speech", "Note"),
        tuple(
            (words.LABELS[name], heard.get(name, "original"), heard.get(name, "anonymized"),
             heard.untrusted.get(name, ""))
            for name in heard.figures
        )
        if heard
        else (),
    )  # fmt: skip


def attributes_table(results: Results) -> Table:
    """What can be inferred: balanced accuracy of each attacker, and the bits it learns."""
    found = results.inference.attributes if results.inference else ()
    return Table(
        "attributes",
        f"What can be inferred about people, and what survives: {results.title}",
        ("Attribute", "Use", "Attacker", "Learned from", "L", words.LABELS["uar"], "Guessing",
         words.LABELS["attribute_bits"]),
        tuple(
            (a.name, "to be hidden" if a.use == "hide" else "to survive", k.attacker,
             k.learned_from, str(e.length), e, _guessing(e), k.get("attribute_bits", e.length))
            for a in found
            for k in a.attacks
            for e in k.figures
            if e.name == "uar"
        ),
    )  # fmt: skip


def _guessing(e: Estimate) -> Estimate:
    """The chance level as a figure of its own, so that it is printed in the same unit."""
    return Estimate(e.name, e.chance, e.chance, {}, "chance level")


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def sets_table(results: Results) -> Table:
    """Equal error rates: a line for each set of trials, a column for each attacker."""
    attacks = results.attacks
    if not attacks or not attacks[0].sets:
        return Table("sets", "", ("Set",), ())
    names = list(dict.fromkeys(s.name for a in attacks for s in a.sets))
    rows: list[tuple[str | Estimate | None, ...]] = [
        (name, _trials(attacks[0], name), *(_of_set(a, name) for a in attacks)) for name in names
    ]
    sizes = attacks[0].sizes
    rows.append((MEAN, "", *(mean_of_sets(a) for a in attacks)))
    pooled = f"{sizes.get('target', 0)} / {sizes.get('nontarget', 0)}"
    rows.append((POOLED, pooled, *(a.figures.get("rocch_eer") for a in attacks)))
    return Table(
        "sets",
        f"Equal error rate of each attacker on each set of trials: {results.title}",
        ("Set", "Target / nontarget trials", *(a.name for a in attacks)),
        tuple(rows),
    )


def mean_of_sets(attack: AttackResult) -> Estimate | None:
    """The plain mean of the equal error rates of all sets, by which VoicePrivacy ranks systems.

    It has no interval. In the pool one threshold serves all sets, which is harder for the attacker.
    None where a set has no figure.
    """
    found = [s.figures.get("rocch_eer") for s in attack.sets]
    values = [e.value for e in found if e is not None]
    if not values or len(values) < len(found):
        return None
    return Estimate(
        "rocch_eer", fmean(values), 0.5, {"set": len(values)}, "mean over sets, VoicePrivacy 2024"
    )


def crowd_settings(results: Results) -> list[tuple[str, int, int]]:
    """The metric, L and N at which the verdict holds."""
    return [
        (METRICS[c.name], c.value.length, c.value.size)
        for c in (results.verdict.criteria if results.verdict else ())
        if c.value is not None and c.name in METRICS
    ]


def _of_set(attack: AttackResult, name: str) -> Estimate | None:
    found = next((s for s in attack.sets if s.name == name), None)
    return found.figures.get("rocch_eer") if found else None


def _trials(attack: AttackResult, name: str) -> str:
    sizes = next((s.sizes for s in attack.sets if s.name == name), {})
    return f"{sizes.get('target', 0)} / {sizes.get('nontarget', 0)}"


def as_csv(table: Table) -> str:
    """Plain numbers: a figure has three columns, its value and both ends of its interval."""
    numbers = _number_columns(table)
    header = []
    for i, name in enumerate(table.header):
        header += [name, f"{name}, low", f"{name}, high"] if i in numbers else [name]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in table.rows:
        cells: list[object] = []
        for i, cell in enumerate(row):
            if i not in numbers:
                cells.append(cell)
                continue
            e = cell if isinstance(cell, Estimate) else None
            span = e.interval if e else None
            cells += [e.value if e else "", span.low if span else "", span.high if span else ""]
        writer.writerow(cells)
    return text.getvalue()


def as_markdown(table: Table) -> str:
    r"""A pipe table; what would break a cell is escaped.

    >>> print(as_markdown(Table("t", "c", ("a|b", "n"), (("x", "1"),))))
    | a\|b | n |
    |---|---|
    | x | 1 |
    <BLANKLINE>
    c
    <BLANKLINE>
    """
    numbers = _number_columns(table)
    lines = [_line(map(_markdown, table.header))]
    lines.append(
        f"|{'|'.join('---:' if i in numbers else '---' for i in range(len(table.header)))}|"
    )
    lines += [_line(_markdown(_shown(cell)) for cell in row) for row in table.rows]
    return "\n".join([*lines, "", _markdown(table.caption), ""])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text).replace("\n", " ")


def as_latex(table: Table) -> str:
    """A table with the rules of booktabs."""
    numbers = _number_columns(table)
    columns = "".join("r" if i in numbers else "l" for i in range(len(table.header)))
    rows = [" & ".join(latex(_shown(cell)) for cell in row) + r" \\" for row in table.rows]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex(table.caption)}}}",
            rf"\label{{tab:{table.name}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(map(latex, table.header)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def latex(text: str) -> str:
    r"""Text as LaTeX prints it, whatever characters it holds.

    >>> print(latex("libri_test_f: 5 % & {x}"))
    libri\_test\_f: 5 \% \& \{x\}
    """
    return "".join(SPECIAL.get(letter, letter) for letter in text.replace("\n", " "))


def _number_columns(table: Table) -> set[int]:
    return {
        i for row in table.rows for i, cell in enumerate(row) if isinstance(cell, Estimate)
    }  # fmt: skip


def _shown(cell: str | Estimate | None) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None:
        return "–"
    if cell.interval is None:
        return words.estimate(cell)
    return f"{words.estimate(cell)} ({words.interval(cell)})"


# In the order of the page.
TABLES: tuple[Callable[[Results], Table], ...] = (
    attackers_table,
    sets_table,
    suite_table,
    crowd_table,
    speakers_table,
    groups_table,
    utility_table,
    attributes_table,
)
WRITERS: dict[str, tuple[str, Callable[[Table], str]]] = {
    "csv": (".csv", as_csv),
    "latex": (".tex", as_latex),
    "markdown": (".md", as_markdown),
}
FORMATS = ("html", "pdf", *WRITERS, "bibtex", "svg", "png")
TEXTS = (*WRITERS, "bibtex")


def text_files(results: Results, formats: Sequence[str] = TEXTS) -> dict[str, str]:
    """File name → text, of every table in every format, and of what to cite.

    Raises:
        InputError: If a format is not known.
    """
    files: dict[str, str] = {}
    for name in formats:
        if name == "bibtex":
            files["references.bib"] = bibtex(results)
        elif name in WRITERS:
            files |= table_files(tables_of(results), name)
        else:
            raise InputError(f"no table format {name!r}; known are {', '.join(TEXTS)}")
    return files


def table_files(tables: Sequence[Table], form: str) -> dict[str, str]:
    """File name → text of every table in one of :data:`WRITERS`."""
    ending, write = WRITERS[form]
    return {f"{table.name}{ending}": write(table) for table in tables}


def write_tables(
    results: Results,
    folder: Path,
    formats: Sequence[str] = TEXTS,
    *,
    force: bool = True,
) -> list[Path]:
    """Write the tables of a run, and what to cite; returns the files.

    Raises:
        InputError: If a format is not known, or a file is there and ``force`` is false.
    """
    return write_files(text_files(results, formats), folder, force=force)


def write_files(files: Mapping[str, str], folder: Path, *, force: bool = True) -> list[Path]:
    """Write texts under their names.

    Raises:
        InputError: If a file is there and ``force`` is false.
    """
    there = [folder / name for name in files if (folder / name).exists()]
    if there and not force:
        raise InputError(f"{there[0]} is already there; choose another folder or add --force")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_text(folder / name, text)
    return [folder / name for name in files]
