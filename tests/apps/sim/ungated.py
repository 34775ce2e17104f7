"""Writes a barrier engine without the gate between rounds: it sends all rounds at once, whatever is missing.

usage: ungated.py ENGINE.cc OUTPUT.cc
"""
import sys

GATE = "barrier.plan.send & below(rounds) & ~barrier.sent"

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
if text.count(GATE) != 1:
    sys.exit(f"{sys.argv[1]} has '{GATE}' {text.count(GATE)} times, not once: adapt ungated.py")
with open(sys.argv[2], "w", encoding="utf-8") as file:
    file.write(text.replace(GATE, "barrier.plan.send & below(barrier.plan.rounds + 0 * rounds) & ~barrier.sent"))
