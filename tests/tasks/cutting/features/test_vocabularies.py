from neural.tasks.cutting.described import columns, features
from neural.tasks.cutting.document import Document


def test_where_the_words_change_every_way_sees_the_likeliest_beginning():
    fruit, tools = ["apples and pears", "pears and plums", "plums and apples"], ["saws and drills", "drills and files"]
    document = Document("both", (*fruit, *fruit, *tools, *tools, *tools))
    table = features(document, ("vocabularies",))
    assert (table[1:].argmax(axis=0) + 1 == 6).all()
    assert (table[0] == 0).all()
    assert table.shape[1] == len(columns(("vocabularies",)))
