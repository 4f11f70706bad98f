"""The words of the report, explained for people who do not work with speech."""

QUESTIONS = {
    "singling out": "Can somebody be isolated in the anonymized data?",
    "linkability": "Can recordings of the same person be connected?",
    "inference": "Can further facts about a person be deduced?",
}
TAGS = {
    "0": "no evidence at all",
    "A": "a little surer than even odds",
    "B": "wrong once in 10 to 100",
    "C": "wrong once in 100 to 10,000",
    "D": "wrong once in 10,000 to 100,000",
    "E": "wrong once in 100,000 to a million",
    "F": "wrong less than once in a million",
}
GLOSSARY = (
    (
        "Attacker",
        "Somebody who has recordings of known people and tries to recognise them in the anonymized "
        "speech. The more an attacker knows about the anonymization, the stronger the attack.",
    ),
    (
        "Singling Out",
        "The attacker knows one voice and a threshold. The figure says how often exactly one of N "
        "people scores above it, whoever that is. An attacker who learns nothing succeeds about "
        "once in three times, so only what is above that is a risk.",
    ),
    (
        "Linkability",
        "The attacker compares an anonymized recording with N known people and takes the most "
        "similar one. The figure says how often that is the right person. Guessing gives 1 in N.",
    ),
    (
        "Inference",
        "Deducing further facts about a person, such as age, origin or health. This report "
        "measures it for the attributes that it names, and says nothing about others.",
    ),
    (
        "Balanced accuracy (UAR)",
        "How often the right class of an attribute is named, every class counting the same. Among "
        "k classes guessing gives 1 in k, however common each of them is.",
    ),
    (
        "L and N",
        "L is how many utterances of a voice the attacker has; N is how many people there are to "
        "choose from. Risks at different L and N must not be compared.",
    ),
    (
        "Interval",
        "The range in which the figure would lie for other speakers of the same kind, with the "
        "stated confidence. It does not cover a stronger attacker or other speech.",
    ),
    (
        "Guessing (chance level)",
        "What an attacker gets who learns nothing from the voice. A figure whose interval includes "
        "it is not shown to be a risk in this test; that is not a proof of safety.",
    ),
    (
        "Equal error rate (EER)",
        "The attacker says “same speaker” or “different speaker” and errs equally often both ways. "
        "0 %: every speaker is recognised. 50 %: a coin toss.",
    ),
    (
        "Expected and worst-case disclosure (ZEBRA)",
        "How many bits the attacker learns on average (0 to 0.721), and how strong the strongest "
        "single piece of evidence is, with a tag from 0 (none) to F.",
    ),
    (
        "DeID and G_VD",
        "DeID: how far anonymization hides which original voice a voice belongs to (100 %: "
        "entirely). G_VD: how well anonymized voices can be told apart from one another (0 dB: as "
        "well as original ones).",
    ),
    (
        "Word error rate (WER)",
        "Share of words that a speech recogniser gets wrong: how understandable the speech is "
        "to a machine.",
    ),
)
