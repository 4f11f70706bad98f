"""Everything a reader of a report must know: each notice is a code, numbers and ids, worded last.

A notice never holds a sentence, so nothing that names a person can hide in one. Ids stand apart
from facts: :meth:`Notice.pseudonymous` renames speakers and drops utterances and details. This
module knows every notice; a new one is a row of ``NOTICES``.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

Fact = str | int | float
SHOWN = 5


class Wording(NamedTuple):
    """How serious a notice is, and its words; ``{name}`` is a fact, ``{who}`` the ids."""

    severity: str
    text: str


NOTICES: dict[str, Wording] = {
    "synthetic": Wording(
        "serious",
        "These voices are synthetic ({by}): the figures show how voxrisk works, not what real "
        "speech would give.",
    ),
    "few_speakers": Wording(
        "serious",
        "Only {speakers} speakers: the risk in a larger crowd, or for other people, is not known "
        "from these figures.",
    ),
    "one_speaker": Wording(
        "serious",
        "There is only one speaker, so there is nobody to be confused with: the risk of "
        "re-identification cannot be measured.",
    ),
    "no_sessions": Wording(
        "serious",
        "Recording sessions are not known, so enrolled and tried speech may share a room and a "
        "microphone; this makes speakers look easier to recognise.",
    ),
    "targets_apart": Wording(
        "serious",
        "All utterances of a speaker have the same target voice, by which everybody who holds two "
        "of them can link them. The attackers below do not use this: they draw targets of their "
        "own for the speech they enrol.",
    ),
    "targets_alike": Wording(
        "serious",
        "All utterances of a speaker have the same target voice, in enrolled and in tried speech "
        "alike. The attackers who enrol anonymized speech may recognise the target instead of the "
        "speaker.",
    ),
    "untrained": Wording(
        "serious",
        "No attacker was trained on anonymized speech. Such attackers are usually the strongest; "
        "{way_out}.",
    ),
    "broken_files": Wording(
        "serious",
        "{count} of {total} {kind} files cannot be used ({causes}). They are left out of every "
        "figure.{who}",
    ),
    "doubled_files": Wording(
        "serious",
        "{count} {kind} files hold the same sound as another one; copies make speakers look easier "
        "to recognise.{who}",
    ),
    "unpaired": Wording(
        "serious", "{count} utterances are only in the {kind} corpus and are left out.{who}"
    ),
    "left_out": Wording("note", "Speakers who take no part: {count} ({why}).{who}"),
    "roles_ignored": Wording(
        "note",
        "The table says which utterances enrol and which are tried ({count} rows); this run draws "
        "its own enrolment and trials instead.",
    ),
    "official_enrolment": Wording(
        "note",
        "Enrolment and trials are those that come with the speech: a speaker enrols with "
        "{each} utterances (the median), and figures compare with those of others on the same "
        "trials. An attacker who holds more speech of a person may do better.",
    ),
    "entered": Wording(
        "serious",
        "This run began with {kind} and heard no speech. It cannot tell: {missing}.",
    ),
    "trials_left_out": Wording(
        "serious",
        "{count} of {total} trials of the lists are left out, because a file they need cannot be "
        "used: figures are not those of the whole official list.",
    ),
    "sessions_shared": Wording(
        "serious",
        "The official lists enrol and try speech of the same recording session for {count} "
        "speakers; a shared room and microphone make them look easier to recognise.{who}",
    ),
    "identical": Wording(
        "serious",
        "{count} of {total} anonymized files hold exactly the sound of their originals: nothing "
        "was anonymized there.{who}",
    ),
    "pairs_unknown": Wording(
        "note",
        "Whether each anonymized file belongs to the original of the same name could not be "
        "confirmed from timing and loudness ({own:.0%} fit their own original best).",
    ),
    "words_lost": Wording(
        "serious",
        "A speech recogniser gets {after:.0%} of the words wrong after this protection "
        "({before:.0%} before). Speakers may be hard to recognise because the speech is damaged, "
        "not because it is well protected.",
    ),
    "words_untrusted": Wording(
        "serious",
        "The speech recogniser gets {before:.0%} of the words of the original speech wrong: it "
        "does not fit this speech, or the transcripts do not. No loss of words can be stated.",
    ),
    "words_hard": Wording(
        "note",
        "The speech recogniser gets {before:.0%} of the words of the original speech wrong "
        "already: this speech is hard for it. What protection costs is seen better with a stronger "
        "one (--asr).",
    ),
    "characters_hard": Wording(
        "note",
        "The speech recogniser gets {before:.0%} of the characters of the original speech wrong "
        "already: this speech is hard for it. What protection costs is seen better with a stronger "
        "one (--asr).",
    ),
    "characters_lost": Wording(
        "serious",
        "A speech recogniser gets {after:.0%} of the characters wrong after this protection "
        "({before:.0%} before). Speakers may be hard to recognise because the speech is damaged, "
        "not because it is well protected.",
    ),
    "characters_untrusted": Wording(
        "serious",
        "The speech recogniser gets {before:.0%} of the characters of the original speech wrong: "
        "it does not fit this speech, or the transcripts do not. No loss can be stated.",
    ),
    "no_crowd": Wording(
        "serious",
        "Too few utterances of each speaker for Singling Out and Linkability in a crowd.",
    ),
    "crowd_failed": Wording(
        "serious", "No figures for a crowd of speakers under the {attacker} attacker.{detail}"
    ),
    "no_similarity": Wording("note", "{figure} cannot be given: {why}.{detail}"),
    "voice_per_utterance": Wording(
        "note",
        "G_VD assumes one pseudo-voice for each speaker; here every utterance has one of its own, "
        "so a low G_VD says that voices change from utterance to utterance.",
    ),
    "slicing_no_text": Wording(
        "serious",
        "The corpus has no transcripts, so nobody knows where a word ends: slices are cut at fixed "
        "times, through words as well, and nothing is said about text and word errors. Give "
        "transcripts, or word times with --alignment.",
    ),
    "slicing_no_aligner": Wording(
        "serious",
        "The words could not be aligned, so slices are cut at fixed times, through words as well. "
        "Install voxrisk[align], or give word times with --alignment.{detail}",
    ),
    "slicing_language": Wording(
        "serious",
        "No aligner here can tell when the words of this speech are said, so slices are cut at "
        "fixed times, through words as well. Give word times of another tool with "
        "--alignment.{detail}",
    ),
    "slicing_unaligned": Wording(
        "serious",
        "No word of {count} of {total} utterances has a time: such an utterance is not cut, and "
        "stays whole or gives no slice.",
    ),
    "slicing_moved": Wording(
        "note",
        "{count} of {total} anonymized utterances are not as long as the clear ones; their words "
        "were aligned again.",
    ),
    "slicing_silent": Wording(
        "note", "{count} pieces of {seconds:g} s of {kind} speech hold no sound and are left out."
    ),
    "slicing_too_long": Wording(
        "serious",
        "At {seconds:g} s there are too few pieces ({cut}) to recognise anybody in: give a shorter "
        "--duration, or longer utterances.",
    ),
    "slicing_no_pairs": Wording(
        "serious",
        "At {seconds:g} s no utterance gives two slices, so there is no order to restore: its "
        "utterances are too short, or have one word each.",
    ),
    "slicing_untrained": Wording(
        "serious",
        "No attacker learned from other slices what follows what; {way_out}.",
    ),
    "attacker_failed": Wording(
        "serious", "The {attacker} attacker could not run: {why}. The others are reported.{detail}"
    ),
    "attacker_impossible": Wording("note", "The {attacker} attacker was not run: {why}."),
    "scores_reversed": Wording(
        "serious",
        "Scores point the wrong way (strangers score higher than the speaker): check that a higher "
        "score means more similar.",
    ),
    "scores_constant": Wording(
        "serious",
        "All scores are equal: the attack says nothing at all, which proves no privacy, and there "
        "is no interval.",
    ),
    "weak_on_original": Wording(
        "serious",
        "The attack fails on original speech too (EER {eer:.0%}): a weak attack proves no privacy.",
    ),
    "no_interval": Wording("serious", "Only {speakers} speakers: no interval can be given."),
    "unknown_speakers": Wording(
        "serious",
        "The speakers of {count} trial segments are unknown, so intervals count each as a person "
        "of its own; name them with --speakers utt2spk.",
    ),
    "attribute_refused": Wording(
        "serious", "Whether {name} can be inferred was not assessed: {why}."
    ),
    "attribute_absent": Wording("note", "Whether {name} can be inferred was not assessed: {why}."),
    "attribute_unlabelled": Wording(
        "note",
        "{name} is not known of {count} of {total} speakers; they take no part in inferring it.",
    ),
    "attribute_unread": Wording(
        "serious",
        "Of most speakers {name} is a number; of {count} it is text or no possible value (nobody "
        "is 1234 years old), and these take no part. Write numbers, or classes for everybody.",
    ),
    "attribute_rare": Wording(
        "serious",
        "Classes of {name} that fewer than {fewest} speakers have are left out: {count} of them, "
        "with {lost} speakers who take no part. A rare attribute tells most about its owner, and "
        "this test says nothing about it.",
    ),
    "attribute_few": Wording(
        "serious",
        "A class of {name} has only {fewest} speakers: what is said about inferring it rests on "
        "few people, and an attacker who has more of them to learn from may do better.",
    ),
    "attribute_many": Wording(
        "note",
        "{name} has {classes} classes: guessing is right in {chance:.1%} of cases, so hold every "
        "figure against that.",
    ),
    "attribute_confounded": Wording(
        "serious",
        "{name} goes with {other} in this speech ({share:.0%} of what there is to know about "
        "{name} can be read off {other}). An attacker may have recognised {other} instead.",
    ),
    "attribute_origin": Wording(
        "note",
        "Where the labels of {names} come from is not known (a column such as {example}_source "
        "would say). If somebody guessed them from the voices, the figures say how well the guess "
        "can be repeated.",
    ),
    "attribute_untold": Wording(
        "serious",
        "Even from original speech the attackers tried cannot tell {name}: that they cannot from "
        "anonymized speech shows no protection.",
    ),
    "attribute_untrained": Wording(
        "note",
        "The training speech does not know {name} of at least {fewest} speakers of every class; "
        "attackers learned it from other speakers of the speech under test.",
    ),
    "attribute_features": Wording(
        "note", "Attributes were inferred without {name}, which could not be had.{detail}"
    ),
    "undefined": Wording("note", "{figure} cannot be given: {why}."),
    "next_language": Wording(
        "next",
        "Name the language of the speech: --language, with a recogniser that knows it (--asr), or "
        "bring the right transcripts. The recogniser gave {found} before any protection, so "
        "nothing is known about words; what attackers can do does not depend on it.",
    ),
    "next_mend": Wording(
        "next",
        "Mend the test before anything else. One of its controls failed ({question} This test "
        "gave: {found}), so its figures show nothing.",
    ),
    "next_train": Wording(
        "next",
        "Try an attacker who learns: add speech of other people (--train) with the anonymizer "
        "itself (--anonymizer), or with their anonymized speech (--train-anonymized). None of the "
        "attackers here was trained on anonymized speech, and "
        "such attackers are usually the strongest.",
    ),
    "next_retrain": Wording(
        "next",
        "Give the {attacker} attacker more to learn from: more speakers, more utterances of each. "
        "It failed its control, so the strongest kind of attack is missing here.",
    ),
    "next_replace": Wording(
        "next",
        "Do not rely on this protection against {criterion}: the strongest attacker does as well "
        "as on unprotected speech. Try another anonymizer or other options, and put the runs side "
        "by side with voxrisk compare.",
    ),
    "next_transcripts": Wording(
        "next",
        "Look at what is said, not only at how: the words alone give speakers away as well as the "
        "voices do ({found}). No change of voice helps against that; remove names and tell-tale "
        "passages, or publish shorter pieces.",
    ),
    "next_shorten": Wording(
        "next",
        "Publish less speech of each person. From {less} the strongest attacker finds the right "
        "one of {speakers} people in {few:.0%} of cases, from {length} utterances in {many:.0%}.",
    ),
    "next_spare": Wording(
        "next",
        "Look at the people who stand out: {count} of {total} are found in {share:.0%} of cases or "
        "more, the typical person in {typical:.0%}. Protect them more strongly or leave them out; "
        "the table of exposed speakers lists them.",
    ),
    "next_words": Wording(
        "next",
        "Ask whether the speech still serves its purpose: a recogniser gets {after:.0%} of the "
        "words wrong, {before:.0%} before. If words matter, try an anonymizer that keeps more of "
        "them.",
    ),
    "next_people": Wording(
        "next",
        "Bring more speakers: {speakers} say little about a crowd. With {many} or more, intervals "
        "become narrower and larger crowds can be measured.",
    ),
    "next_compare": Wording(
        "next",
        "Weigh this risk against other ways of protecting: run the same speech through another "
        "anonymizer and read both with voxrisk compare. Here {criterion} still succeeds better "
        "than guessing.",
    ),
    "next_stronger": Wording(
        "next",
        "Before publishing, try to be the stronger attacker: another recogniser (--encoder), more "
        "training speech, --effort paper. Nobody here did better than guessing, which holds for "
        "these attackers only.",
    ),
}


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a reader must know.

    Attributes:
        code: A key of ``NOTICES``.
        severity: ``"serious"``, ``"note"``, or ``"next"`` for a step to take.
        facts: What the words need: numbers, and words that name no person, file or place.
        speakers: Ids of speakers it is about.
        utterances: Ids of utterances it is about; never in a shared file unless asked for.
        detail: What a library or an error said; may hold ids and paths, so kept as utterances are.
    """

    code: str
    severity: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    speakers: tuple[str, ...] = ()
    utterances: tuple[str, ...] = ()
    detail: str = ""

    @property
    def text(self) -> str:
        """The notice as a sentence or two.

        >>> notice("few_speakers", speakers=6).text[:16]
        'Only 6 speakers:'
        """
        detail = f" {self.detail}." if self.detail else ""
        said = NOTICES[self.code].text.format(**self.facts, who=self._who(), detail=detail)
        return re.sub(r"(?<=\d)%", "\u00a0%", said)  # as every other percentage of the report

    def pseudonymous(self, alias: Mapping[str, str]) -> "Notice":
        """The same with speakers under other names, and nothing that names a file or a place."""
        return replace(
            self, speakers=tuple(alias[s] for s in self.speakers), utterances=(), detail=""
        )

    def _who(self) -> str:
        names = self.speakers or self.utterances
        if not names:
            return ""
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return f" These are: {', '.join(names[:SHOWN])}{more}."


def notice(
    code: str,
    *,
    speakers: Iterable[str] | int = (),
    utterances: Iterable[str] = (),
    detail: str = "",
    **facts: Fact,
) -> Notice:
    """A notice of ``NOTICES``; facts are checked against its words at once.

    ``speakers`` are ids, or their number where the words ask for one.

    >>> notice("left_out", count=1, why="one session only", speakers=["ann"]).text
    'Speakers who take no part: 1 (one session only). These are: ann.'
    """
    if isinstance(speakers, int):
        facts["speakers"] = speakers
        speakers = ()
    made = Notice(
        code, NOTICES[code].severity, facts, tuple(speakers), tuple(utterances), detail.rstrip(".")
    )
    made.text  # noqa: B018  a fact that is missing is found where the notice is made
    return made
