"""Planted faults of batch forming: what shares a batch, and what waits for more."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

BATCHES: Final = (
    Mutant(
        "a batch costs more than it may",
        "engine/costs.py",
        "            if here := members & items:\n                found",
        "            if here := members & items & (items - 1):\n                found",
        ("limits",),
    ),
    Mutant(
        "a root has its turn again before others have theirs",
        "engine/lines.py",
        "            self._turns.rotate(-1)\n",
        "",
        test="tests/unit/engine/test_lines.py::test_a_large_family_gives_way_after_its_quantum",
    ),
    Mutant(
        "a root that comes in many pieces has many turns",
        "engine/lines.py",
        "            turn = self._last_of_several() if root is None else self._turn_of.get(root)\n"
        "            if turn is None:\n"
        "                turn = self._begin(root)\n                self._turns.append(turn)\n",
        "            turn = self._begin(None)\n            self._turns.append(turn)\n",
        test="tests/unit/engine/test_lines.py::test_a_root_that_comes_in_many_pieces_has_one_turn",
    ),
    Mutant(
        "a batch lingers though nothing can come",
        "dispatch/core.py",
        "if self._is_full(pool, call) or not self._supply.can_come(call, self.room):",
        "if self._is_full(pool, call):",
        ("linger",),
    ),
    Mutant(
        "a full batch lingers",
        "dispatch/core.py",
        "if self._is_full(pool, call) or not self._supply.can_come(call, self.room):",
        "if not self._supply.can_come(call, self.room):",
        ("linger",),
        case="full-though-it-lingers",
    ),
    Mutant(
        "a batch lingers for as long as more can come",
        "dispatch/core.py",
        "        if time_s >= due_s:\n",
        "        if time_s >= due_s + 1e9:\n",
        ("linger", "endless"),
    ),
    Mutant(
        "nobody looks again when a batch has lingered",
        "dispatch/core.py",
        "            self.due_s = due_s\n",
        "            pass\n",
        test="tests/unit/dispatch/test_linger.py"
        "::test_a_trickle_goes_when_its_oldest_item_has_waited_long_enough",
    ),
    Mutant(
        "a batch lingers for what is paused",
        "dispatch/supply.py",
        "or (machine.queues[c].count and not self.paused(c))",
        "or machine.queues[c].count",
        test="tests/unit/dispatch/test_linger.py::test_a_producer_that_is_paused_counts_as_nothing",
    ),
    Mutant(
        "what a batch left counts as old as what went",
        "engine/ready.py",
        "if not self._runs.join(chunk, bits, self._marked):",
        "if not self._runs.join(chunk, bits, -1):",
        test="tests/unit/dispatch/test_linger.py"
        "::test_what_a_batch_left_has_waited_since_it_came_and_no_longer",
    ),
    Mutant(
        "a batch holds more bytes than it may",
        "engine/measured.py",
        "                self._left -= ends[fitting - 1]\n",
        "",
        ("limits",),
    ),
    Mutant(
        "an item that is too large takes others along",
        "engine/measured.py",
        "self.room, self.count = 0, 1",
        "self.room, self.count = self.room - 1, 1",
        ("limits", "error:ValueError"),
    ),
    Mutant(
        "what was passed over is forgotten",
        "engine/measured.py",
        "            self._runs.appendleft(run)\n",
        "            pass\n",
        ("invariant", "stand-still", "idle"),
    ),
    Mutant(
        "what was passed over goes behind all others",
        "engine/measured.py",
        "            self._runs.appendleft(run)\n",
        "            self._runs.append(run)\n",
        test="tests/unit/engine/test_measured.py"
        "::test_what_was_passed_over_comes_before_what_was_not_looked_at",
    ),
    Mutant(
        "a broadcast value weighs nothing",
        "engine/weights.py",
        "weights += (weight, *(0,) * (count - 1))",
        "weights += (0,) * count",
        ("limits",),
        case="a-broadcast-beside-its-children",
    ),
    Mutant(
        "the sizes of a report are read from its beginning",
        "engine/weights.py",
        "first = row + low_offset(ranks)",
        "first = low_offset(ranks)",
        test="tests/unit/engine/test_measured.py::test_sizes_are_those_of_the_items_own_rows",
    ),
    Mutant(
        "a list weighs what its largest child does",
        "engine/weights.py",
        "known[offset] += sum(islice(weights, count))",
        "known[offset] = max(islice(weights, count))",
        test="tests/unit/engine/test_measured.py::test_a_list_weighs_what_is_in_it",
    ),
    Mutant(
        "items of several groups share a batch",
        "engine/grouped.py",
        "self._part(group).push(chunk, items)",
        "self._part(None).push(chunk, items)",
        ("limits",),
    ),
    Mutant(
        "the groups of a report are read from its beginning",
        "engine/placing.py",
        "if here := deposit(rows >> row & window, bits):",
        "if here := deposit(rows & window, bits):",
        ("limits",),
    ),
    Mutant(
        "a merge tells the groups of its first port for all items",
        "engine/groups.py",
        "            for group, members in inner(chunk, here) if here else ():",
        "            for group, members in parts[0][1](chunk, here) if here else ():",
        test="tests/unit/engine/test_grouped.py::test_a_merge_tells_no_group_of_what_it_did_not_take",
    ),
    Mutant(
        "an old group is passed over for as long as others are full",
        "engine/grouped.py",
        "if self._passed_over < PASSED_OVER:",
        "if True:",
        test="tests/unit/engine/test_grouped.py"
        "::test_a_group_that_is_not_full_is_passed_over_a_few_times_only",
    ),
    Mutant(
        "what the probe holds back goes while other groups wait",
        "engine/grouped.py",
        "held=held and not others",
        "held=held",
        test="tests/unit/engine/test_grouped.py"
        "::test_what_the_probe_holds_back_waits_for_other_groups_as_well",
    ),
    Mutant(
        "items of no group share a batch",
        "engine/groups.py",
        "if group is NO_GROUP:",
        "if group is UNTOLD:",
        test="tests/unit/engine/test_grouped.py::test_items_of_no_group_go_alone",
    ),
)
