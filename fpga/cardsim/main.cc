// rio-cardsim: the card model as a process of its own.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>

#include "fpga/cardsim/complain.hpp"
#include "fpga/cardsim/report.hpp"
#include "fpga/cardsim/service.hpp"
#include "fpga/cardsim/wiring.hpp"
#include "fpga/name/parse.hpp"

namespace rio::cardsim {
namespace {

constexpr uint32_t kMostSeconds = 7 * 24 * 3600;

struct Options {
  std::vector<std::string> cards;
  std::string json;
  std::string fabric;
  uint32_t seconds = 0;
  bool stay = false;
};

Requests& requests() {
  static Requests one;
  return one;
}

void on_signal(int signal, siginfo_t* info, void* /*context*/) {
  if (signal == SIGUSR1) {
    requests().lose_state = true;
  } else if (signal == SIGUSR2) {
    requests().vanish = true;
  } else if (signal == SIGHUP) {
    requests().reload = true;
  } else {
    requests().stop_from = info->si_pid;
    requests().stop = signal;
  }
}

/// Installs the handlers. @param fabric whether there is a fabric to be read again; otherwise
/// SIGHUP ends the process, as usual.
void catch_signals(bool fabric) {
  static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
  static_cast<void>(requests());  // made before a handler needs it
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    sigaction(signal, &action, nullptr);
  }
  if (fabric) {
    sigaction(SIGHUP, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

[[nodiscard]] int serve(const Options& options) {
  std::vector<CardSpec> specs(options.cards.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (parse_card_spec(options.cards[i], &specs[i]) != 0) {
      return 2;
    }
  }
  std::unique_ptr<Wiring> wiring;
  if (Wiring::create(specs, options.fabric, &wiring) != 0) {
    return 2;
  }
  catch_signals(wiring->fabric() != nullptr);
  std::vector<std::unique_ptr<SimCard>> cards(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (SimCard::create(specs[i], wiring->plug(i, specs[i].at), &cards[i]) != 0) {
      return 1;
    }
  }
  std::puts("rio-cardsim: ready");
  std::fflush(stdout);
  Service service(cards, requests(), [&wiring] { wiring->reload(); });
  const char* why = "error";
  const int rc = service.run(options.seconds, options.stay, &why);
  const Ending ending{why, requests().stop, requests().stop_from, service.counts()};
  const bool told = options.json.empty() ||
                    write_report(options.json, report(ending, cards, wiring->fabric())) == 0;
  return rc == 0 && told ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{
      "The card model as a process: a card for a QEMU guest, or for a program on this machine.\n"
      "One card hears itself; two are wired to each other, or all are in a fabric. SIGTERM and\n"
      "SIGINT end it, SIGUSR1 makes the cards lose their state, SIGUSR2 makes them vanish (all\n"
      "ones), SIGHUP reads the fabric's file again: which devices are there, and which answer.",
      "rio-cardsim"};
  app.get_formatter()->column_width(8);  // the keys of a card are long lines
  app.add_option("--card", options.cards,
                 "A card, once or twice, with --fabric more often: " + name::cardsim_help())
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("SPEC");
  app.add_option("--fabric", options.fabric,
                 "Plug the cards into the endpoints of a fabric, each where its at= says; the\n"
                 "other endpoints have cards without a host (docs/fabric.md)")
      ->type_name("TOPOLOGY.json");
  app.add_option("--json", options.json, "Write the cards' counters there at the end; -: stdout")
      ->type_name("FILE");
  app.add_option("--seconds", options.seconds, "End after so many seconds; 0: never")
      ->check(CLI::Range(0u, kMostSeconds));
  app.add_flag("--stay", options.stay, "Do not end when all peers have gone; wait for the next");
  app.set_version_flag("--version", "rio-cardsim " RIO_VERSION, "Print the version and exit");
  app.footer(
      "Examples\n"
      "  rio-cardsim --card plain:bar=/dev/shm/bar,ram=/dev/shm/ram --json -\n"
      "  rio-cardsim --card doorbell:socket=/tmp/ivs,ram=/dev/shm/ram,monitor=/tmp/mon,vectors=4\n"
      "  rio-cardsim --card listen:socket=/tmp/a --card listen:socket=/tmp/b\n"
      "  rio-cardsim --card listen:socket=/tmp/a,at=host --fabric fabric.json --stay\n"
      "\n"
      "Exit code: 0 ended as asked, 1 something failed, 2 wrong command line.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    // Unlike CLI11, report an unknown word before a missing --card.
    const std::vector<std::string> words = app.remaining();
    const std::string what = words.empty() ? error.what() : "no option '" + words.front() + "'";
    complain("%s; rio-cardsim --help lists the options, with examples", what.c_str());
    return 2;
  }
  return serve(options);
}

}  // namespace
}  // namespace rio::cardsim

int main(int argc, char** argv) {
  try {
    return rio::cardsim::run(argc, argv);
  } catch (const std::exception& error) {
    rio::cardsim::complain("%s", error.what());
    return 1;
  }
}
