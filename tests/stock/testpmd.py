"""Stock dpdk-testpmd, driven at its prompt."""
import re
import shutil

import stock

ADDRESSES = ["00:01:00:01:01:00", "00:01:00:01:02:00"]  # those of the first two cards of a process
PEERS = [f"--eth-peer=0,{ADDRESSES[1]}", f"--eth-peer=1,{ADDRESSES[0]}"]
PROMPT = r"t(\s*Port \d+: link state change event\s*)?estpmd> "  # testpmd's threads print in between
BURST = 32  # testpmd's: a `start tx_first N` sends N bursts on each port


def command_line(eal_arguments, arguments, prefix, cores=2):
    if shutil.which("dpdk-testpmd") is None:
        stock.need("dpdk-testpmd")
    return ["dpdk-testpmd", "-d", stock.NET, *stock.eal(prefix, *eal_arguments, cores=cores), "--",
            "--total-num-mbufs=4096", *arguments]


class Testpmd:
    """A testpmd at its prompt, in a `with`: it is ended on the way out, and leaves no files."""

    def __init__(self, eal_arguments, arguments=(), prefix=None, cores=2, telemetry=False, wrap=()):
        self.prefix = prefix or stock.new_prefix()
        quiet = [] if telemetry else ["--no-telemetry"]
        line = command_line([*quiet, *eal_arguments], ["-i", *arguments], self.prefix, cores)
        self.terminal = stock.Terminal([*wrap, *line])

    def __enter__(self):
        try:
            self.terminal.expect(PROMPT)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        self.terminal.close()
        stock.remove_files(self.prefix)

    def command(self, line):
        """Types a command. Returns what it printed, once the next prompt has come."""
        terminal = self.terminal
        begin = terminal.at
        terminal.send(line + "\n")
        match = terminal.expect(PROMPT)
        return terminal.text[begin:match.start()].replace(line, "", 1).strip("\n")

    def commands(self, *lines):
        """Types commands that only print errors, of which there must be none."""
        for line in lines:
            said = self.command(line)
            if re.search(r"Bad arguments|Command not found|Ambiguous|[Ff]ail|[Ii]nvalid|[Ee]rror|not supported", said):
                raise AssertionError(f"{line}: {said}")

    def forward(self, mode, start="start"):
        """`set fwd MODE` and `start`, which says what it forwards."""
        self.commands(f"set fwd {mode}")
        said = self.command(start)
        if f"{mode} packet forwarding" not in said:
            raise AssertionError(f"{start}: {said}")

    def quit(self):
        """Ends testpmd as a user does. Returns its output since."""
        begin = self.terminal.at
        self.terminal.send("quit\n")
        self.terminal.expect("Bye...")
        code = self.terminal.wait()
        if code != 0:
            raise AssertionError(f"testpmd ended with {code}:\n{self.terminal.text[-4000:]}")
        return self.terminal.text[begin:]

    def stats(self):
        """`show port stats all`: {port: {'RX-packets': 1, …}}."""
        return blocks(self.command("show port stats all"), r"NIC statistics for port (\d+)")

    def xstats(self, port):
        """`show port xstats PORT`: {name: value}."""
        return {name: int(value) for name, value
                in re.findall(r"^(\w+): (\d+)$", self.command(f"show port xstats {port}"), re.M)}

    def stop(self):
        """`stop`: {port: {'RX-packets': 1, …}} as the forwarding lcores have counted."""
        said = self.command("stop")
        if "Done." not in said:
            raise AssertionError(f"stop: {said}")
        return blocks(said.split("Accumulated")[0], r"Forward statistics for port (\d+)")

    def wait_for(self, condition, what):
        """Until condition(stats()) holds."""
        last = {}

        def holds():
            last.clear()
            last.update(self.stats())
            return condition(last)
        try:
            stock.until(holds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; {last}") from error
        return dict(last)

    def ports(self):
        """{name of a port: its number}."""
        rows = re.findall(r"^(\d+) +[0-9A-F:]{17} (\S+)", self.command("show port summary all"), re.M)
        return {name: int(port) for port, name in rows}

    def meet(self, *ports):
        """Polls until each of these net_rio ports has heard of another one: before that a
        broadcast goes nowhere, peers get no bundles, and a peer that has
        stopped is sent nothing. Not after `clear port stats` or xstats."""
        self.commands("set portlist " + ",".join(str(port) for port in ports))
        self.forward("rxonly")

        def all_met():
            xstats = [self.xstats(port) for port in ports]
            return all(counts["rx_joins"] > counts["rx_leaves"] for counts in xstats)
        stock.until(all_met, "all have joined")
        self.stop()

    def drain(self, pairs=((0, 1), (1, 0)), since=None):
        """Receives frames until each port has all that its peer has sent, since the ports'
        counters began, or since those stats(). Returns stats()."""
        self.forward("rxonly")

        def all_there(stats):
            def count(port, key):
                return stats[port][key] - (since[port][key] if since else 0)
            return all(count(there, "RX-packets") == count(here, "TX-packets") for here, there in pairs)
        stats = self.wait_for(all_there, "each port has received what the other has sent")
        self.stop()
        return stats


def blocks(text, heading):
    """Counts below headings with a port's number: {port: {name: value}}."""
    pieces = re.split(heading, text)
    return {int(port): {name: int(value) for name, value in re.findall(r"([RT]X-\w+): +(\d+)", body)}
            for port, body in zip(pieces[1::2], pieces[2::2])}
