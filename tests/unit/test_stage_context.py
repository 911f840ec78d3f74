"""The context of a stage: who its items are, their seeds, what it counts."""

import threading

import pytest

import fanfold as ff
from fanfold.protocol import ItemRun
from fanfold.stage_context import Context, Counts, current, direct_context, seed_of

PAGES = (ItemRun("a.pdf", (7,), 2, 0b101), ItemRun("b.pdf", (8,), 0, 0b1))


def test_outside_of_a_stage_there_is_none():
    with pytest.raises(ff.UsageError, match="FF441"):
        ff.context()


def test_a_context_is_there_while_code_runs_in_it_and_in_this_thread_only():
    made = Context(run="r", call="Ocr", worker="Ocr[0]", attempt=2)
    seen = []

    def elsewhere():
        with pytest.raises(ff.UsageError) as caught:
            ff.context()
        seen.append(caught.value.code)

    with current(made):
        assert ff.context() is made
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert seen == ["FF441"]
    with pytest.raises(ff.UsageError):
        ff.context()


def test_a_batch_has_an_entry_for_each_item_in_order():
    made = Context(call="Ocr", run_seed=3)
    made.begin(2, PAGES)
    assert made.attempt == 2
    assert [(item.key, item.ordinals) for item in made.items] == [
        ("a.pdf", (7, 2)),
        ("a.pdf", (7, 4)),
        ("b.pdf", (8, 0)),
    ]
    assert [item.seed for item in made.items] == [
        seed_of(3, "Ocr", key, ordinals)
        for key, ordinals in [("a.pdf", (7, 2)), ("a.pdf", (7, 4)), ("b.pdf", (8, 0))]
    ]
    with pytest.raises(ff.UsageError, match=r"FF442 .*3 items, not one"):
        _ = made.key


def test_one_item_at_a_time_has_its_own_key():
    made = Context(call="Ocr")
    made.begin(1, PAGES, 0)
    assert (made.key, made.ordinals, len(made.items)) == ("a.pdf", (7, 2), 1)
    made.move(2)
    assert (made.key, made.ordinals) == ("b.pdf", (8, 0))
    kept = made.at(1)
    made.begin(1, PAGES[1:], 0)
    assert (kept.ordinals, made.ordinals) == ((7, 4), (8, 0))


def test_a_root_has_one_ordinal():
    made = Context(call="Ocr")
    made.begin(1, [ItemRun("k", (), 5, 1)], 0)
    assert made.ordinals == (5,)


def test_who_is_not_told_learns_what_to_do():
    made = Context(call="Ocr")
    made.begin(1, ())
    with pytest.raises(ff.UsageError, match=r"FF442 .*identities=True"):
        _ = made.items
    with pytest.raises(ff.UsageError, match="FF442 a constructor"):
        _ = Context().seed


@pytest.mark.parametrize(
    "other",
    [
        (1, "Ocr", "a", (0, 3)),
        (0, "Ocr#2", "a", (0, 3)),
        (0, "Ocr", "b", (0, 3)),
        (0, "Ocr", "a", (0, 4)),
        (0, "Ocr", "a", (0, 3, 0)),
    ],
)
def test_a_seed_is_of_the_run_the_call_the_key_and_the_ordinals(other):
    seed = seed_of(0, "Ocr", "a", (0, 3))
    assert 0 <= seed < 1 << 63
    assert seed_of(*other) != seed
    assert seed == 6697113633363009236, "seeds stay what they are from version to version"


def test_counts_are_summed_by_call_and_handed_on_once():
    counts = Counts()
    one, other = Context(call="Ocr", counts=counts), Context(call="Ocr#2", counts=counts)
    one.count("words", 3)
    one.count("words")
    other.count("words", 5)
    assert sorted(counts.take()) == [("Ocr", "words", 4), ("Ocr#2", "words", 5)]
    assert counts.take() == ()


@pytest.mark.parametrize("n", [1.5, "1", None])
def test_only_whole_things_are_counted(n):
    with pytest.raises(ff.UsageError, match=r"FF443 .*whole number"):
        Context(call="Ocr").count("words", n)


def test_a_constructor_counts_nothing():
    with pytest.raises(ff.UsageError, match=r"FF443 .*constructor"):
        Context().count("words")


def test_a_direct_call_is_about_items_of_no_run():
    assert direct_context("f").ordinals == (0,)
    assert [item.ordinals for item in direct_context("f", 2).items] == [(0,), (1,)]
    assert direct_context("f", 0).run == ""
