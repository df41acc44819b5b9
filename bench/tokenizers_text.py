"""Texts for bench/tokenizers_reference.py: made here, of Unicode up to version 13, so that every library
knows the characters. Words of many scripts with a natural frequency, code, numbers, emoji, white
space of every kind, controls, stacks of accents, and every character alone."""
import itertools
import random
import subprocess
import unicodedata


def characters():
    """All characters of Unicode 13 but surrogates, as perl's tables know them."""
    program = r'for $c (0..0x10ffff) { next if $c >= 0xd800 && $c <= 0xdfff; print "$c\n" if chr($c) =~ /\p{Present_In=13.0}/ && chr($c) !~ /\p{Co}/ }'
    out = subprocess.run(["perl", "-e", "no warnings; " + program], capture_output=True, text=True, check=True)
    return [chr(int(line)) for line in out.stdout.split()] + ["\ue000", "\uf8ff", "\U000f0000", "\U0010fffd"]


# First and last letter of the scripts that words are made of.
SCRIPTS = {
    "greek": (0x3B1, 0x3C9), "cyrillic": (0x430, 0x44F), "armenian": (0x561, 0x586),
    "hebrew": (0x5D0, 0x5EA), "arabic": (0x627, 0x64A), "devanagari": (0x905, 0x94D),
    "bengali": (0x985, 0x9B9), "tamil": (0xB85, 0xBCD), "thai": (0xE01, 0xE3A), "georgian": (0x10D0, 0x10F0),
    "amharic": (0x1200, 0x1248), "hiragana": (0x3041, 0x3096), "katakana": (0x30A1, 0x30FA),
    "hangul": (0xAC00, 0xB000), "han": (0x4E00, 0x5200), "latin extended": (0xE0, 0x17F),
}
SYLLABLES = ("an be co da el fi ga ho in ja ka lo ma ne or pa qui ra se ta un ve wi xo ya ze st tr ch sh "
             "ing er ion al ter ment ly ous ful con pre").split()
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n", "\n ", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\x0b",
          "\x1c", "\u200b", "\ufeff", "    \n\t  \n  ", " \u00a0 ", "\n\n\n   "]
TAILS = ["'s", "'S", "'t", "'re", "'RE", "'ve", "'m", "'ll", "'lL", "'d", "'", "'\u017f", "\u2019s", "'x", "n't", "''s"]
EMOJI = ["\U0001F600", "\U0001F468\u200d\U0001F469\u200d\U0001F467", "\U0001F44D\U0001F3FD", "\u2764\ufe0f", "\U0001F1E9\U0001F1EA", "\U0001F9D1\u200d\U0001F4BB",
         "1\ufe0f\u20e3", "\U0001FAD6", "\u263a"]
CODE = [
    "def {a}({b}, {c}=None):\n    return [{b}[i] * {n} for i in range(len({b})) if {c} != {m}]\n\n",
    "for (int {a} = 0; {a} < {n}; ++{a}) {{\n\t{b}->{c}[{a}] += 0x{n:x}u;  // {a} {b}\n}}\n",
    '{{"{a}": [{n}, {m}.{n}, -1e-{m}], "{b}": "{c}\\n", "x": null}}\n',
    "<div class=\"{a}\" id='{b}'>{c} &amp; {n}%</div>\n",
    "SELECT {a}, count(*) FROM {b} WHERE {c} >= {n} AND x != '{a}';\n",
    "#include <{a}/{b}.h>\n#define {c}(x) (((x) << {m}) | ~{n}ULL)\n",
    "$ cd ~/{a}/{b} && ./{c} --{a}={n} >> out-{m}.txt 2>&1\n",
]


class Text:
    """A stream of text that depends on the seed only."""

    def __init__(self, seed, letters):
        self.random = random.Random(seed)
        self.letters = letters
        r = self.random
        self.words = ["".join(r.choices(SYLLABLES, k=r.choice([1, 1, 2, 2, 2, 3, 3, 4]))) for _ in range(8000)]
        self.foreign = {name: ["".join(chr(r.randint(*ends)) for _ in range(r.randint(1, 9))) for _ in range(600)]
                        for name, ends in SCRIPTS.items()}
        self.weights = list(itertools.accumulate(1.0 / (n + 3) for n in range(8000)))

    def word(self):
        r = self.random
        word = r.choices(self.words, cum_weights=self.weights)[0]
        kind = r.random()
        if kind < 0.1:
            word = word.capitalize()
        elif kind < 0.12:
            word = word.upper()
        elif kind < 0.13:
            word += r.choice(TAILS)
        elif kind < 0.14:
            word = word[:1] + r.choice("\u00e9\u00fc\u0130\u00e5\u212b\ufb01\u01c5\u1e9e\u03a3") + word[1:]
        return word

    def number(self):
        r = self.random
        return r.choice([str(r.randint(0, 10 ** r.randint(1, 12))), f"{r.uniform(0, 999):.{r.randint(0, 5)}f}", f"{r.randint(1, 31)}/{r.randint(1, 12)}",
                         f"1{r.randint(0, 999):03d},{r.randint(0, 999):03d}", "\u0663\u0664", "\u00bd", "\u2167", "x\u00b2"])

    def prose(self):
        r = self.random
        parts = []
        for _ in range(r.randint(4, 24)):
            parts.append(self.number() if r.random() < 0.03 else self.word())
            parts.append(r.choices([" ", ", ", " - ", " (", ") ", "; ", ": ", "... ", "/"], [60, 6, 1, 1, 1, 1, 1, 1, 1])[0])
        return "".join(parts).rstrip() + r.choice([".", ".", ".", "!", "?", "?!", "."]) + r.choice([" ", " ", "\n", "\n\n"])

    def code(self):
        r = self.random
        return r.choice(CODE).format(a=self.word(), b=self.word() + "_" + self.word(), c=self.word().capitalize() + self.word().capitalize(),
                                     n=r.randint(0, 70000), m=r.randint(0, 9))

    def script(self):
        words = self.foreign[self.random.choice(sorted(self.foreign))]
        return self.random.choice([" ", " ", "", ", "]).join(self.random.choices(words, k=self.random.randint(2, 12))) + self.random.choice([" ", "\u3002", ". ", "\n"])

    def odd(self):
        r = self.random
        kind = r.randrange(9)
        if kind == 0:
            return "".join(r.choices(SPACES, k=r.randint(1, 5))) + self.word()
        if kind == 1:
            return r.choice(EMOJI) * r.randint(1, 3) + r.choice(["", " "])
        if kind == 2:
            return r.choice("aeoXn\u03b1\u0905\uac00") + "".join(chr(r.choice([0x300, 0x301, 0x308, 0x323, 0x327, 0x345, 0x5B0, 0x94D, 0x11A8])) for _ in range(r.randint(1, 4)))
        if kind == 3:
            return "".join(chr(r.randint(0, 31)) for _ in range(r.randint(1, 4))) + "\x7f"
        if kind == 4:
            return r.choice("=-_*#~.!?<>|\u2014\u2026\u25a0") * r.randint(1, 90)
        if kind == 5:
            return unicodedata.normalize(r.choice(["NFD", "NFKD", "NFC"]), self.script())
        if kind == 6:
            return r.choice(["<s>", "</s>", "<|endoftext|>", "<|begin_of_text|>", "[CLS]", "[MASK] ", "<0x0A>", "<unk>", "\u2581", "\u2581\u2581the", "<mask>", " <extra> ", "[SEP]"])
        return "".join(r.choices(self.letters, k=r.randint(1, 12)))

    def piece(self):
        return self.random.choices([self.prose, self.code, self.script, self.odd], [70, 10, 12, 8])[0]()

    def make(self, size):
        """At least `size` bytes of UTF-8."""
        parts, have = [], 0
        while have < size:
            parts.append(self.piece())
            have += len(parts[-1].encode())
        return "".join(parts)

    def every(self):
        """Every character between letters, spaces and its like."""
        order = self.letters[:]
        self.random.shuffle(order)
        return "".join(f"a{c}b {c} {c}{c}'{c}\n" for c in order)
