"""What to cite: a paper for each figure, attacker, anonymizer and model that a run used."""

from typing import NamedTuple

from voxrisk.results import Results


class Reference(NamedTuple):
    """One entry of a bibliography, and what it stands behind.

    ``behind`` are tokens of :func:`used`: the name of a figure, ``attacker:``, ``anonymizer:``,
    ``encoder:`` or ``corpus:`` with a name, or ``evaluation``.
    """

    key: str
    kind: str
    fields: dict[str, str]
    behind: tuple[str, ...]


INTERSPEECH = "Proceedings of Interspeech"

REFERENCES = (
    Reference(
        "vauquier2025legally", "inproceedings",
        {"author": "Vauquier, Nathalie and others", "year": "2025", "booktitle": INTERSPEECH,
         "title": "Legally validated evaluation framework for voice anonymization"},
        ("singling_out", "linkability"),
    ),
    Reference(
        "wp29opinion2014", "techreport",
        {"author": "{Article 29 Data Protection Working Party}", "year": "2014",
         "title": "Opinion 05/2014 on Anonymisation Techniques", "number": "WP216",
         "institution": "European Commission"},
        ("evaluation",),
    ),
    Reference(
        "panariello2025risks", "misc",
        {"author": "Panariello, Michele and Meyer, Sarina and Champion, Pierre and Miao, Xiaoxiao "
         "and Todisco, Massimiliano and Vu, Ngoc Thang and Evans, Nicholas",
         "year": "2025", "eprint": "2507.22534",
         "archiveprefix": "arXiv",
         "title": "The Risks and Detection of Overestimated Privacy Protection in Voice "
         "Anonymisation"},
        ("evaluation",),
    ),
    Reference(
        "tomashenko2024voiceprivacy", "misc",
        {"author": "Tomashenko, Natalia and others", "year": "2024", "eprint": "2404.02677",
         "archiveprefix": "arXiv", "title": "The {VoicePrivacy} 2024 Challenge Evaluation Plan"},
        ("evaluation",),
    ),
    Reference(
        "nautsch2020zebra", "inproceedings",
        {"author": "Nautsch, Andreas and others", "year": "2020", "booktitle": INTERSPEECH,
         "title": "The Privacy {ZEBRA}: Zero Evidence Biometric Recognition Assessment"},
        ("d_ece", "log10_l"),
    ),
    Reference(
        "noe2020similarity", "inproceedings",
        {"author": "No{\\'e}, Paul-Gauthier and others", "year": "2020", "booktitle": INTERSPEECH,
         "title": "Speech Pseudonymisation Assessment Using Voice Similarity Matrices"},
        ("deid", "g_vd"),
    ),
    Reference(
        "gomezbarrero2018unlinkability", "article",
        {"author": "Gomez-Barrero, Marta and others", "year": "2018",
         "journal": "IEEE Transactions on Information Forensics and Security",
         "title": "General Framework to Evaluate Unlinkability in Biometric Template Protection "
         "Systems"},
        ("d_sys",),
    ),
    Reference(
        "brummer2006application", "article",
        {"author": "Br{\\\"u}mmer, Niko and du Preez, Johan", "year": "2006",
         "journal": "Computer Speech and Language",
         "title": "Application-independent evaluation of speaker detection"},
        ("cllr", "min_cllr"),
    ),
    Reference(
        "franzreb2025improving", "inproceedings",
        {"author": "Franzreb, Carlos and others", "year": "2025", "booktitle": INTERSPEECH,
         "title": "Improving the speaker anonymization evaluation's robustness to target speakers "
         "with adversarial learning"},
        ("attacker:informed + adversarial",),
    ),
    Reference(
        "belrose2023leace", "inproceedings",
        {"author": "Belrose, Nora and others", "year": "2023",
         "booktitle": "Advances in Neural Information Processing Systems",
         "title": "{LEACE}: Perfect linear concept erasure in closed form"},
        ("attacker:informed + erasing",),
    ),
    Reference(
        "champion2021invertibility", "misc",
        {"author": "Champion, Pierre and others", "year": "2021", "eprint": "2110.05431",
         "archiveprefix": "arXiv",
         "title": "On the invertibility of a voice privacy system using embedding alignment"},
        ("attacker:informed + suite",),
    ),
    Reference(
        "matejka2017normalization", "inproceedings",
        {"author": "Mat{\\v{e}}jka, Pavel and Novotn{\\'y}, Ond{\\v{r}}ej and Plchot, "
         "Old{\\v{r}}ich and Burget, Luk{\\'a}{\\v{s}} and Diez S{\\'a}nchez, Mireia and "
         "{\\v{C}}ernock{\\'y}, Jan", "year": "2017", "booktitle": INTERSPEECH,
         "pages": "1567--1571", "doi": "10.21437/Interspeech.2017-803",
         "title": "Analysis of Score Normalization in Multilingual Speaker Recognition"},
        ("attacker:informed + suite",),
    ),
    Reference(
        "chandra2026rank", "misc",
        {"author": "Chandra, Shilpa and others", "year": "2026", "eprint": "2605.07291",
         "archiveprefix": "arXiv",
         "title": "Evaluating voice anonymisation using similarity rank disclosure"},
        ("rank_bits", "worst_rank_bits"),
    ),
    Reference(
        "desplanques2020ecapa", "inproceedings",
        {"author": "Desplanques, Brecht and Thienpondt, Jenthe and Demuynck, Kris",
         "year": "2020", "booktitle": INTERSPEECH,
         "title": "{ECAPA-TDNN}: Emphasized Channel Attention, Propagation and Aggregation in "
         "{TDNN} Based Speaker Verification"},
        ("encoder:ecapa-voxceleb", "encoder:ecapa-pooled"),
    ),
    Reference(
        "wang2023wespeaker", "inproceedings",
        {"author": "Wang, Hongji and others", "year": "2023",
         "booktitle": "IEEE International Conference on Acoustics, Speech and Signal Processing",
         "title": "Wespeaker: A Research and Production Oriented Speaker Embedding Learning "
         "Toolkit"},
        ("encoder:wespeaker-resnet34",),
    ),
    Reference(
        "patino2021mcadams", "inproceedings",
        {"author": "Patino, Jose and others", "year": "2021", "booktitle": INTERSPEECH,
         "title": "Speaker Anonymisation Using the {McAdams} Coefficient"},
        ("anonymizer:mcadams",),
    ),
    Reference(
        "morise2016world", "article",
        {"author": "Morise, Masanori and Yokomori, Fumiya and Ozawa, Kenji", "year": "2016",
         "journal": "IEICE Transactions on Information and Systems",
         "title": "{WORLD}: A Vocoder-Based High-Quality Speech Synthesis System for Real-Time "
         "Applications"},
        ("anonymizer:world",),
    ),
    Reference(
        "baas2023knn", "inproceedings",
        {"author": "Baas, Matthew and van Niekerk, Benjamin and Kamper, Herman", "year": "2023",
         "booktitle": INTERSPEECH, "title": "Voice Conversion With Just Nearest Neighbors"},
        ("anonymizer:knn", "anonymizer:private-knn"),
    ),
    Reference(
        "franzreb2025private", "inproceedings",
        {"author": "Franzreb, Carlos and Das, Arnab and Polzehl, Tim and M{\\\"o}ller, Sebastian",
         "year": "2025", "booktitle": INTERSPEECH, "eprint": "2505.17584",
         "archiveprefix": "arXiv",
         "title": "Private {kNN-VC}: Interpretable Anonymization of Converted Speech"},
        ("anonymizer:private-knn",),
    ),
    Reference(
        "srivastava2022privacy", "article",
        {"author": "Srivastava, Brij Mohan Lal and others", "year": "2022",
         "journal": "IEEE/ACM Transactions on Audio, Speech, and Language Processing",
         "title": "Privacy and Utility of X-Vector Based Speaker Anonymization"},
        ("anonymizer:pool",),
    ),
    Reference(
        "radford2023whisper", "inproceedings",
        {"author": "Radford, Alec and others", "year": "2023",
         "booktitle": "International Conference on Machine Learning",
         "title": "Robust Speech Recognition via Large-Scale Weak Supervision"},
        ("wer", "anonymizer:transcribe"),
    ),
    Reference(
        "reddy2022dnsmos", "inproceedings",
        {"author": "Reddy, Chandan K. A. and Gopal, Vishak and Cutler, Ross", "year": "2022",
         "booktitle": "IEEE International Conference on Acoustics, Speech and Signal Processing",
         "title": "{DNSMOS} {P.835}: A Non-Intrusive Perceptual Objective Speech Quality Metric to "
         "Evaluate Noise Suppressors"},
        ("dnsmos", "dnsmos_signal", "dnsmos_background"),
    ),
    Reference(
        "panayotov2015librispeech", "inproceedings",
        {"author": "Panayotov, Vassil and Chen, Guoguo and Povey, Daniel and Khudanpur, Sanjeev",
         "year": "2015",
         "booktitle": "IEEE International Conference on Acoustics, Speech and Signal Processing",
         "title": "Librispeech: An {ASR} Corpus Based on Public Domain Audio Books"},
        ("corpus:libri",),
    ),
)  # fmt: skip
CORPORA = ("libri",)  # known by how the name of a corpus or of a set begins


def used(results: Results) -> set[str]:
    """Everything in a run that somebody has published."""
    found = {"evaluation"} if results.kind == "evaluate" else set()
    for attack in results.attacks:
        found |= set(attack.figures) | {e.name for e in attack.crowd}
        found.add(f"attacker:{attack.name}")
    if results.similarity:
        found |= set(results.similarity.figures)
    if results.utility:
        found |= set(results.utility.figures)
    if results.anonymizer:
        found.add(f"anonymizer:{results.anonymizer.name}")
    if results.encoder:
        found.add(f"encoder:{results.encoder.name}")
    named = [s.name for attack in results.attacks for s in attack.sets]
    named += [results.corpus.name] if results.corpus else []
    return found | {
        f"corpus:{corpus}"
        for corpus in CORPORA
        if any(name.lower().startswith(corpus) for name in named)
    }


def bibtex(results: Results) -> str:
    """A bibliography of what a run used, and voxrisk itself."""
    have = used(results)
    rows = [r for r in REFERENCES if have.intersection(r.behind)]
    own = Reference(
        "voxrisk", "software", {"title": "voxrisk", "version": results.voxrisk}, ()
    )  # fmt: skip
    return "\n".join(_entry(row) for row in (own, *rows))


def _entry(row: Reference) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in row.fields.items()]
    return "\n".join([f"@{row.kind}{{{row.key},", *lines, "}", ""])
