"""File names of keys: readable, safe, one to one."""

from pathlib import PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from fanfold.data.names import path_of_key, safe_name

KEYS = st.text(
    st.one_of(st.sampled_from("ab./%~ \\:é\x00"), st.characters()), min_size=1, max_size=40
) | st.text("ab/", min_size=200, max_size=700)


def test_a_readable_key_stays_readable():
    key = "corpus/Entwurf #2; Übersicht für das Café.pdf"
    assert path_of_key(key, ".md") == f"{key}.md"


@given(KEYS)
def test_a_path_stays_inside_its_folder_and_is_legal_everywhere(key):
    path = path_of_key(key, ".md", ".files")
    assert not path.startswith("/")
    for part in PurePosixPath(path).parts:
        assert not part.startswith(".")
        assert part.isprintable()
        assert not set(part) & set('\\:*?"<>|')
        assert len(part.encode()) <= 255


@given(KEYS, KEYS)
def test_two_keys_never_meet(one, other):
    def own(key):
        return {path_of_key(key, ".md", ".files"), path_of_key(key, ".files", ".md")}

    def way(key):
        return {str(p) for path in own(key) for p in PurePosixPath(path).parents}

    assert (own(one) == own(other)) == (one == other)
    assert not own(one) & (way(one) | way(other))


@given(st.text(min_size=1))
def test_a_safe_name_is_one_name(name):
    assert "/" not in safe_name(name)
    assert safe_name(name) not in (".", "..")
