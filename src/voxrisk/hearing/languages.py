"""Languages as tables name them, and those that Whisper was trained on."""

from voxrisk.types import InputError

# fmt: off
# Whisper's codes (Radford et al. 2022, and Cantonese of its third version) and English names.
NAMES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "as": "Assamese", "az": "Azerbaijani",
    "ba": "Bashkir", "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "bo": "Tibetan",
    "br": "Breton", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech", "cy": "Welsh", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian",
    "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fo": "Faroese", "fr": "French",
    "gl": "Galician", "gu": "Gujarati", "ha": "Hausa", "haw": "Hawaiian", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "ht": "Haitian Creole", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "jw": "Javanese",
    "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "la": "Latin",
    "lb": "Luxembourgish", "ln": "Lingala", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian",
    "mg": "Malagasy", "mi": "Maori", "mk": "Macedonian", "ml": "Malayalam", "mn": "Mongolian",
    "mr": "Marathi", "ms": "Malay", "mt": "Maltese", "my": "Burmese", "ne": "Nepali", "nl": "Dutch",
    "nn": "Nynorsk", "no": "Norwegian", "oc": "Occitan", "pa": "Punjabi", "pl": "Polish",
    "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sa": "Sanskrit",
    "sd": "Sindhi", "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sn": "Shona",
    "so": "Somali", "sq": "Albanian", "sr": "Serbian", "su": "Sundanese", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "tg": "Tajik", "th": "Thai", "tk": "Turkmen",
    "tl": "Tagalog", "tr": "Turkish", "tt": "Tatar", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek",
    "vi": "Vietnamese", "yi": "Yiddish", "yo": "Yoruba", "yue": "Cantonese", "zh": "Chinese",
}
# Codes of three letters, and others for the same languages, as tables write them.
OTHERS = {
    "eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "spa": "es", "ita": "it",
    "por": "pt", "nld": "nl", "dut": "nl", "pol": "pl", "rus": "ru", "ukr": "uk", "ces": "cs",
    "cze": "cs", "swe": "sv", "dan": "da", "nor": "no", "nob": "no", "nb": "no", "nno": "nn",
    "fin": "fi", "ell": "el", "gre": "el", "tur": "tr", "ara": "ar", "fas": "fa", "heb": "he",
    "hin": "hi", "ben": "bn", "urd": "ur", "jpn": "ja", "zho": "zh", "chi": "zh", "cmn": "zh",
    "mandarin": "zh", "kor": "ko", "vie": "vi", "tha": "th", "ind": "id", "msa": "ms", "zsm": "ms",
    "jv": "jw", "jav": "jw", "fil": "tl", "tgl": "tl", "cat": "ca", "eus": "eu", "cym": "cy",
    "hun": "hu", "ron": "ro", "bul": "bg", "hrv": "hr", "srp": "sr", "slk": "sk", "slv": "sl",
}
# fmt: on
WHISPER = frozenset(NAMES) - {"yue"}  # Cantonese came with large-v3 and has no token before it
# Written without spaces: what a word is depends on who cuts the text, so characters are counted.
UNSPACED = frozenset({"zh", "yue", "ja", "th", "lo", "my", "km", "bo"})
_BY_NAME = {name.lower(): code for code, name in NAMES.items()}


def language_code(language: str) -> str:
    """Whisper's code of a language that a table or a person names.

    A tag's region is left out. What is not in the table stays as it is: no recogniser knows it.

    >>> language_code("de-AT"), language_code("English"), language_code("cmn"), language_code("iba")
    ('de', 'en', 'zh', 'iba')
    """
    whole = " ".join(language.lower().split())
    if not whole:
        raise InputError("the language is empty; give a tag such as en or de, or leave it out")
    for word in (whole, whole.replace("_", "-").split("-")[0]):
        if word in NAMES:
            return word
        if found := _BY_NAME.get(word) or OTHERS.get(word):
            return found
    return whole.replace("_", "-").split("-")[0]


def language_name(code: str) -> str:
    """A language for people.

    >>> language_name("de"), language_name("iba")
    ('German', "'iba'")
    """
    return NAMES.get(code, repr(code))
