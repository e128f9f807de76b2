"""Token classes are found from the data."""

import torch

from neural.capture.token_classes import find_repeated_pairs, find_token_classes


def encode(text):
    characters = sorted(set(text))
    ids = torch.tensor([[characters.index(character) for character in text]])
    return ids[:, :-1], ids[:, 1:], characters


def members(text, name):
    """The targets of a class, as text; `.` for the others."""
    inputs, targets, characters = encode(text)
    mask = find_token_classes(inputs, targets, characters).get(name)
    if mask is None:
        return ""
    pairs = zip(text[1:], mask[0].tolist(), strict=True)
    return "".join(character if is_member else "." for character, is_member in pairs)


def test_characters():
    text = "He has 12.\nIt is 7"
    assert [i for i, c in enumerate(members(text, "digits")) if c != "."] == [6, 7, 16]
    assert [i for i, c in enumerate(members(text, "line ends")) if c != "."] == [9]
    assert [i for i, c in enumerate(members(text, "capitals")) if c != "."] == [10]
    # h(as), 1(2), I(t), i(s), 7
    assert [i for i, c in enumerate(members(text, "word starts")) if c != "."] == [2, 6, 10, 13, 16]


def test_a_pair_is_repeated_from_its_second_occurrence_on():
    #            a b a b c b     targets follow the inputs
    inputs = torch.tensor([[0, 1, 0, 1, 2, 0], [0, 0, 0, 1, 1, 2]])
    targets = torch.tensor([[1, 0, 1, 2, 0, 1], [0, 0, 1, 1, 2, 2]])
    # (a,b) at 0, 2, 5; (b,a) once; (b,c) once. Second row: (a,a) at 0, 1
    expected = [[False, False, True, False, False, True], [False, True, *[False] * 4]]
    assert find_repeated_pairs(inputs, targets).tolist() == expected


def test_repeated_pairs_agree_with_a_loop_and_examples_are_separate():
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, (7, 31), generator=generator)
    inputs, targets = ids[:, :-1], ids[:, 1:].clone()
    targets[2, 3:9] = -1  # no target
    mask = find_repeated_pairs(inputs, targets)
    for row in range(7):
        seen = set()
        for position in range(30):
            pair = (int(inputs[row, position]), int(targets[row, position]))
            assert bool(mask[row, position]) == (pair in seen and pair[1] >= 0)
            seen.add(pair)


def test_word_pieces_of_tokenizers():
    texts = ["ĠThe", "Ġcat", "s", "Ċ", "Ġ12", "▁Ein", "##ing", ","]
    inputs = torch.tensor([[0, 1, 2, 3, 4, 5, 6]])
    targets = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    classes = {
        name: mask[0].tolist()
        for name, mask in find_token_classes(inputs, targets, texts.__getitem__).items()
    }
    assert classes["word starts"] == [True, False, False, True, True, False, False]
    assert classes["line ends"] == [False, False, True, *[False] * 4]
    assert classes["digits"] == [False, False, False, True, False, False, False]
    assert classes["capitals"] == [False, False, False, False, True, False, False]
    assert "repeated tokens" not in classes  # a class without targets is left out


def test_bytes_of_sentence_pieces_are_characters():
    texts = ["▁a", "<0x0A>", "<0x37>", "<0x41>", "<0xC3>", "<0x00>"]
    inputs, targets = torch.tensor([[0, 0, 0, 0, 0]]), torch.tensor([[1, 2, 3, 4, 5]])
    classes = find_token_classes(inputs, targets, texts)
    assert classes["line ends"].tolist() == [[True, False, False, False, False]]
    assert classes["digits"].tolist() == [[False, True, False, False, False]]
    assert classes["capitals"].tolist() == [[False, False, True, False, False]]


def test_without_texts_only_repeated_tokens_are_found():
    inputs, targets, _ = encode("abababab")
    assert list(find_token_classes(inputs, targets)) == ["repeated tokens"]
