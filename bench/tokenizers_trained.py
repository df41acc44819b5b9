"""Tokenizers of every kind that models come with, trained here by Hugging Face's trainers; each function
takes a text and the size of the vocabulary and returns the text of tokenizer.json."""
import collections
import json
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def lines(text):
    return text.splitlines(keepends=True)


def byte_level(text, vocab, tokenizer, specials):
    trainer = trainers.BpeTrainer(vocab_size=vocab, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=specials, show_progress=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(lines(text), trainer)
    return tokenizer


def gpt2(text, vocab):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return byte_level(text, vocab, tokenizer, ["<|endoftext|>"]).to_str()


def split_byte_level(text, vocab, pattern, model, specials, normalizer=None):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return byte_level(text, vocab, tokenizer, specials)


def llama3(text, vocab):
    tokenizer = split_byte_level(text, vocab, LLAMA3, models.BPE(ignore_merges=True),
                                 ["<|begin_of_text|>", "<|end_of_text|>"])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B",
                                      special_tokens=[("<|begin_of_text|>", 0)])])
    return tokenizer.to_str()


def qwen2(text, vocab):
    tokenizer = split_byte_level(text, vocab, QWEN2, models.BPE(), ["<|endoftext|>", "<|im_start|>"], normalizers.NFC())
    tokenizer.add_tokens([AddedToken(" <extra> ", normalized=True), AddedToken("fi", single_word=True, normalized=True),
                          AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False)])
    return tokenizer.to_str()


def roberta(text, vocab):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer = byte_level(text, vocab, tokenizer, ["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tokenizer.to_str()


def smollm2(text, vocab):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return byte_level(text, vocab, tokenizer, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]).to_str()


def gemma(text, vocab):
    made = sentencepiece_like(text, vocab)
    made["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    made["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    return json.dumps(made, ensure_ascii=False)


BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


def sentencepiece_like(text, vocab):
    """BPE with bytes for what is unknown, as Llama 2 and Mistral have; text after a Metaspace."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=["<unk>", "<s>", "</s>"] + BYTE_TOKENS, limit_alphabet=vocab // 4,
                                  show_progress=False)
    tokenizer.train_from_iterator(lines(text), trainer)
    made = json.loads(tokenizer.to_str())
    made["added_tokens"] = [token for token in made["added_tokens"] if token["id"] < 3]
    made["post_processor"] = json.loads(processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]).__getstate__())
    made["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    return made


def llama2(text, vocab):
    made = sentencepiece_like(text, vocab)
    made["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    made["pre_tokenizer"] = None
    return json.dumps(made, ensure_ascii=False)


def mistral(text, vocab):
    made = sentencepiece_like(text, vocab)
    made["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
    return json.dumps(made, ensure_ascii=False)


def charsmap(rules):
    """SentencePiece's precompiled map: of its own rule by name, or of a table {characters: characters}."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"normalization_rule_name": rules}
        if isinstance(rules, dict):
            path = folder + "/rules.tsv"
            with open(path, "w", encoding="utf-8") as file:
                for old, new in rules.items():
                    file.write(" ".join(f"{ord(c):X}" for c in old) + "\t" + " ".join(f"{ord(c):X}" for c in new) + "\n")
            options = {"normalization_rule_tsv": path}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["some words here"] * 20), model_prefix=folder + "/m", vocab_size=16,
            hard_vocab_limit=False, minloglevel=2, **options)
        from sentencepiece import sentencepiece_model_pb2 as proto
        model = proto.ModelProto()
        with open(folder + "/m.model", "rb") as file:
            model.ParseFromString(file.read())
    return model.normalizer_spec.precompiled_charsmap


RULES = {"\ufb01": "fi", "\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "e\u0301": "\u00e9", "\u2026": "...", "\u00bd": "1/2",
         "\ufeff": "", "\u212b": "\u00e5", "A": "a", "\uff21": "a", "\U0001F600": ":)"}


def frequent(text, count):
    """The text with spaces in the place of rare characters: unigram's trainer takes all characters."""
    keep = {letter for letter, _ in collections.Counter(text).most_common(count)}
    return "".join(letter if letter in keep else " " for letter in text)


def unigram(text, vocab, normalizer=None, byte_fallback=False):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer or normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    specials = ["<pad>", "</s>", "<unk>"] + (BYTE_TOKENS if byte_fallback else [])
    trainer = trainers.UnigramTrainer(vocab_size=vocab, special_tokens=specials, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(lines(frequent(text, vocab // 3)), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    made = json.loads(tokenizer.to_str())
    made["added_tokens"] = [token for token in made["added_tokens"] if token["id"] < 3]
    made["model"]["byte_fallback"] = byte_fallback
    return json.dumps(made, ensure_ascii=False)


def unigram_map(text, vocab):
    return unigram(text, vocab, normalizers.Sequence([
        normalizers.Precompiled(charsmap(RULES)), normalizers.Strip(left=False, right=True),
        normalizers.Replace(Regex(" {2,}"), "\u2581")]))


def unigram_nmt(text, vocab):
    return unigram(text, vocab, normalizers.Precompiled(charsmap("nmt_nfkc")))


def unigram_bytes(text, vocab):
    return unigram(text, vocab + 256, normalizers.Replace("\u2581", " "), byte_fallback=True)


def wordpiece(text, vocab, lowercase=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=vocab, limit_alphabet=vocab // 4, show_progress=False,
                                        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.train_from_iterator(lines(text), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer.to_str()


def wordpiece_cased(text, vocab):
    return wordpiece(text, vocab, lowercase=False)


def suffix_bpe(text, vocab):
    """BPE with an end of words, as in GPT and CLIP."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    tokenizer.decoder = decoders.BPEDecoder()
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=vocab // 4,
                                  show_progress=False)
    tokenizer.train_from_iterator(lines(text), trainer)
    return tokenizer.to_str()


ALL = {"gpt2": gpt2, "llama3": llama3, "qwen2": qwen2, "roberta": roberta, "smollm2": smollm2, "gemma": gemma, "llama2": llama2, "mistral": mistral, "unigram": unigram,
       "unigram-map": unigram_map, "unigram-nmt": unigram_nmt, "unigram-bytes": unigram_bytes, "wordpiece": wordpiece,
       "wordpiece-cased": wordpiece_cased, "suffix-bpe": suffix_bpe}
NOT_KEPT = {"unigram-nmt", "unigram-bytes", "wordpiece-cased", "roberta", "smollm2", "gemma"}  # large, or much like another one


def parts():
    """(name, tokenizer) for each normalizer and pre-tokenizer alone. The vocabulary is the bytes' letters, and again
    as ends of words: the ids show every character and where words end."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: n for n, letter in enumerate(letters)}
    vocab |= {letter + "</w>": 256 + n for n, letter in enumerate(letters)}

    def one(normalizer=None, steps=()):
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], end_of_word_suffix="</w>"))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("</w>", ""), decoders.ByteLevel()])
        return tokenizer.to_str()

    n, p = normalizers, pre_tokenizers
    for name, part in {
            "NFC": n.NFC(), "NFD": n.NFD(), "NFKC": n.NFKC(), "NFKD": n.NFKD(), "Lowercase": n.Lowercase(), "StripAccents": n.StripAccents(),
            "Strip": n.Strip(), "Nmt": n.Nmt(), "Prepend": n.Prepend("x"), "Replace": n.Replace("the", "a\u2581"),
            "Replace regex": n.Replace(Regex(r"\s+|[a-c]{2}"), "_"), "Bert": n.BertNormalizer(),
            "Bert cased": n.BertNormalizer(True, True, None, False), "Bert only accents": n.BertNormalizer(False, False, True, False),
            "Precompiled nmt_nfkc": n.Precompiled(charsmap("nmt_nfkc")), "Precompiled own": n.Precompiled(charsmap(RULES)),
            "Precompiled nmt_nfkc_cf": n.Precompiled(charsmap("nmt_nfkc_cf"))}.items():
        yield "normalizer " + name, one(part)
    steps = {"Whitespace": p.Whitespace(), "WhitespaceSplit": p.WhitespaceSplit(), "BertPreTokenizer": p.BertPreTokenizer(),
             "Digits": p.Digits(False), "Digits individual": p.Digits(True), "CharDelimiterSplit": p.CharDelimiterSplit("e"),
             "Metaspace always": p.Metaspace(), "Metaspace first": p.Metaspace(prepend_scheme="first"),
             "Metaspace never whole": p.Metaspace(prepend_scheme="never", split=False)}
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        steps["Punctuation " + behavior] = p.Punctuation(behavior)
        for invert in (False, True):
            steps[f"Split {behavior} {invert}"] = p.Split(Regex(r"\w|\d\s?"), behavior, invert)
        steps[f"Split text {behavior}"] = p.Split("an", behavior)
        steps[f"Split empty {behavior}"] = p.Split(Regex("x*"), behavior)
    for name, pattern in (("gpt2", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"), ("llama3", LLAMA3), ("qwen2", QWEN2)):
        steps["pattern " + name] = p.Split(Regex(pattern), "isolated")
        steps["pattern by regex " + name] = p.Split(Regex("(?:" + pattern + ")"), "isolated")
    for name, step in steps.items():
        yield "pre-tokenizer " + name, one(steps=[step])
