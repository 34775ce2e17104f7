#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>

#include "apps/testpmd/options.hpp"
#include "apps/testpmd/size_sweep.hpp"

namespace rio::testpmd {
namespace {

using Error = std::string*;
using Text = std::string_view;

int wrong(Error error, Text value, const std::string& right) {
  *error = std::string("'").append(value).append("' is not ").append(right);
  return -EINVAL;
}

bool real(Text text, double max, double* out) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size() || !std::isfinite(value) || value < 0 ||
      value > max) {
    return false;
  }
  *out = value;
  return true;
}

template <typename T>
int number(Text text, uint64_t min, uint64_t max, T* out, Error error) {
  uint64_t value = 0;
  if (!parse_number(text, max, &value) || value < min) {
    return wrong(error, text,
                 "a number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  *out = static_cast<T>(value);
  return 0;
}

int text_value(Text text, std::string* out, Error error) {
  if (text.empty()) {
    return wrong(error, text, "a name");
  }
  *out = std::string(text);
  return 0;
}

int set_mode(Options& o, Text v, Error e) {
  return text_value(v, &o.mode, e);
}

int set_size(Options& o, Text v, Error e) {
  if (parse_sizes(v, kTransferBytesMax, &o.sizes, e) != 0) {
    return -EINVAL;
  }
  o.size_text = std::string(v);
  return 0;
}

int set_offset(Options& o, Text v, Error e) {
  return number(v, 0, 4095, &o.offset_bytes, e);
}
int set_burst(Options& o, Text v, Error e) {
  return number(v, 1, kBurstMax, &o.burst, e);
}
int set_count(Options& o, Text v, Error e) {
  return number(v, 1, uint64_t{1} << 39, &o.count, e);
}
int set_mailboxes(Options& o, Text v, Error e) {
  return number(v, 1, 64, &o.mailboxes, e);
}
int set_flows(Options& o, Text v, Error e) {
  return number(v, 1, 1024, &o.flows, e);
}
int set_queues(Options& o, Text v, Error e) {
  return number(v, 1, 8, &o.queues, e);
}
int set_window(Options& o, Text v, Error e) {
  return number(v, 1, 4096, &o.window, e);
}
int set_seed(Options& o, Text v, Error e) {
  return number(v, 0, UINT64_MAX, &o.seed, e);
}
int set_nb_cores(Options& o, Text v, Error e) {
  return number(v, 1, 1024, &o.nb_cores, e);
}

int set_seconds(Options& o, Text v, Error e) {
  return real(v, 1e7, &o.seconds) && o.seconds > 0 ? 0 : wrong(e, v, "a time in seconds above 0");
}

int set_period(Options& o, Text v, Error e) {
  return real(v, 3600, &o.stats_period_s) ? 0 : wrong(e, v, "a time in seconds from 0 to 3600");
}

int set_verify(Options& o, Text v, Error e) {
  if (!v.empty() && v != "on" && v != "off") {
    return wrong(e, v, "on or off");
  }
  o.verify = v != "off";
  return 0;
}

int set_faults(Options& o, Text v, Error e) {
  const size_t colon = v.find(':');
  uint64_t seed = 0;
  double rate = 0;
  if (colon == Text::npos || !parse_number(v.substr(0, colon), UINT64_MAX, &seed) ||
      !real(v.substr(colon + 1), 1.0, &rate)) {
    return wrong(e, v, "SEED:RATE with a rate from 0 to 1, such as 7:0.01");
  }
  o.fault_seed = seed;
  o.fault_rate = rate;
  return 0;
}

int set_json(Options& o, Text v, Error e) {
  return text_value(v, &o.json_file, e);
}

int set_topology(Options& o, Text v, Error e) {
  static constexpr std::array kNames = {"loop", "paired", "chained"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (v == kNames[i]) {
      o.topology = static_cast<Topology>(i);
      return 0;
    }
  }
  return wrong(e, v, "loop, paired or chained");
}

int set_lcores(Options& o, Text v, Error e) {
  return parse_list(v, 1023, &o.forward_lcores)
             ? 0
             : wrong(e, v, "a list of different lcores, such as 1,3-5");
}

int set_op(Options& o, Text v, Error e) {
  if (v != "nread" && v != "nwrite" && v != "nwrite_r" && v != "swrite") {
    return wrong(e, v, "nread, nwrite, nwrite_r or swrite");
  }
  o.op = std::string(v);
  return 0;
}

int set_peers(Options& o, Text v, Error e) {
  std::vector<uint32_t> peers;
  for (bool more = true; more;) {
    const size_t comma = v.find(',');
    uint64_t id = 0;
    if (!parse_number(v.substr(0, comma), UINT32_MAX, &id)) {
      return wrong(e, v.substr(0, comma), "a destID; give one for each port, such as 0x11,0x10");
    }
    peers.push_back(static_cast<uint32_t>(id));
    more = comma != Text::npos;
    v.remove_prefix(more ? comma + 1 : v.size());
  }
  o.peers = std::move(peers);
  return 0;
}

int set_interactive(Options& o, Text, Error) {
  return o.interactive = true, 0;
}
int set_cmdline(Options& o, Text v, Error e) {
  return text_value(v, &o.cmdline_file, e);
}
int set_auto_start(Options& o, Text, Error) {
  return o.auto_start = true, 0;
}
int set_help(Options& o, Text, Error) {
  return o.help = true, 0;
}
int set_version(Options& o, Text, Error) {
  return o.version = true, 0;
}

constexpr std::array kTable = {
    OptionDef{"mode", "MODE", "what to do; see the list below (io)", true, set_mode},
    OptionDef{"size", "BYTES|F,L,S,ADD|MUL", "bytes of a message, or a sweep of sizes (64)", true,
              set_size},
    OptionDef{"offset", "BYTES", "misalignment of the payload in its buffer, 0 to 4095 (0)", true,
              set_offset},
    OptionDef{"burst", "N", "messages a burst, 1 to 128 (32)", true, set_burst},
    OptionDef{"seconds", "S", "time for each size", true, set_seconds},
    OptionDef{"count", "N", "messages for each port to send, for each size", true, set_count},
    OptionDef{"verify", nullptr, "check every byte and every sequence number", true, set_verify},
    OptionDef{"seed", "N", "of the bytes that are sent (1)", true, set_seed},
    OptionDef{"faults", "SEED:RATE", "let the emulated card fail: 7:0.01", true, set_faults},
    OptionDef{"mailboxes", "N", "spread messages over N mailboxes (64; 4 for several segments)",
              true, set_mailboxes},
    OptionDef{"window", "N", "io: messages that each port puts into the circle (64)", true,
              set_window},
    OptionDef{"flows", "N", "flowgen: flows of each port, 1 to 1024 (256)", true, set_flows},
    OptionDef{"queues", "N", "dedicated: queues of each port, 1 to 8 (4 for each queue pair)", true,
              set_queues},
    OptionDef{"op", "OP", "rdma: nread, nwrite, nwrite_r, swrite (nwrite_r)", true, set_op},
    OptionDef{"topology", "T", "io: forward by loop, paired or chained ports (loop)", true,
              set_topology},
    OptionDef{"peers", "ID,ID,...", "destID that each port sends to (who it is wired to)", true,
              set_peers},
    OptionDef{"forward-lcores", "LIST", "lcores that poll (those nearest the cards)", true,
              set_lcores},
    OptionDef{"nb-cores", "N", "how many lcores poll (1; pingpong takes 2 if there are)", true,
              set_nb_cores},
    OptionDef{"stats-period", "S", "a table every S seconds, 0 for none (1)", true, set_period},
    OptionDef{"json", "FILE", "write all results there", false, set_json},
    OptionDef{"interactive", nullptr, "a prompt", false, set_interactive, "-i"},
    OptionDef{"cmdline-file", "FILE", "commands to run first, as at the prompt", false,
              set_cmdline},
    OptionDef{"auto-start", nullptr, "with -i: start at once", false, set_auto_start},
    OptionDef{"help", nullptr, "this text", false, set_help, "-h"},
    OptionDef{"version", nullptr, "which release this is", false, set_version},
};

}  // namespace

std::span<const OptionDef> option_table() {
  return kTable;
}

}  // namespace rio::testpmd
