"""Score and trial files: every form gives the same trials, every fault is named."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from voxrisk.corpus.trials import read_enrolments
from voxrisk.files.joining import _groups, join
from voxrisk.files.scores import read_scores, read_speakers, read_trials
from voxrisk.types import InputError

ROWS = [("ann", "ann-1", 2.5), ("ann", "bob-1", -1.0), ("bob", "ann-1", 0.25), ("bob", "bob-1", 3)]
TRIALS = "enroll,trial,label\nann,ann-1,target\nann,bob-1,nontarget\nbob,ann-1,nontarget\nbob,bob-1,target\n"  # noqa: E501


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def kaldi() -> str:
    return "".join(f"{e} {t} {s}\n" for e, t, s in ROWS)


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    return written(tmp_path / "trials.csv", TRIALS)


@pytest.fixture(
    params=["csv", "tsv", "kaldi", "vpc2024", "gzip", "folder", "parquet", "npz", "matrix", "bom"]
)
def scores(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same four scores in every form that is read."""
    comma = "trial,score,enroll\n" + "".join(f"{t},{s},{e}\n" for e, t, s in ROWS)
    match request.param:
        case "csv":
            return written(tmp_path / "s.csv", comma)
        case "bom":
            return written(tmp_path / "s.csv", "\ufeff" + comma.replace("\n", "\r\n"))
        case "tsv":
            return written(tmp_path / "s.tsv", comma.replace(",", "\t"))
        case "kaldi":
            return written(tmp_path / "scores.txt", kaldi())
        case "vpc2024":
            return written(tmp_path / "scores", "enroll_id trial_id score\n" + kaldi())
        case "folder":
            folder = tmp_path / "ASV-libri_test_enrolls-libri_test_trials_f"
            folder.mkdir()
            written(folder / "scores", kaldi())
            return folder
        case "gzip":
            path = tmp_path / "s.txt.gz"
            path.write_bytes(gzip.compress(kaldi().encode()))
            return path
        case "parquet":
            columns = dict(zip(("enroll", "trial", "score"), zip(*ROWS, strict=True), strict=True))
            pq.write_table(
                pa.table({k: list(v) for k, v in columns.items()}), tmp_path / "s.parquet"
            )
            return tmp_path / "s.parquet"
        case "npz":
            e, t, s = map(np.array, zip(*ROWS, strict=True))
            np.savez(tmp_path / "s.npz", enroll=e, trial=t, score=s)
        case "matrix":
            matrix = np.array([[2.5, -1.0], [0.25, 3.0]])
            np.savez(
                tmp_path / "s.npz", enroll=["ann", "bob"], trial=["ann-1", "bob-1"], score=matrix
            )
    return tmp_path / "s.npz"


def test_every_form_gives_the_same_trials(scores: Path, trials: Path) -> None:
    scored, warnings = join(read_scores(scores), read_trials(trials))
    assert scored.score.tolist() == [2.5, -1.0, 0.25, 3.0]
    assert scored.is_target.tolist() == [True, False, False, True]
    assert scored.speakers == ("ann", "bob")
    assert [scored.speakers[i] for i in scored.trial_speaker] == ["ann", "bob", "ann", "bob"]
    assert warnings == []


def test_scores_are_joined_by_id_not_by_position(tmp_path: Path, trials: Path) -> None:
    backwards = "".join(reversed(kaldi().splitlines(keepends=True)))
    scored, _ = join(read_scores(written(tmp_path / "s", backwards)), read_trials(trials))
    assert scored.score.tolist() == [2.5, -1.0, 0.25, 3.0]


def test_all_faults_are_named_together(tmp_path: Path, trials: Path) -> None:
    text = "ann ann-1 2.5\nann bob-1 -1\nann bob-1 -1\nbob cy-1 3\n"
    with pytest.raises(InputError) as caught:
        join(read_scores(written(tmp_path / "s.txt", text)), read_trials(trials))
    message = str(caught.value)
    assert "s.txt: pairs that stand twice: 1\n  ann bob-1 (line 3)" in message
    assert "trials without a score in" in message
    assert "  bob ann-1 (line 4)\n  bob bob-1 (line 5)" in message
    assert "scores without a trial" in message
    assert "--allow-extra" in message
    assert "  bob cy-1 (line 4)" in message


def test_extra_scores_can_be_left_out(tmp_path: Path, trials: Path) -> None:
    path = written(tmp_path / "s.txt", kaldi() + "cy ann-1 9\n")
    scored, _ = join(read_scores(path), read_trials(trials), allow_extra=True)
    assert scored.score.max() == 3.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ann ann-1 2.5\nann bob-1 nan\n", r"1 of 2 scores are not finite.*\n.*line 2.*is nan"),
        ("ann ann-1 2.5\nann bob-1 x\n", "line 2: score is 'x', not a number"),
        ("ann ann-1 2.5\nann bob-1\n", "line 2: 2 columns where enroll, trial, score are needed"),
        ("", "is empty"),
        ("enroll,trial,mark\na,b,1\n", "no column score; the header is enroll, trial, mark"),
        ("enroll,trial,score\na,b,0,5469\n", "line 2: 4 columns where .* decimal commas as points"),
        ("a,b,0,5469\n", "line 1: 4 columns where .* decimal commas as points"),
        ("enroll\ttrial\tscore\na\tb\t0,5\n", "line 2: score is '0,5', .*write a decimal point"),
        ("enroll,trial,score,note\na,b,1\n", "line 2: 3 columns where .*note are needed"),
        ("a b 1\na c 1 2\n", "line 2: 4 columns where enroll, trial, score are needed"),
        ("enroll,trial,score\na,,1\n", "line 2: the trial id is empty"),
        ("a b 1\na c 1_0\n", "line 2: score is '1_0', not a number"),
        ("a b 1\na c \u0661\n", "line 2: score is '\u0661', not a number"),
        ("\n\nenroll,trial,score\n\n,,\na,b,x\n", "line 6: score is 'x'"),
    ],
)
def test_a_bad_score_file_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_scores(written(tmp_path / "s.txt", text))


@pytest.mark.parametrize(
    "text",
    [
        TRIALS,
        "\ufeff" + TRIALS.replace("\n", "\r\n"),
        TRIALS.replace(",", "\t"),
        TRIALS.replace("enroll,trial,label", "model,test_utt,target"),
        TRIALS.replace("enroll,trial,label", "enroll_utt,trial_utt,key").replace("nontarget", "0"),
        TRIALS.partition("\n")[2].replace(",", " "),
        "\ufeff" + TRIALS.partition("\n")[2].replace(",", " ").replace("\n", "\r\n"),
    ],
)
def test_every_form_of_a_trial_list_gives_the_same_pairs(tmp_path: Path, text: str) -> None:
    """One reader for every command: what ``measure`` reads, ``score`` reads too."""
    path = tmp_path / "trials"
    path.write_bytes(text.encode())
    packed = tmp_path / "trials.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for file in (path, packed):
        assert list(read_trials(file).pairs()) == [
            ("ann", "ann-1", True),
            ("ann", "bob-1", False),
            ("bob", "ann-1", False),
            ("bob", "bob-1", True),
        ]


def test_a_trial_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    """It would count twice."""
    path = written(tmp_path / "t", "a b target\na c nontarget\na b target\n")
    with pytest.raises(InputError, match=r"t: pairs that stand twice: 1\n  a b \(line 3\)"):
        read_trials(path)


@pytest.mark.parametrize(
    "text",
    [
        "enroll,utterance\ne1,u1\ne1,u2\ne2,u3\n",
        "\ufeffmodel,utts\r\ne1,u1 u2\r\ne2,u3\r\n",
        "utterance\tspeaker\nu1\te1\nu2\te1\nu3\te2\n",
        "\ufeffu1 e1\nu2 e1\nu3 e2\n",
    ],
)
def test_every_form_of_enrolments_gives_the_same(tmp_path: Path, text: str) -> None:
    (tmp_path / "enroll").write_bytes(text.encode())
    assert read_enrolments(tmp_path / "enroll") == {"e1": ["u1", "u2"], "e2": ["u3"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("e1 u1 u2\n", "line 1: 3 columns where utterance, enroll are needed"),
        ("enroll,utterance\ne1,\n", "line 2: enroll or utterance is empty"),
        ("enroll,utterance\ne1,u1\ne1,u1\n", "line 3: 'u1' is already in enrolment 'e1'"),
    ],
)
def test_bad_enrolments_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_enrolments(written(tmp_path / "enroll", text))


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_scores(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="no scores or"):
        read_scores(tmp_path)
    (tmp_path / "s.gz").write_bytes(gzip.compress(kaldi().encode())[:20])
    with pytest.raises(InputError, match=r"s\.gz: cannot be read as a text table"):
        read_scores(tmp_path / "s.gz")
    (tmp_path / "s.csv").write_bytes(b"\xff\xfe\x00broken")
    with pytest.raises(InputError, match=r"s\.csv.*is not UTF-8 text"):
        read_scores(tmp_path / "s.csv")
    (tmp_path / "s.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="cannot be read as a Parquet table"):
        read_scores(tmp_path / "s.parquet")
    np.savez(tmp_path / "s.npz", score=[1.0])
    with pytest.raises(InputError, match="needs the arrays enroll, trial and score"):
        read_scores(tmp_path / "s.npz")
    np.savez(tmp_path / "s.npz", enroll=["a"], trial=["b"], score=np.ones((2, 2)))
    with pytest.raises(InputError, match=r"score is \(2, 2\) beside 1 enroll and 1 trial"):
        read_scores(tmp_path / "s.npz")
    with pytest.raises(InputError, match="label is 'maybe', not target or nontarget"):
        read_trials(written(tmp_path / "t", "a b maybe\n"))


def test_an_archive_of_objects_is_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", enroll=np.array([{}], object), trial=["b"], score=[1.0])
    with pytest.raises(InputError, match=r"array enroll: cannot be read as NumPy arrays.*objects"):
        read_scores(tmp_path / "s.npz")


def test_speakers_come_from_the_labels_when_nothing_names_them(tmp_path: Path) -> None:
    """Utterances that target trials connect are one person; the others are told apart."""
    keys = "u1 u2 target\nu1 u3 target\nv1 v2 target\nu1 v2 nontarget\nv1 w9 nontarget\n"
    scores = "".join(f"{' '.join(line.split()[:2])} 1\n" for line in keys.splitlines())
    scored, warnings = join(
        read_scores(written(tmp_path / "s", scores)), read_trials(written(tmp_path / "t", keys))
    )
    assert scored.speakers == ("u1", "v1", "w9 (speaker unknown)")
    assert [(w.code, w.facts["count"]) for w in warnings] == [("unknown_speakers", 1)]
    who = written(tmp_path / "utt2spk", "u1 U\nu2 U\nu3 U\nv1 V\nv2 V\nw9 U\n")
    scored, warnings = join(
        read_scores(tmp_path / "s"), read_trials(tmp_path / "t"), speakers=read_speakers(who)
    )
    assert scored.speakers == ("U", "V")
    assert warnings == []


def test_a_label_that_contradicts_the_speakers_is_an_error(tmp_path: Path, trials: Path) -> None:
    scores = read_scores(written(tmp_path / "s", kaldi()))
    who = {"ann": "ann", "bob": "bob", "ann-1": "ann", "bob-1": "ann"}
    with pytest.raises(InputError, match=r"trials.csv line 3: labelled nontarget, but .* one sp"):
        join(scores, read_trials(trials), speakers=who)
    twice = written(tmp_path / "utt2spk", "a x\na y\n")
    with pytest.raises(InputError, match="line 2: 'a' is of speaker 'y' here and of 'x' before"):
        read_speakers(twice)


def test_trial_lists_may_name_the_speakers_themselves(tmp_path: Path) -> None:
    text = (
        "enroll,trial,label,enroll_speaker,trial_speaker\ne1,t1,1,A,A\ne2,t1,0,B,A\ne2,t2,0,B,C\n"
    )
    keys = read_trials(written(tmp_path / "t.csv", text))
    scores = read_scores(written(tmp_path / "s", "e1 t1 1\ne2 t1 0\ne2 t2 0\n"))
    assert join(scores, keys)[0].speakers == ("A", "B", "C")
    bad = written(tmp_path / "t2.csv", text + "e1,t2,0,A,B\n")
    with pytest.raises(InputError, match="line 5: trial 't2' is of speaker 'B' here and of 'C'"):
        read_trials(bad)


def test_people_are_the_components_of_the_graph_of_target_trials() -> None:
    """However long the chain from one utterance to another; SciPy's components as the oracle."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    random = np.random.default_rng(0)
    chain = random.permutation(500)
    cases = [(500, chain[:-1], chain[1:]), (3, np.array([], np.int64), np.array([], np.int64))]
    cases += [(60, *random.integers(0, 60, (2, edges))) for edges in (1, 10, 30, 90)]
    for nodes, left, right in cases:
        graph = coo_array((np.ones(left.size), (left, right)), shape=(nodes, nodes))
        expected = connected_components(graph, directed=False)[1]
        pairs = set(zip(_groups(nodes, left, right).tolist(), expected.tolist(), strict=True))
        assert len(pairs) == len(set(expected.tolist())) == len({own for own, _ in pairs})
