"""The rows of a benchmark: table, floors, JSON."""
import json
import math


class Rows:
    """Rows in the order of their adding; those with a floor are what the benchmark is for."""

    def __init__(self):
        self.rows = []

    def add(self, name, value, unit, how, *, peer="", peer_value=None, most=None, least=None,
            doubtful=False):
        """@param most, least: the floor. @param how: the command that gives the value.
        @param doubtful: a ratio that the load of the machine may have bent.
        @return the row, to which further fields may be added."""
        row = {"id": name, "value": value, "unit": unit, "peer": peer, "how": how}
        if peer_value is not None:
            row["peer_value"] = peer_value
        if most is not None or least is not None:
            row["floor"] = (f">= {least:g}" if most is None else f"<= {most:g}" if least is None else
                            f"{least:g} to {most:g}")
            row["pass"] = bool((most is None or value <= most) and (least is None or value >= least))
        if doubtful:
            row["doubtful"] = True
        self.rows.append(row)
        return row

    def missed(self):
        return [row for row in self.rows if row.get("pass") is False]

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.rows, file, indent=1)
            file.write("\n")

    @staticmethod
    def _number(value):
        if value is None:
            return ""
        if isinstance(value, int) or value == 0:
            return f"{value:,.0f}"
        digits = max(0, 3 - int(math.floor(math.log10(abs(value)))) - 1)
        return f"{value:,.{min(digits, 4)}f}"

    def print(self):
        """One table, aligned, those with a floor first."""
        lines = [("id", "value", "unit", "floor", "peer", "ratio", "")]
        ordered = [r for r in self.rows if "floor" in r] + [r for r in self.rows if "floor" not in r]
        for row in ordered:
            peer = row.get("peer_value")
            ratio = ""
            if peer and row["unit"] != "ratio":
                ratio = f"{row['value'] / peer:.2f}"
            elif peer:
                ratio = f"{row['value']:.2f}"
            verdict = {True: "pass", False: "MISS", None: ""}[row.get("pass")]
            lines.append((row["id"], self._number(row["value"]), row["unit"], row.get("floor", ""),
                          self._number(peer), ratio,
                          verdict + (" (doubtful)" if row.get("doubtful") else "")))
        widths = [max(len(line[i]) for line in lines) for i in range(7)]
        for line in lines:
            print("  ".join(text.rjust(width) if i in (1, 3, 4, 5) else text.ljust(width)
                            for i, (text, width) in enumerate(zip(line, widths))).rstrip())
