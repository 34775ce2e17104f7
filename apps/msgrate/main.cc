// rio-msgrate: how many messages a second, or how long one takes, between two processes.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/common/std_streams.hpp"
#include "apps/msgrate/copied.hpp"
#include "apps/msgrate/options.hpp"
#include "apps/msgrate/rail_report.hpp"
#include "apps/msgrate/skifch_side.hpp"
#include "apps/msgrate/tag_side.hpp"
#include "fpga/name/rails.hpp"

namespace rio::msgrate {
namespace {

using Clock = std::chrono::steady_clock;

/// @param seconds of each repeat; not empty. The figures are of the one in the middle. @param rails
/// rails_json(); null: the API does not tell.
void report(const Options& options, const std::vector<double>& seconds,
            const nlohmann::json& rails) {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const double each_ns = median * 1e9 / options.count;
  const double rate = options.count / median;
  nlohmann::json json;
  json["size"] = options.size_bytes;
  json["count"] = options.count;
  json["seconds"] = median;
  json["seconds_each"] = seconds;
  if (options.test == Test::kLatency) {
    json["half_round_trip_ns"] = each_ns / 2;
  } else {
    json["messages_per_s"] = rate;
    json["bytes_per_s"] = rate * options.size_bytes;
  }
  if (!rails.is_null()) {
    json["rails"] = rails;
  }
  if (options.json) {
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  if (options.test == Test::kLatency) {
    std::printf("%u bytes  half a round trip %.1f ns\n", options.size_bytes, each_ns / 2);
  } else {
    std::printf("%u bytes  %.3f million messages a second  %.1f MB/s\n", options.size_bytes,
                rate / 1e6, rate * options.size_bytes / 1e6);
  }
  print_rails(rails);
}

/// One repeat. @param sends as in run_side(). @param seconds gets what it took.
template <class Side>
int run_test(const Options& options, Side& side, bool sends, double* seconds) {
  int rc = 0;
  const auto start = Clock::now();
  if (options.test == Test::kLatency) {
    rc = side.ping_pong(sends, options.size_bytes, options.count);
  } else {
    rc = sends ? side.send(options.size_bytes, options.count)
               : side.receive(options.size_bytes, options.count);
    rc = rc != 0 ? rc : side.barrier();
  }
  *seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return rc;
}

int run_copied(const Options& options, const std::string& card, uint32_t peer, bool sends) {
  CopiedSide side(peer, options);
  Copied copied;
  int rc = side.open(card);
  rc = rc != 0 ? rc : side.run(sends, &copied);
  if (rc != 0 || !sends) {
    return rc == 0 ? 0 : 1;
  }
  if (options.json) {
    const nlohmann::json json = {{"size", options.size_bytes},
                                 {"bytes_copied_same", copied.same_bytes},
                                 {"bytes_copied_other", copied.other_bytes},
                                 {"pairs_same", copied.same_pairs},
                                 {"pairs_other", copied.other_pairs}};
    std::printf("%s\n", json.dump().c_str());
    return 0;
  }
  std::printf("%u bytes  at most %" PRIu64 " copied where addresses agree (%u pairs), %" PRIu64
              " where not (%u pairs)\n",
              options.size_bytes, copied.same_bytes, copied.same_pairs, copied.other_bytes,
              copied.other_pairs);
  return 0;
}

/// All repeats. @param side of the API that is measured. @return 0 or -errno, which is on stderr.
template <class Side>
int run_tests(const Options& options, const std::string& card, bool sends, Side&& side) {
  int rc = side.open(card);
  rc = rc != 0 ? rc : side.barrier();
  std::vector<double> seconds(options.repeats);
  for (size_t i = 0; i < seconds.size() && rc == 0; ++i) {
    rc = run_test(options, side, sends, &seconds[i]);
  }
  if (rc == 0 && sends) {
    nlohmann::json rails;
    if constexpr (requires { side.port(); }) {
      rails = rails_json(side.port());
    }
    report(options, seconds, rails);
  }
  return rc;
}

/// @param sends this is the side that sends, or sends first, and measures.
int run_side(const Options& options, const std::string& card, uint32_t peer, bool sends) {
  if (options.test == Test::kCopied) {
    return run_copied(options, card, peer, sends);
  }
  const int rc = options.api == Api::kTag
                     ? run_tests(options, card, sends, TagSide(peer, options.size_bytes))
                     : run_tests(options, card, sends, SkifChSide(peer));
  return rc == 0 ? 0 : 1;
}

void pin(const Options& options, uint32_t nth) {
  if (nth < options.cpus.size()) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(options.cpus[nth], &one);
    static_cast<void>(sched_setaffinity(0, sizeof(one), &one));
  }
}

/// The name of the cards of one of our two processes. The program gives the destIDs, also those of
/// rails, since each process has to know by which one it reaches the other one.
/// @param process 0 or 1; the destID of its first card is 1 or 2.
std::string card_of(const std::string& card, uint32_t process) {
  std::vector<std::string> names;
  std::vector<name::CardName> cards;
  std::string ignored;  // opening the card tells it
  if (name::parse_cards(card, &names, &cards, &ignored) != 0) {
    return card;
  }
  std::string out;
  for (uint32_t rail = 0; rail < names.size(); ++rail) {
    out += (rail == 0 ? "" : "+") + names[rail] + ",id=" + std::to_string(2 * rail + 1 + process);
  }
  return out;
}

int run_both(const Options& options) {
  const std::string card =
      options.card.empty() ? "shm:msgrate-" + std::to_string(getpid()) : options.card;
  const pid_t child = fork();
  if (child < 0) {
    std::perror("rio-msgrate: fork");
    return 1;
  }
  pin(options, child == 0 ? 1 : 0);
  if (child == 0) {
    std::_Exit(run_side(options, card_of(card, 1), 1, false));
  }
  const int rc = run_side(options, card_of(card, 0), 2, true);
  int status = 0;
  static_cast<void>(waitpid(child, &status, 0));
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return rc == 0 && good ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  int code = 0;
  if (!parse_options(argc, argv, &options, &code)) {
    return code;
  }
  if (options.role == Role::kBoth) {
    return run_both(options);
  }
  return run_side(options, options.card, options.peer, options.role == Role::kSend);
}

}  // namespace
}  // namespace rio::msgrate

int main(int argc, char** argv) {
  return rio::apps::run_program("rio-msgrate", rio::msgrate::run, argc, argv);
}
