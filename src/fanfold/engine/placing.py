"""Reported facts, numbered by rows of a block, put into the places of a chunk's items."""

from __future__ import annotations

from fanfold.engine.bits import below, deposit
from fanfold.engine.chunks import Chunk, Facts, FactsKey
from fanfold.engine.facts import check_key, control_key
from fanfold.protocol import StreamRows


def place_facts(chunk: Chunk, stream: StreamRows, bits: int, row: int) -> None:
    """The items ``bits`` of a chunk have the rows from ``row`` on, in ordinal order."""
    if stream.sizes:
        if chunk.row_sizes is None:
            chunk.row_sizes = {}
        chunk.row_sizes.setdefault(stream.port, []).append((bits, stream.sizes, row))
    for call, path, costs in stream.costs:
        if chunk.costs is None:
            chunk.costs = {}
        chunk.costs.setdefault((stream.port, call, path), []).append((bits, costs, row))
    window = below(bits.bit_count())
    for call, path, groups in stream.groups:
        if chunk.groups is None:
            chunk.groups = {}
        known = chunk.groups.setdefault((stream.port, call, path), {})
        for group, rows in groups:
            if here := deposit(rows >> row & window, bits):
                known[group] = known.get(group, 0) | here
    if chunk.facts is None:
        chunk.facts = {}
    for control in stream.controls:
        key = (stream.port, control_key(control.control), control.path)
        facts = _at(chunk, key, len(control.labels))
        for label, rows in enumerate(control.labels):
            facts.labels[label] |= deposit(rows >> row & window, bits)
        for illegal_row, text in control.illegal:
            if row <= illegal_row < row + window.bit_length():
                bit = deposit(1 << (illegal_row - row), bits)
                facts.illegal |= bit
                facts.texts.append((bit, text))
    for check, rows, text, path in stream.missing:
        here = deposit(rows >> row & window, bits)
        if here:
            facts = _at(chunk, (stream.port, check_key(check), path), 1)
            facts.labels[0] |= here
            facts.texts.append((here, text))


def _at(chunk: Chunk, key: FactsKey, labels: int) -> Facts:
    assert chunk.facts is not None
    facts = chunk.facts.get(key)
    if facts is None:
        facts = chunk.facts[key] = Facts.empty(labels)
    return facts
