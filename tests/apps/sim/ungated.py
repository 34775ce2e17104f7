"""Writes a source without a rule that barriers need, to see that the tests find that it is missing:
engine.cc without the gate between rounds: the card sends all rounds at once, whatever is missing;
barrier_world.cc without the meeting in memory: a node starts when its first rank has arrived.

usage: ungated.py SOURCE.cc OUTPUT.cc
"""
import os
import sys

BROKEN = {
    "engine.cc": ("barrier.plan.send & below(rounds) & ~barrier.sent",
                  "barrier.plan.send & below(barrier.plan.rounds + 0 * rounds) & ~barrier.sent"),
    "barrier_world.cc": ("++meeting.arrived == ranks", "++meeting.arrived == 1"),
}

RULE, WITHOUT = BROKEN[os.path.basename(sys.argv[1])]
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
if text.count(RULE) != 1:
    sys.exit(f"{sys.argv[1]} has '{RULE}' {text.count(RULE)} times, not once: adapt ungated.py")
with open(sys.argv[2], "w", encoding="utf-8") as file:
    file.write(text.replace(RULE, WITHOUT))
