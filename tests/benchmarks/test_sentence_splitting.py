"""The benchmark of sentence splitting scores the sentence ends of a treebank."""

import sentence_splitting


def test_ends_within_paragraphs_are_scored(tmp_path):
    sentences = ["It was late.", "He left"] * 8
    folder = tmp_path / "UD_English-Made"
    folder.mkdir()
    lines = [f"# sent_id = {number}\n# text = {text}\n" for number, text in enumerate(sentences)]
    (folder / "en_made-ud-test.conllu").write_text("\n".join(lines), encoding="utf-8")
    score = sentence_splitting.run(tmp_path, "test")[0]
    # Of 14 ends within two paragraphs, the 8 with a full stop are found, and no others.
    assert (score.treebank, score.splitter) == ("UD_English-Made", "neural")
    assert score.precision == 1 and score.recall == 8 / 14
