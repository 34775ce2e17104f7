#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "apps/testpmd/options.hpp"
#include "base/number.hpp"
#include "pmd/cores/cpu_list.hpp"

namespace rio::testpmd {
namespace {

using Error = std::string*;
using Text = std::string_view;

constexpr unsigned kLcoreMax = 1023;
constexpr size_t kMaxPoints = 4096;  // of a sweep

int fail(Error error, std::string text) {
  *error = std::move(text);
  return -EINVAL;
}

std::string quoted(Text text) {
  return "'" + std::string(text) + "'";
}

int wrong(Error error, Text value, const std::string& right) {
  return fail(error, quoted(value) + " is not " + right);
}

/// The parts of a list; at least one, perhaps empty.
std::vector<Text> split(Text text) {
  std::vector<Text> parts;
  for (;;) {
    const size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == Text::npos) {
      return parts;
    }
    text.remove_prefix(comma + 1);
  }
}

template <auto kField, uint64_t kMin, uint64_t kMax>
int set_number(Options& o, Text v, Error e) {
  uint64_t value = 0;
  if (!base::read_bytes(v, kMin, kMax, &value)) {
    return wrong(e, v, "a number from " + std::to_string(kMin) + " to " + std::to_string(kMax));
  }
  o.*kField = static_cast<std::remove_reference_t<decltype(o.*kField)>>(value);
  return 0;
}

template <std::string Options::*kField>
int set_text(Options& o, Text v, Error e) {
  if (v.empty()) {
    return wrong(e, v, "a name");
  }
  o.*kField = v;
  return 0;
}

template <bool Options::*kField>
int set_flag(Options& o, Text, Error) {
  return o.*kField = true, 0;
}

/// One of the names of an enumeration's values, which count from 0.
template <auto kField, const auto& kNames>
int set_name(Options& o, Text v, Error e) {
  std::string names;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (v == kNames[i]) {
      o.*kField = static_cast<std::remove_reference_t<decltype(o.*kField)>>(i);
      return 0;
    }
    names += (i == 0 ? "" : i + 1 < kNames.size() ? ", " : " or ") + std::string(kNames[i]);
  }
  return wrong(e, v, names);
}

constexpr std::array kTopologies = {"loop", "paired", "chained"};
constexpr std::array kOps = {"nread", "nwrite", "nwrite_r", "swrite"};
static_assert(static_cast<int>(Topology::kChained) == 2 &&
              static_cast<int>(regs::DmaOp::kNwrite) == 1 &&
              static_cast<int>(regs::DmaOp::kSwrite) == 3);

int set_size(Options& o, Text v, Error e) {
  if (parse_sizes(v, kTransferBytesMax, &o.sizes, e) != 0) {
    return -EINVAL;
  }
  o.size_text = std::string(v);
  return 0;
}

int set_seconds(Options& o, Text v, Error e) {
  return base::read_fraction(v, 0, 1e7, &o.seconds) && o.seconds > 0
             ? 0
             : wrong(e, v, "a time in seconds above 0");
}

int set_period(Options& o, Text v, Error e) {
  return base::read_fraction(v, 0, 3600, &o.stats_period_s)
             ? 0
             : wrong(e, v, "a time in seconds from 0 to 3600");
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
  if (colon == Text::npos || !base::read_bytes(v.substr(0, colon), 0, UINT64_MAX, &seed) ||
      !base::read_fraction(v.substr(colon + 1), 0, 1, &rate)) {
    return wrong(e, v, "SEED:RATE with a rate from 0 to 1, such as 7:0.01");
  }
  o.fault_seed = seed;
  o.fault_rate = rate;
  return 0;
}

int set_lcores(Options& o, Text v, Error e) {
  std::vector<unsigned> list;
  std::string ignored;
  bool good = pmd::cores::parse_cpu_list(std::string(v), &list, &ignored);
  for (size_t i = 0; good && i < list.size(); ++i) {
    good = list[i] <= kLcoreMax && std::count(list.begin(), list.end(), list[i]) == 1;
  }
  if (!good) {
    return wrong(e, v, "a list of different lcores, such as 1,3-5");
  }
  o.forward_lcores = std::move(list);
  return 0;
}

int set_peers(Options& o, Text v, Error e) {
  std::vector<uint32_t> peers;
  for (const Text part : split(v)) {
    uint64_t id = 0;
    if (!base::read_bytes(part, 0, UINT32_MAX, &id)) {
      return wrong(e, part, "a destID; give one for each port, such as 0x11,0x10");
    }
    peers.push_back(static_cast<uint32_t>(id));
  }
  o.peers = std::move(peers);
  return 0;
}

constexpr std::array kTable = {
    OptionDef{"mode", "MODE", "what to do; see the list below (io)", true,
              set_text<&Options::mode>},
    OptionDef{"size", "BYTES|F,L,S,ADD|MUL", "bytes of a message, or a sweep of sizes (64)", true,
              set_size},
    OptionDef{"offset", "BYTES", "misalignment of the payload in its buffer, 0 to 4095 (0)", true,
              set_number<&Options::offset_bytes, 0, 4095>},
    OptionDef{"burst", "N", "messages a burst, 1 to 128 (32)", true,
              set_number<&Options::burst, 1, kBurstMax>},
    OptionDef{"seconds", "S", "time for each size", true, set_seconds},
    OptionDef{"count", "N", "messages for each port to send, for each size", true,
              set_number<&Options::count, 1, (uint64_t{1} << 39)>},
    OptionDef{"verify", nullptr, "check every byte and every sequence number", true, set_verify},
    OptionDef{"seed", "N", "of the bytes that are sent (1)", true,
              set_number<&Options::seed, 0, UINT64_MAX>},
    OptionDef{"faults", "SEED:RATE", "let the emulated card fail: 7:0.01", true, set_faults},
    OptionDef{"mailboxes", "N", "spread messages over N mailboxes (64; 4 for several segments)",
              true, set_number<&Options::mailboxes, 1, 64>},
    OptionDef{"window", "N", "io: messages that each port puts into the circle (64)", true,
              set_number<&Options::window, 1, 4096>},
    OptionDef{"flows", "N", "flowgen: flows of each port, 1 to 1024 (256)", true,
              set_number<&Options::flows, 1, 1024>},
    OptionDef{"queues", "N", "dedicated: queues of each port, 1 to 8 (4 for each queue pair)", true,
              set_number<&Options::queues, 1, 8>},
    OptionDef{"op", "OP", "rdma: nread, nwrite, nwrite_r, swrite (nwrite_r)", true,
              set_name<&Options::op, kOps>},
    OptionDef{"topology", "T", "io: forward by loop, paired or chained ports (loop)", true,
              set_name<&Options::topology, kTopologies>},
    OptionDef{"peers", "ID,ID,...", "destID that each port sends to (who it is wired to)", true,
              set_peers},
    OptionDef{"forward-lcores", "LIST", "lcores that poll (those nearest the cards)", true,
              set_lcores},
    OptionDef{"nb-cores", "N", "how many lcores poll (1; pingpong takes 2 if there are)", true,
              set_number<&Options::nb_cores, 1, 1024>},
    OptionDef{"stats-period", "S", "a table every S seconds, 0 for none (1)", true, set_period},
    OptionDef{"json", "FILE", "write all results there", false, set_text<&Options::json_file>},
    OptionDef{"interactive", nullptr, "a prompt", false, set_flag<&Options::interactive>, "-i"},
    OptionDef{"cmdline-file", "FILE", "commands to run first, as at the prompt", false,
              set_text<&Options::cmdline_file>},
    OptionDef{"auto-start", nullptr, "with -i: start at once", false,
              set_flag<&Options::auto_start>},
    OptionDef{"help", nullptr, "this text", false, set_flag<&Options::help>, "-h"},
    OptionDef{"version", nullptr, "which release this is", false, set_flag<&Options::version>},
};

}  // namespace

std::span<const OptionDef> option_table() {
  return kTable;
}

int parse_sizes(std::string_view text, uint32_t max_bytes, std::vector<uint32_t>* sizes,
                std::string* error) {
  const std::vector<std::string_view> parts = split(text);
  const std::string range = "1 to " + std::to_string(max_bytes) + " bytes";
  if (parts.size() != 1 && parts.size() != 4) {
    return fail(error, "size " + quoted(text) +
                           " is neither a number nor first,last,step,ADD|MUL (64 or 8,4096,2,MUL)");
  }
  uint64_t first = 0;
  if (!base::read_bytes(parts[0], 1, max_bytes, &first)) {
    return fail(error, "size " + quoted(parts[0]) + " is not " + range);
  }
  if (parts.size() == 1) {
    sizes->assign(1, static_cast<uint32_t>(first));
    return 0;
  }
  uint64_t last = 0;
  uint64_t step = 0;
  if (!base::read_bytes(parts[1], 1, max_bytes, &last)) {
    return fail(error, "last size " + quoted(parts[1]) + " is not " + range);
  }
  if (last < first) {
    return fail(error, "sweep " + quoted(text) + " ends before it begins; write first,last,step");
  }
  const bool multiply = parts[3] == "MUL" || parts[3] == "mul";
  if (!multiply && parts[3] != "ADD" && parts[3] != "add") {
    return fail(error, "sweep operation " + quoted(parts[3]) + " is neither ADD nor MUL");
  }
  if (!base::read_bytes(parts[2], multiply ? 2 : 1, max_bytes, &step)) {
    return fail(error, "sweep step " + quoted(parts[2]) + " is not a number of at least " +
                           (multiply ? "2 (MUL)" : "1 (ADD)"));
  }
  std::vector<uint32_t> points;
  for (uint64_t size = first; size <= last; size = multiply ? size * step : size + step) {
    points.push_back(static_cast<uint32_t>(size));
    if (points.size() > kMaxPoints) {
      return fail(error, "sweep " + quoted(text) + " has more than " + std::to_string(kMaxPoints) +
                             " sizes; take a larger step");
    }
  }
  *sizes = std::move(points);
  return 0;
}

}  // namespace rio::testpmd
