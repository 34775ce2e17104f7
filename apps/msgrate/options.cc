#include "apps/msgrate/options.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>

#include "base/number.hpp"
#include "fpga/name/rails.hpp"
#include "lib/skifch/skifch.h"

namespace rio::msgrate {
namespace {

constexpr const char* kFooter = R"(Examples
  rio-msgrate                                   16 bytes, two processes of this machine
  rio-msgrate --size 64 --count 5000000
  rio-msgrate --test latency --size 8 --count 20000 --repeats 50
  rio-msgrate --api tag --test bandwidth --size 1048576 --count 5000
  rio-msgrate --api tag --test copied --size 4194304 --count 256
  rio-msgrate --card shm:job,id=2 --peer 1 --role recv &
  rio-msgrate --card shm:job,id=1 --peer 2 --role send --json -

Exit code
  0  done
  1  it could not be done; the reason is on stderr
  2  wrong command line)";

constexpr uint32_t kCountMax = 1u << 30;
constexpr uint32_t kRepeatsMax = 10000;
constexpr uint32_t kSizeMax = 64u << 20;
constexpr uint32_t kCopiedMin = 16;

const std::map<std::string, Role> kRoles{
    {"both", Role::kBoth}, {"send", Role::kSend}, {"recv", Role::kRecv}};
const std::map<std::string, Test> kTests{{"rate", Test::kRate},
                                         {"latency", Test::kLatency},
                                         {"bandwidth", Test::kBandwidth},
                                         {"copied", Test::kCopied}};
const std::map<std::string, Api> kApis{{"skifch", Api::kSkifCh}, {"tag", Api::kTag}};

/// As they are written.
struct Words {
  std::string role = "both";
  std::string api = "skifch";
  std::string test = "rate";
  std::string cpus;
  std::string json;
};

void add_options(CLI::App& app, Options* out, Words* words) {
  app.add_option("--card", out->card,
                 "Card, as docs/embedding.md names them; default: emulated ones.\n"
                 "With --role both shm:NAME, without id=");
  app.add_option("--peer", out->peer, "destID of the other side's card; with --role send or recv");
  app.add_option("--role", words->role, "Side that this process is; both: two processes")
      ->check(CLI::IsMember(kRoles))
      ->capture_default_str();
  app.add_option("--api", words->api,
                 "SkifCh, or tagged messages, which also tell what each\n"
                 "card has carried if --card names several")
      ->check(CLI::IsMember(kApis))
      ->capture_default_str();
  app.add_option("--test", words->test,
                 "copied: bytes that are copied on the way, by addresses; rate and\n"
                 "bandwidth send as fast as it goes, latency to and fro")
      ->check(CLI::IsMember(kTests))
      ->capture_default_str();
  app.add_option("--size", out->size_bytes, "Bytes of a message; SkifCh has at most 4080")
      ->check(CLI::Range(0u, kSizeMax))
      ->capture_default_str();
  app.add_option("--count", out->count, "Messages, or round trips; copied: pairs of addresses")
      ->check(CLI::Range(1u, kCountMax))
      ->capture_default_str();
  app.add_option("--repeats", out->repeats,
                 "Times that --count is measured: what is printed is the median")
      ->check(CLI::Range(1u, kRepeatsMax))
      ->capture_default_str();
  app.add_option("--cpus", words->cpus, "CPUs of sender and receiver, with --role both: 0,1");
  app.add_option("--json", words->json, "-: print a JSON object")->check(CLI::IsMember({"-"}));
  app.set_version_flag("--version", "rio-msgrate " RIO_VERSION, "Print the version and exit");
  app.footer(kFooter);
}

/// CPUs that this process may run on.
std::vector<unsigned> own_cpus() {
  cpu_set_t allowed;
  std::vector<unsigned> cpus;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus;
}

/// @return whether it is two of own_cpus().
bool parse_cpus(const std::string& text, std::vector<unsigned>* out) {
  const size_t comma = text.find(',');
  unsigned first = 0;
  unsigned second = 0;
  if (comma == std::string::npos ||
      !base::read_decimal(text.substr(0, comma), 0, CPU_SETSIZE - 1, &first) ||
      !base::read_decimal(text.substr(comma + 1), 0, CPU_SETSIZE - 1, &second)) {
    return false;
  }
  *out = {first, second};
  const std::vector<unsigned> own = own_cpus();
  return first != second && std::ranges::count(own, first) != 0 &&
         std::ranges::count(own, second) != 0;
}

/// Whether two processes can open a card of this name, each one of its own.
bool is_shared_by_both(const std::string& card) {
  std::vector<std::string> names;
  std::vector<name::CardName> cards;
  std::string ignored;  // opening the card tells it
  return card.empty() || (name::parse_cards(card, &names, &cards, &ignored) == 0 &&
                          std::ranges::all_of(cards, [](const name::CardName& name) {
                            return std::holds_alternative<name::Shm>(name.kind) && !name.has("id");
                          }));
}

/// @return why these options do not go together; empty: they do.
std::string wrong_sides(const Words& words, Options* out) {
  if (out->role != Role::kBoth && (out->card.empty() || out->peer == 0)) {
    return "--role " + words.role + " needs --card and --peer, as --card shm:job,id=1 --peer 2";
  }
  if (out->role != Role::kBoth && !words.cpus.empty()) {
    return "--cpus is for --role both; start this side by taskset -c CPU";
  }
  if (out->role == Role::kBoth && out->peer != 0) {
    return "--peer is for --role send and --role recv: a process for each side";
  }
  if (out->role == Role::kBoth && !is_shared_by_both(out->card)) {
    return "--role both takes --card shm:NAME, without id=; else start --role recv and send";
  }
  if (!words.cpus.empty() && !parse_cpus(words.cpus, &out->cpus)) {
    return "--cpus " + words.cpus +
           ": give two different CPUs of this process, as 0,1 (taskset -p $$ shows them)";
  }
  return "";
}

/// Find a fault in the options of messages.
std::string wrong_messages(const Options& options) {
  const bool is_tagged = options.api == Api::kTag;
  if (options.test == Test::kCopied && (!is_tagged || options.size_bytes < kCopiedMin)) {
    return "--test copied is of tagged messages of " + std::to_string(kCopiedMin) +
           " bytes or more: add --api tag --size 4194304";
  }
  if (options.test == Test::kCopied && options.repeats != 1) {
    return "--repeats is for what takes time; --test copied counts bytes: leave it out";
  }
  if (!is_tagged && options.size_bytes > SKIFCH_MESSAGE_MAX) {
    return "SkifCh has messages of at most " + std::to_string(SKIFCH_MESSAGE_MAX) +
           " bytes: --api tag has longer";
  }
  return "";
}

}  // namespace

bool parse_options(int argc, char** argv, Options* out, int* code) {
  CLI::App app(
      "Message rate, latency and bandwidth between two processes: one sends, the\n"
      "other receives, after [S4].");
  Words words;
  add_options(app, out, &words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int rc = app.exit(error);
    *code = rc == 0 ? 0 : 2;
    return false;
  }
  out->cpus = own_cpus();
  out->role = kRoles.at(words.role);
  out->api = kApis.at(words.api);
  out->test = kTests.at(words.test);
  std::string wrong = wrong_sides(words, out);
  wrong = wrong.empty() ? wrong_messages(*out) : wrong;
  if (!wrong.empty()) {
    std::fprintf(stderr, "rio-msgrate: %s\n", wrong.c_str());
    *code = 2;
    return false;
  }
  out->json = !words.json.empty();
  return true;
}

}  // namespace rio::msgrate
