#!/usr/bin/env python3
"""Generates questions from plain English text, as JSON of SQuAD 1.1: the noisy clozes of Lewis, Denoyer & Riedel
2019 (arXiv:1906.04980, section 2.3). `wengert finetune --task squad' trains on them before it trains on questions
that people wrote.

    context    ... The abbey was founded by King David in 1128, and lies beside the palace. ...
    clause             The abbey was founded by ^^^^^^^^^^ in 1128
    question           Who abbey founded was 1128?

A paragraph is a line of 300 to 2500 characters. A context is a run of at least two of its whole sentences, of 250
to 950 characters. Contexts are chosen in random order from all files, and one or two sentences of each, of 6 to 60
words, are asked about.

An answer is a name or a number: a run of capitalised words and numbers ("Bank of England"), now and then with what
a preposition adds to it. The first word of a sentence makes no name alone. An answer has at most seven words, and
is at most twice in its context. (Answers of other words taught a model less: docs/small-corpora.md.) The question
is the clause around it: words are left out, function words more often, and some neighbours change places. A
question word by the form of the answer is put at the begin, or in the answer's place. At least three of the words
are no function words. The function words and the question words are English."""
import argparse
import json
import os
import random
import re
import sys

FUNCTION_WORDS = frozenset("""
a about above across after again against all along also among an and any are around as at be because been before
behind being between both but by can could did do does down during each first for from had has have he her here him
his how however i if in into is it its may me might more most must my no nor not of off on one only or other our out
over own same shall she should since so some such than that the their them then there these they this those though
through to too toward towards under until up upon us very was we were what when where which while who whom whose why
will with within without would you your although""".split())
MONTHS = frozenset("""january february march april may june july august september october november
december""".split())
JOINING = frozenset(("of", "and", "the", "de"))  # between words of a name
PREPOSITIONS = frozenset(("of", "in", "and", "for"))  # before what belongs to a noun

# Abbreviations before names, and before numbers: their full stops do not end a sentence.
TITLES = frozenset("""mr mrs ms messrs dr prof rev hon st capt col gen lt sgt maj adm gov pres sen mme mlle mt ft vs
viz cf""".split())
COUNTERS = frozenset("""no nos vol vols p pp ch chap fig figs sec art prop obs exp exper ax def jan feb apr aug sept
oct nov dec""".split())

STOP = re.compile("[.?!\u2026]+[\"')\\]}*_\u201d\u2019\u00bb]*\\s+(?=[\"'(\\[{*_\u201c\u2018\u00ab\u2014\u2013-]*(.?))")
# A word (Parkinson's, south-east, U.S, 4,000), or a mark that belongs to none.
TOKEN = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f]|['\u2019.-](?=[^\W_])|(?<=[0-9]),(?=[0-9]))*|\S")


def sentences(text):
    """The (begin, end) of each sentence of a paragraph."""
    begin = 0
    for stop in STOP.finditer(text):
        before = re.search(r"[A-Za-z.]*$", text[begin : stop.start()]).group()
        word, following = before.lower(), stop.group(1)
        abbreviates = re.match(r"\.[^.?!\u2026]", stop.group()) and (
            (len(before) == 1 and before.isupper() and before != "I")
            or re.fullmatch(r"([a-z]\.)+[a-z]", word)
            or word in TITLES
            or (word in COUNTERS and re.match("[0-9IVXLC]", following))
            or text[begin : stop.start()].strip().isdigit()
        )
        if not following.islower() and not abbreviates:
            yield begin, stop.end()
            begin = stop.end()
    yield begin, len(text)


def contexts(text, rng):
    """Contexts of random lengths. The latter part of a paragraph may be left out, so that long articles do not
    prevail."""
    ends = list(sentences(text))
    while ends:
        begin, most, count = ends[0][0], rng.randint(450, 950), 1
        while count < len(ends) and ends[count][1] - begin <= most:
            count += 1
        context = text[begin : ends[count - 1][1]].strip()
        if count >= 2 and 250 <= len(context) <= 950:
            yield context
        if rng.random() < 0.3:
            return
        del ends[:count]


class Token:
    def __init__(self, match):
        self.text, self.begin, self.end = match.group(), match.start(), match.end()
        self.word = self.text[0].isalnum()
        self.small = self.text.lower()
        self.function = self.small in FUNCTION_WORDS
        self.content = self.word and not self.function
        self.number = self.text[0].isdigit()
        self.capital = self.number or self.text[0].isupper()

    def ends_clause(self):
        return self.text in ",;:()\u2013\u2014"


def find_answers(tokens, rng):
    """The (first, last) tokens of names and numbers."""

    def content(i):
        return i < len(tokens) and tokens[i].content

    def run_end(i):  # of words with capitals and numbers, or of others
        while content(i + 1) and tokens[i + 1].capital == tokens[i].capital:
            i += 1
        return i

    last = -1
    while last + 1 < len(tokens):
        first = last = last + 1
        if not content(first) or not tokens[first].capital:
            continue
        last = run_end(first)
        if content(last + 2) and tokens[last + 2].capital and tokens[last + 1].small in JOINING and rng.random() < 0.5:
            last = run_end(last + 2)
        if first < last or first > 0 or tokens[0].number:
            yield first, last
        if rng.random() < 0.2 and last + 1 < len(tokens) and tokens[last + 1].small in PREPOSITIONS:
            noun = last + 2
            while noun < len(tokens) and tokens[noun].function:
                noun += 1
            if content(noun):
                yield first, run_end(noun)


def question_word(answer, rng):
    """A question word, and whether it replaces the answer in place."""
    if any(t.capital and t.small in MONTHS for t in answer):
        return rng.choice(("when", "what year", "in what year")), False
    if len(answer) == 1 and re.fullmatch("1[0-9]{3}|20[0-9]{2}", answer[0].text):
        return rng.choice(("when", "what year", "in what year")), False
    if answer[0].number:
        return rng.choice(("how many", "how much", "what number of")), True
    if all(t.capital or t.function for t in answer):
        word = rng.choice(("who", "who", "where", "what", "what", "which"))
    else:
        word = rng.choice(("what", "what", "what", "which", "what is", "what was"))
    return word, word == "which"


def clause(tokens, rng):
    """How many of the tokens, from the answer on, the question is made of."""
    most = rng.randint(4, 12) if rng.random() < 0.6 else 20
    for i, token in enumerate(tokens[:most]):
        if i >= 3 and token.ends_clause() and rng.random() < 0.7:
            return i
    return min(most, len(tokens))


def compose(tokens, first, last, rng):
    """The question, or None if there are too few words."""
    asks, in_place = question_word(tokens[first : last + 1], rng)
    before, behind = tokens[:first], tokens[last + 1 :]
    left = before[first - clause(before[::-1], rng) :]
    right = behind[: clause(behind, rng)]
    left, right = (
        [t for t in side if t.word and not (t.function and rng.random() < 0.3) and rng.random() >= 0.18]
        for side in (left, right)
    )
    if sum(t.content for t in left + right) < 3:
        return None
    left, right = [t.text for t in left], [t.text for t in right]
    order = rng.randrange(40)
    if in_place or order < 6:
        words = left + [asks] + right
    elif order >= 33:
        words = [asks] + right + left
    elif order >= 26:
        words = [asks, rng.choice(("did", "was", "is", "does", "were", "are"))] + left + right
    else:
        words = [asks] + left + right
    for i in range(1, len(words) - 1):
        if rng.random() < 0.1:
            words[i], words[i + 1] = words[i + 1], words[i]
    question = " ".join(words)
    return question[0].upper() + question[1:] + "?"


def ask(context, rng):
    """A question about a random sentence and its answer's text and begin; None if there is nothing to ask."""
    begin, end = rng.choice(list(sentences(context)))
    tokens = [Token(match) for match in TOKEN.finditer(context, begin, end)]
    if not 6 <= sum(t.word for t in tokens) <= 60:
        return None
    answers = []
    for first, last in find_answers(tokens, rng):
        text = re.sub("(?<=.)['\u2019]s$", "", context[tokens[first].begin : tokens[last].end])
        if last - first < 7 and context.count(text) <= 2:
            answers.append((first, last, text))
    if not answers:
        return None
    first, last, text = rng.choice(answers)
    question = compose(tokens, first, last, rng)
    return question and (question, text, tokens[first].begin)


def read_paragraphs(path):
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line = line.decode().strip(" \t\r\n\v\f")
            except UnicodeDecodeError:
                sys.exit("questions.py: %s is not UTF-8: line %d" % (path, number))
            if 300 <= len(line) <= 2500 and "\0" not in line and "\ufffd" not in line:
                yield line


def write_questions(file, found, count, rng):
    """Returns the numbers of questions and contexts."""
    questions = written = 0
    file.write('{"version": "1.1", "data": [{"title": "corpus", "paragraphs": [')
    for context in found:
        if questions == count:
            break
        asked = []
        for _ in range(min(rng.randint(1, 2), count - questions)):
            made = ask(context, rng)
            if made:
                question, text, begin = made
                asked.append({"id": str(questions), "question": question,
                              "answers": [{"text": text, "answer_start": begin}]})
                questions += 1
        if asked:
            file.write(",\n" if written else "\n")
            json.dump({"context": context, "qas": asked}, file, ensure_ascii=False)
            written += 1
    file.write("\n]}]}\n")
    return questions, written


def positive(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError("%s is not above 0" % text)
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="+", help="a text of which each line is a paragraph")
    parser.add_argument("--out", required=True, metavar="QUESTIONS.json", help="the file to write")
    parser.add_argument("--count", type=positive, default=25000, metavar="N",
                        help="so many questions, as far as the text has them (25000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N",
                        help="seed of all choices: the same one gives the same file (0)")
    parser.add_argument("--overwrite", action="store_true", help="overwrite an existing QUESTIONS.json")
    a = parser.parse_args()
    if os.path.exists(a.out) and not a.overwrite:
        sys.exit("questions.py: %s exists; --overwrite replaces it" % a.out)
    rng = random.Random(a.seed)
    temporary = a.out + ".tmp"
    try:
        found = [c for path in a.file for paragraph in read_paragraphs(path) for c in contexts(paragraph, rng)]
        rng.shuffle(found)
        with open(temporary, "w", encoding="utf-8") as file:
            questions, written = write_questions(file, found, a.count, rng)
        if questions == 0:
            sys.exit("questions.py: %s has no paragraphs to ask about, lines of 300 to 2500 characters with sentences "
                     "of 6 to 60 words" % (a.file[0] if len(a.file) == 1 else "none of the files"))
        os.replace(temporary, a.out)
    except OSError as error:
        sys.exit("questions.py: %s: %s" % (error.filename or a.out, error.strerror))
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    if questions < a.count:
        print("questions.py: note: the text is enough for %d questions, not for %d" % (questions, a.count),
              file=sys.stderr)
    print("%s: %d questions about %d contexts" % (a.out, questions, written))


main()
