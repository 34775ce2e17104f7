#include "apps/testpmd/options.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <CLI/CLI.hpp>

#include "apps/testpmd/text.hpp"
#include "base/number.hpp"
#include "pmd/cores/cpu_list.hpp"

namespace rio::testpmd {
namespace {

using Error = std::string*;
using Text = std::string_view;

constexpr unsigned kLcoreMax = 1023;
constexpr size_t kMaxPoints = 4096;  // of a sweep

int wrong(Error error, Text value, const std::string& right) {
  return fail(error, "'%s' is not %s", std::string(value).c_str(), right.c_str());
}

/// The parts of a list; at least one, perhaps empty.
std::vector<std::string> split(Text text) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
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
constexpr std::array kStarts = {"slot", "ring"};
constexpr std::array kOps = {"nread", "nwrite", "nwrite_r", "swrite"};
static_assert(static_cast<int>(Topology::kChained) == 2 &&
              static_cast<int>(BarrierStart::kRing) == 1 &&
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
  std::string why;
  if (!pmd::cores::parse_cpu_list(std::string(v), &list, &why)) {
    return wrong(e, v, "a list of lcores, such as 1,3-5: " + why);
  }
  for (const unsigned lcore : list) {
    if (lcore > kLcoreMax || std::count(list.begin(), list.end(), lcore) > 1) {
      return wrong(e, v, "a list of different lcores up to 1023, such as 1,3-5");
    }
  }
  o.forward_lcores = std::move(list);
  return 0;
}

int set_schedule(Options& o, Text v, Error e) {
  return barrier::parse_scheme(v, &o.schedule, e);
}

int set_peers(Options& o, Text v, Error e) {
  std::vector<uint32_t> peers;
  for (const std::string& part : split(v)) {
    uint64_t id = 0;
    if (!base::read_bytes(part, 0, UINT32_MAX, &id)) {
      return wrong(e, part, "a destID; give one for each port, such as 0x11,0x10");
    }
    peers.push_back(static_cast<uint32_t>(id));
  }
  o.peers = std::move(peers);
  return 0;
}

constexpr OptionDef kTable[] = {
    {"mode", "MODE", "what to do; see the list below (io)", set_text<&Options::mode>},
    {"size", "BYTES|F,L,S,ADD|MUL", "bytes of a message, or a sweep of sizes (64)", set_size},
    {"offset", "BYTES", "misalignment of the payload in its buffer, 0 to 4095 (0)",
     set_number<&Options::offset_bytes, 0, 4095>},
    {"burst", "N", "messages a burst, 1 to 128 (32)", set_number<&Options::burst, 1, kBurstMax>},
    {"seconds", "S", "time for each size", set_seconds},
    {"count", "N", "messages for each port to send, for each size",
     set_number<&Options::count, 1, (uint64_t{1} << 39)>},
    {"verify", nullptr, "check every byte and every sequence number", set_verify},
    {"seed", "N", "seed of the payload bytes (1)", set_number<&Options::seed, 0, UINT64_MAX>},
    {"faults", "SEED:RATE", "let the emulated card fail: 7:0.01", set_faults},
    {"mailboxes", "N", "spread messages over N mailboxes (64; 4 for several segments)",
     set_number<&Options::mailboxes, 1, 64>},
    {"window", "N", "io: messages that each port puts into the circle, 1 to 4096 (64)",
     set_number<&Options::window, 1, 4096>},
    {"flows", "N", "flowgen: flows of each port, 1 to 1024 (256)",
     set_number<&Options::flows, 1, 1024>},
    {"queues", "N", "dedicated: queues of each port, 1 to 8 (4 for each queue pair)",
     set_number<&Options::queues, 1, 8>},
    {"op", "OP", "rdma: nread, nwrite, nwrite_r, swrite (nwrite_r)", set_name<&Options::op, kOps>},
    {"topology", "T", "io: forward by loop, paired or chained ports (loop)",
     set_name<&Options::topology, kTopologies>},
    {"ranks", "N", "barrier: members, 2 to 65535 (cards, or queue pairs of one)",
     set_number<&Options::ranks, 2, 65535>},
    {"schedule", "SCHEME", "barrier: classic, two-way, torus:4x2, mesh:4x2, tree (two-way)",
     set_schedule},
    {"skew", "US", "barrier: members arrive up to US apart, at most 1000000 (0)",
     set_number<&Options::skew_us, 0, 1'000'000>},
    {"via", "WAY", "barrier: slot, ring: loaded once, or posted each time (slot)",
     set_name<&Options::via, kStarts>},
    {"peers", "ID,ID,...", "destIDs that the ports send to (the other end); barrier: all ranks",
     set_peers},
    {"forward-lcores", "LIST", "lcores that poll (those nearest the cards)", set_lcores},
    {"nb-cores", "N", "how many lcores poll (1; pingpong takes 2 if there are)",
     set_number<&Options::nb_cores, 1, 1024>},
    {"stats-period", "S", "a table every S seconds, 0 for none (1)", set_period},
    {"json", "FILE", "write all results there", set_text<&Options::json_file>, false},
    {"interactive", nullptr, "a prompt", set_flag<&Options::interactive>, false, "-i"},
    {"cmdline-file", "FILE", "commands to run first, as at the prompt",
     set_text<&Options::cmdline_file>, false},
    {"auto-start", nullptr, "with -i: start at once", set_flag<&Options::auto_start>, false},
    {"help", nullptr, "this text", set_flag<&Options::help>, false, "-h"},
    {"version", nullptr, "which release this is", set_flag<&Options::version>, false},
};

constexpr size_t kHelpColumn = 32;

constexpr const char* kFooter = R"(Modes
  io          what a port receives is forwarded, zero-copy
  txonly      every port sends, and drops what comes in
  rxonly      ports receive and drop; of two ports wired together the second sends
  flowgen     every port sends --flows flows over all mailboxes
  pingpong    one message to and fro between two ports: half a round trip
  dedicated   every port streams into all dedicated queues of its peer; --size up to 1 MiB
  doorbell    every port sends doorbells
  rdma        every port reads or writes its peer's memory; --op
  barrier     barriers that the cards run; a card, or a queue pair of one with wire=loop, is a rank

Examples (two emulated cards, wired to each other)
  E="-l 0 --no-pci --iova-mode=va --in-memory --vdev raw_rio0,wire=pair0 --vdev raw_rio1,wire=pair0"
  rio-testpmd $E -- --mode io --size 64 --seconds 5 --verify
  rio-testpmd $E -- --mode txonly --size 8,4096,2,MUL --seconds 1 --json sweep.json
  rio-testpmd $E -- --mode pingpong --size 8 --seconds 2
  rio-testpmd $E -- --mode dedicated --size 4K --offset 24 --count 1000 --verify
  rio-testpmd $E -- --mode io --faults 7:0.01 --count 7000 --verify
  rio-testpmd -l 0 --no-pci --iova-mode=va --in-memory --vdev raw_rio0,wire=loop,qps=8 -- \
    --mode barrier --schedule torus:4x2 --count 10000
  rio-testpmd $E -- -i

Exit code
  0  done (and, with --verify, every byte was right)
  1  wrong option, or the set-up failed
  2  --verify found something lost, duplicated or corrupted, or a rank left a barrier too early
  3  the card is gone, or nothing moves any more)";

void add_option(CLI::App& app, const OptionDef& option, Options* out) {
  const auto set = [&option, out](const std::string& value) {
    std::string why;
    if (option.set(*out, value, &why) != 0) {
      throw CLI::ValidationError("--" + std::string(option.name), why);
    }
  };
  const std::string name =
      (option.letter == nullptr ? "" : std::string(option.letter) + ",") + "--" + option.name;
  if (option.value == nullptr) {
    app.add_flag_callback(
        name, [set] { set(""); }, option.help);
  } else {
    app.add_option_function<std::string>(name, set, option.help)
        ->type_name(option.value)
        ->take_last();
  }
}

/// @param out where the callbacks of the options write; outlives the application.
void add_options(CLI::App& app, Options* out) {
  app.name("rio-testpmd EAL-OPTIONS --");
  app.set_help_flag("");  // a row of the table: EAL's side of the command line may ask for it too
  app.get_formatter()->column_width(kHelpColumn);
  for (const OptionDef& option : kTable) {
    add_option(app, option, out);
  }
}

}  // namespace

std::span<const OptionDef> option_table() {
  return kTable;
}

int parse_sizes(std::string_view text, uint32_t max_bytes, std::vector<uint32_t>* sizes,
                std::string* error) {
  const std::string all(text);
  const std::vector<std::string> parts = split(text);
  if (parts.size() != 1 && parts.size() != 4) {
    return fail(error,
                "size '%s' is neither a number nor first,last,step,ADD|MUL (64 or 8,4096,2,MUL)",
                all.c_str());
  }
  uint64_t ends[2] = {};
  for (size_t i = 0; i < std::min<size_t>(parts.size(), 2); ++i) {
    if (!base::read_bytes(parts[i], 1, max_bytes, &ends[i])) {
      return fail(error, "%s '%s' is not 1 to %u bytes", i == 0 ? "size" : "last size",
                  parts[i].c_str(), max_bytes);
    }
  }
  const auto [first, last] = ends;
  if (parts.size() == 1) {
    sizes->assign(1, static_cast<uint32_t>(first));
    return 0;
  }
  if (last < first) {
    return fail(error, "sweep '%s' ends before it begins; write first,last,step", all.c_str());
  }
  const bool multiply = parts[3] == "MUL" || parts[3] == "mul";
  if (!multiply && parts[3] != "ADD" && parts[3] != "add") {
    return fail(error, "sweep operation '%s' is neither ADD nor MUL", parts[3].c_str());
  }
  uint64_t step = 0;
  if (!base::read_bytes(parts[2], multiply ? 2 : 1, max_bytes, &step)) {
    return fail(error, "sweep step '%s' is not a number of at least %s", parts[2].c_str(),
                multiply ? "2 (MUL)" : "1 (ADD)");
  }
  std::vector<uint32_t> points;
  for (uint64_t size = first; size <= last; size = multiply ? size * step : size + step) {
    points.push_back(static_cast<uint32_t>(size));
    if (points.size() > kMaxPoints) {
      return fail(error, "sweep '%s' has more than %zu sizes; take a larger step", all.c_str(),
                  kMaxPoints);
    }
  }
  *sizes = std::move(points);
  return 0;
}

const OptionDef* find_option(std::string_view name) {
  const auto* const at = std::ranges::find(kTable, name, &OptionDef::name);
  return at == std::end(kTable) ? nullptr : at;
}

int parse_options(std::span<const std::string_view> args, Options* out, std::string* error) {
  Options options = *out;
  CLI::App app;
  add_options(app, &options);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // CLI11 takes the last first
  } catch (const CLI::ExtrasError& unknown) {
    return fail(error, "%s; --help lists the options", unknown.what());
  } catch (const CLI::ParseError& wrong) {
    return fail(error, "%s", wrong.what());
  }
  *out = std::move(options);
  return 0;
}

std::string help_text() {
  Options ignored;
  CLI::App app(
      "Sends messages between RapidIO cards (rawdevs of driver raw_rio) and measures them.");
  add_options(app, &ignored);
  app.footer(kFooter);
  return app.help();
}

int check_options(const Options& options, std::string* error) {
  if (options.seconds > 0 && options.count > 0) {
    return fail(error, "--seconds and --count exclude each other; give one of them");
  }
  if (options.sizes.size() > 1 && options.seconds <= 0 && options.count == 0) {
    return fail(error, "a sweep of %zu sizes needs --seconds or --count for each size",
                options.sizes.size());
  }
  if (!options.forward_lcores.empty() && options.nb_cores != 0 &&
      options.forward_lcores.size() != options.nb_cores) {
    return fail(error,
                "--forward-lcores names %zu lcores, but --nb-cores is %u; leave --nb-cores out",
                options.forward_lcores.size(), options.nb_cores);
  }
  if (!options.json_file.empty() && options.interactive) {
    return fail(error, "--json and -i exclude each other; leave out -i");
  }
  return 0;
}

}  // namespace rio::testpmd
